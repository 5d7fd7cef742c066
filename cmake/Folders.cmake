# capgate_folder(name [SMALL] [HOT] [DEPENDS folder...] [LINK lib...] [TEST_LINK lib...])
# src/<name>/*.cc becomes the static library capgate_<name>, and src/<name>/*_test.cc the program
# <name>_test, which ctest runs. Adding a file to a folder is enough to have it built.
# SMALL: code that runs once per start, where each page of it costs more than its instructions do.
# HOT: code that property tests run most of their time, so that it is optimised with sanitizers too.
function(capgate_folder name)
  cmake_parse_arguments(ARG "SMALL;HOT" "" "DEPENDS;LINK;TEST_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(capgate_${name} STATIC ${sources})
  target_include_directories(capgate_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPENDS PREPEND capgate_)
  target_link_libraries(capgate_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_LINK})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(capgate_${name} PRIVATE -flto=thin)
    if(ARG_SMALL)
      target_compile_options(capgate_${name} PRIVATE -Os)
    endif()
  endif()
  set(flags)
  if(ARG_HOT AND CMAKE_BUILD_TYPE STREQUAL "Dev")
    list(APPEND flags -O1)
  endif()
  if(CAPGATE_TESTS)
    # Coverage counters for the fuzz targets, so that one build serves them and the unit tests.
    list(APPEND flags -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(capgate_${name} PRIVATE ${flags})
  capgate_use_system_headers(${sources} FLAGS ${flags})
  if(CAPGATE_TESTS AND tests)
    capgate_test(${name}_test SOURCES ${tests} LINK capgate_${name} ${ARG_TEST_LINK})
  endif()
endfunction()

# The slowest test of the tree, an interpreter of filters in a header, and what it compares. All files
# that include the header get the same option: of an inline function the linker takes any copy.
if(CMAKE_BUILD_TYPE STREQUAL "Dev")
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/lower/seccomp_docker.cc
    ${PROJECT_SOURCE_DIR}/src/lower/bpf_test.cc
    ${PROJECT_SOURCE_DIR}/src/lower/seccomp_oracle_test.cc
    ${PROJECT_SOURCE_DIR}/src/lower/seccomp_test.cc
    PROPERTIES COMPILE_OPTIONS -O1)
endif()

# capgate_test(name SOURCES file... LINK lib...): a GoogleTest program, one ctest entry.
function(capgate_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/source_directory.cc)
  capgate_use_system_headers(${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main rapidcheck)
  # One file only: a definition for all would keep ccache from serving another clone.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/source_directory.cc PROPERTIES
    COMPILE_DEFINITIONS CAPGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# capgate_program(name main.cc folder...): an installed program, in build/<preset>/bin.
function(capgate_program name main)
  add_executable(${name} ${main})
  list(TRANSFORM ARGN PREPEND capgate_)
  target_link_libraries(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -flto=thin)
    target_link_options(${name} PRIVATE ${CAPGATE_LTO_LINK} -Wl,--gc-sections -s)
  endif()
  if(CAPGATE_STATIC)
    target_link_options(${name} PRIVATE -static-pie)
  endif()
  add_dependencies(programs ${name})
  install(TARGETS ${name} RUNTIME COMPONENT programs)
endfunction()
