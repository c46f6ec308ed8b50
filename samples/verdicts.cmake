# The programs with known verdicts: the folders beside this file, each program built with both compilers at -O0 and -O2,
# with debug information, into samples/verdicts/SET/NAME/COMPILER-OPT of the build tree.
#
#   blind/     written from the list of categories alone, before any detector was seen; scored apart
#   verdict/   the categories one by one, the papers' examples, each kind of synchronisation rightly and wrongly
#
# Verdicts are comments at the end of lines, with an optional name that groups the sides, and a reason:
#   // RACE name: why     an access on this line takes part in a data race (each side is marked)
#   // NORACE: why        looks suspicious, but no access on this line is in any race; on a line that takes a lock: nor
#                         is that acquisition part of a deadlock
#   // DEADLOCK           this acquisition is part of a cycle that can close
# What is not marked is not judged. An access that is inlined from a header counts for the line of the program that
# called it. Lines ` * Alarm:`, ` * Unseen:` and ` * Fails:` of a head are for tools/samples-truth, which explains them.
#
# Target `verdicts`; samples/verdicts.tsv lists what is built:
#   sample (SET/NAME)  category  compiler  options  binary  source
#
# A program's head has a line ` * Category: NAME`, one of those in the file `categories`, and may have a line
# ` * Build: OPTIONS` with what it needs besides -pthread. What cannot be built here is left out, and a line says so.
file(GLOB sources CONFIGURE_DEPENDS blind/*.c blind/*.cpp verdict/*.c verdict/*.cpp)

find_path(RACE_EVENT_H event2/event.h)
find_path(RACE_UV_H uv.h)
mark_as_advanced(RACE_EVENT_H RACE_UV_H)
foreach(compiler gcc clang)
    if(driver_${compiler}_c AND NOT DEFINED RACE_OPENMP_${compiler})
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/openmp.c
            "#include <omp.h>\nint main(void) { return omp_in_parallel(); }\n")
        execute_process(COMMAND ${driver_${compiler}_c} -fopenmp -o openmp openmp.c RESULT_VARIABLE code
            WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} OUTPUT_QUIET ERROR_QUIET)
        if(code EQUAL 0)
            set(RACE_OPENMP_${compiler} ON CACHE INTERNAL "")
        else()
            set(RACE_OPENMP_${compiler} OFF CACHE INTERNAL "")
        endif()
    endif()
endforeach()

set(standard_c -std=gnu17)
set(standard_cpp -std=c++17)
set(manifest "# sample\tcategory\tcompiler\toptions\tbinary\tsource\n")
set(programs "")
set(missing "")
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(set ${source} DIRECTORY)
    get_filename_component(set ${set} NAME)
    get_filename_component(language ${source} LAST_EXT)
    string(SUBSTRING ${language} 1 -1 language)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    set(category "")
    set(options "")
    file(STRINGS ${source} marks REGEX "^ \\* (Category|Build): ")
    foreach(mark ${marks})
        if(mark MATCHES "^ \\* Category: (.*)$")
            set(category ${CMAKE_MATCH_1})
        elseif(mark MATCHES "^ \\* Build: (.*)$")
            separate_arguments(options UNIX_COMMAND ${CMAKE_MATCH_1})
        endif()
    endforeach()
    if(("-levent" IN_LIST options AND NOT RACE_EVENT_H) OR ("-luv" IN_LIST options AND NOT RACE_UV_H))
        list(APPEND missing "${set}/${name} (${options})")
        continue()
    endif()
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/verdicts/${set}/${name})
    foreach(compiler gcc clang)
        set(driver ${driver_${compiler}_${language}})
        if(NOT driver OR ("-fopenmp" IN_LIST options AND NOT RACE_OPENMP_${compiler}))
            list(APPEND missing "${set}/${name} (${compiler})")
            continue()
        endif()
        foreach(opt O0 O2)
            set(program ${CMAKE_CURRENT_BINARY_DIR}/verdicts/${set}/${name}/${compiler}-${opt})
            add_custom_command(OUTPUT ${program} DEPENDS ${source} VERBATIM COMMENT ""
                COMMAND ${driver} ${standard_${language}} -${opt} -g -pthread -o ${program} ${source} ${options})
            list(APPEND programs ${program})
            list(JOIN options " " words)
            string(STRIP "-${opt} -g ${words}" words)
            string(APPEND manifest "${set}/${name}\t${category}\t${compiler}\t${words}\t${program}\t${source}\n")
        endforeach()
    endforeach()
endforeach()
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/verdicts.tsv CONTENT "${manifest}")
add_custom_target(verdicts ALL DEPENDS ${programs})
if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "race: samples that cannot be built here: ${missing}")
endif()
