# Unity, the unit test framework: target `race_unity`, when it can be found.
#
# Looked for in this order: RACE_UNITY_DIR (a folder with unity.c), a library installed with its header, the sources
# in Debian's package cmock, and what `tools/lib/get-unity` has put into the build tree.

set(RACE_UNITY_DIR "" CACHE PATH "folder with unity.c and unity.h, when they are in no usual place")

find_path(RACE_UNITY_SOURCE unity.c NO_CACHE NO_DEFAULT_PATH PATHS
    ${RACE_UNITY_DIR} ${RACE_UNITY_DIR}/src
    /usr/share/cmock/vendor/unity/src /usr/src/unity/src
    ${PROJECT_BINARY_DIR}/unity/src ${PROJECT_SOURCE_DIR}/build/unity/src)
find_path(RACE_UNITY_INCLUDE unity.h NO_CACHE PATH_SUFFIXES unity)
find_library(RACE_UNITY_LIBRARY unity NO_CACHE)

# Its assertions are `if ... else ...`, at least in older releases, and may follow an `if` all the same.
set(RACE_UNITY_OPTIONS -Wno-dangling-else)

if(RACE_UNITY_INCLUDE AND RACE_UNITY_LIBRARY AND NOT RACE_UNITY_DIR)
    add_library(race_unity INTERFACE)
    target_include_directories(race_unity SYSTEM INTERFACE ${RACE_UNITY_INCLUDE})
    target_compile_options(race_unity INTERFACE ${RACE_UNITY_OPTIONS})
    target_link_libraries(race_unity INTERFACE ${RACE_UNITY_LIBRARY})
    message(STATUS "race: Unity: ${RACE_UNITY_LIBRARY}")
elseif(RACE_UNITY_SOURCE)
    add_library(race_unity STATIC ${RACE_UNITY_SOURCE}/unity.c)
    target_include_directories(race_unity SYSTEM PUBLIC ${RACE_UNITY_SOURCE})
    target_compile_definitions(race_unity PUBLIC UNITY_SUPPORT_64= UNITY_INCLUDE_DOUBLE=)
    target_compile_options(race_unity PRIVATE -w INTERFACE ${RACE_UNITY_OPTIONS})
    message(STATUS "race: Unity: ${RACE_UNITY_SOURCE}")
else()
    message(STATUS "race: no Unity: unit tests are skipped (tools/test fetches it; or set RACE_UNITY_DIR)")
endif()
