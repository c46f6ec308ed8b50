# Language, warnings and the three build types: Release (the default), Debug and Sanitize.
#
# Everything of ours links `race_options`, so that no flag leaks into what is not ours (Unity, the samples, and the
# DynamoRIO client, whose package sets flags of its own). Assertions stay on in a release: they state what the
# analysis relies on, and a wrong plan is worse than a slower one.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the core is linked into a shared object
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "race works on x86-64 Linux only (this is ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_SYSTEM_NAME})")
endif()

set(RACE_BUILD_TYPES Release Debug Sanitize)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or Sanitize" FORCE)
endif()
set_property(CACHE CMAKE_BUILD_TYPE PROPERTY STRINGS ${RACE_BUILD_TYPES})
if(NOT CMAKE_BUILD_TYPE IN_LIST RACE_BUILD_TYPES)
    message(FATAL_ERROR "CMAKE_BUILD_TYPE is ${CMAKE_BUILD_TYPE}; it must be Release, Debug or Sanitize")
endif()

set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
set(CMAKE_EXE_LINKER_FLAGS_SANITIZE "-fsanitize=address,undefined")
set(CMAKE_SHARED_LINKER_FLAGS_SANITIZE "-fsanitize=address,undefined")

# `cmake --compile-no-warning-as-error` turns the errors back into warnings, for compilers newer than ours.
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)

add_library(race_options INTERFACE)
target_include_directories(race_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(race_options INTERFACE _GNU_SOURCE=) # empty: a file that defines it too may do so
target_compile_options(race_options INTERFACE -Wall -Wextra -Wstrict-prototypes -Wold-style-definition -Wvla
    -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough)
if(CMAKE_C_COMPILER_ID MATCHES "Clang") # gcc has the first attribute and not the second warning
    target_compile_options(race_options INTERFACE -Wno-unknown-attributes -Wno-bitwise-instead-of-logical)
endif()
if(RACE_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "RACE_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
    endif()
    target_compile_options(race_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
        -fno-sanitize-recover=all)
    target_link_options(race_options INTERFACE -fsanitize=address,undefined)
endif()
# For libraries and tools; tests may do without.
add_library(race_strict INTERFACE)
target_link_libraries(race_strict INTERFACE race_options)
target_compile_options(race_strict INTERFACE -Wshadow -Wmissing-prototypes -Wmissing-declarations)
