# The libraries that race is built on, each as an imported target `race_dep_<name>`. All of them are Debian packages;
# when some are missing, one line names every package to install.

set(RACE_MISSING "")

# race_find(name package header library): a header and a library, or the package goes to RACE_MISSING.
function(race_find name package header library)
    find_path(RACE_${name}_INCLUDE ${header})
    find_library(RACE_${name}_LIBRARY ${library})
    mark_as_advanced(RACE_${name}_INCLUDE RACE_${name}_LIBRARY)
    if(RACE_${name}_INCLUDE AND RACE_${name}_LIBRARY)
        add_library(race_dep_${name} INTERFACE IMPORTED GLOBAL)
        target_include_directories(race_dep_${name} SYSTEM INTERFACE ${RACE_${name}_INCLUDE})
        target_link_libraries(race_dep_${name} INTERFACE ${RACE_${name}_LIBRARY})
    else()
        set(RACE_MISSING ${RACE_MISSING} ${package} PARENT_SCOPE)
    endif()
endfunction()

race_find(elf libelf-dev libelf.h elf)
race_find(dw libdw-dev elfutils/libdw.h dw)
race_find(zydis libzydis-dev Zydis/Zydis.h Zydis)
race_find(zycore libzycore-dev Zycore/Types.h Zycore)
race_find(xxhash libxxhash-dev xxhash.h xxhash)
race_find(jansson libjansson-dev jansson.h jansson)

find_package(Threads REQUIRED)
find_package(OpenMP COMPONENTS C)
if(NOT OpenMP_C_FOUND)
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        list(APPEND RACE_MISSING libomp-dev)
    else()
        list(APPEND RACE_MISSING libgomp1)
    endif()
endif()

if(RACE_MISSING)
    list(JOIN RACE_MISSING " " RACE_MISSING)
    message(FATAL_ERROR "race: missing packages: ${RACE_MISSING}")
endif()

# For tests only: `if(TARGET race_dep_unicorn)` tells whether it is there.
set(RACE_MISSING "")
race_find(unicorn libunicorn-dev unicorn/unicorn.h unicorn)
if(RACE_MISSING)
    message(STATUS "race: no libunicorn-dev: the differential tests of the IR are skipped")
endif()
