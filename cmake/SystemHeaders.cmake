# capgate_use_system_headers(file... FLAGS flag...)
# Without optimisation, half the time of a compilation goes into headers of the standard library. The
# sanitizer build parses those below once for all files with the same FLAGS. The release build has no
# such help, so it finds an #include that was forgotten. No path of this clone is part of the result:
# the ccache of one clone serves the others.
set(CAPGATE_SYSTEM_HEADERS algorithm array chrono cstdint expected functional map memory
  optional ranges set span string string_view unordered_map utility variant vector)

function(capgate_use_system_headers)
  cmake_parse_arguments(ARG "" "" "FLAGS" ${ARGN})
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Dev")
    return()
  endif()
  string(MAKE_C_IDENTIFIER "system${ARG_FLAGS}" name)
  set(parsed ${CMAKE_BINARY_DIR}/headers/${name}.pch)
  get_property(is_known GLOBAL PROPERTY capgate_${name})
  if(NOT is_known)
    set_property(GLOBAL PROPERTY capgate_${name} ON)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEV}")
    list(APPEND flags ${CMAKE_CXX23_STANDARD_COMPILE_OPTION} -D_GLIBCXX_ASSERTIONS ${CAPGATE_SANITIZE_FLAGS})
    list(TRANSFORM CAPGATE_SYSTEM_HEADERS PREPEND "-include;" OUTPUT_VARIABLE headers)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
    add_custom_command(OUTPUT ${parsed} VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${ARG_FLAGS} ${headers} -Xclang -fno-pch-timestamp
        -MD -MF ${parsed}.d -MT ${parsed} -x c++-header /dev/null -o ${parsed}
      DEPFILE ${parsed}.d
      DEPENDS ${PROJECT_SOURCE_DIR}/cmake/SystemHeaders.cmake
      COMMENT "Parsing system headers ${ARG_FLAGS}")
    add_custom_target(${name}_headers DEPENDS ${parsed})
  endif()
  foreach(source IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_source_file_property(own ${source} COMPILE_OPTIONS)
    if(NOT own)  # options of its own would not fit
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "-include-pch;${parsed}" OBJECT_DEPENDS ${parsed})
    endif()
  endforeach()
endfunction()
