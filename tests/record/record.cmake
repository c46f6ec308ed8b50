# An engine that also writes down what it tells the core: the engine's own objects, linked once more with record.c and with
# every function of the core wrapped. Into record/ of the build tree, under the engine's own name.
set(record_folder ${CMAKE_CURRENT_LIST_DIR})

# record_options(TARGET NAME): of the target TARGET, which is an engine with record.c, to be called NAME.
function(record_options target name)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/core/core.h)
    file(READ ${PROJECT_SOURCE_DIR}/runtime/core/core.h header)
    string(REGEX MATCHALL "[ *]ft_[a-z_]+\\(ft_|[ *]ft_create\\(" found "${header}")
    foreach(function ${found})
        string(REGEX REPLACE "[ *](ft_[a-z_]+)\\(.*" "\\1" function "${function}")
        target_link_options(${target} PRIVATE -Wl,--wrap=${function})
    endforeach()
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/record)
endfunction()
