# libcapgate, to be installed: `cmake --install build/release --component library`.
#
# Both libraries are made of one object: everything that the interface needs of the pure folders and
# of the libraries they use, linked, with all names local but those of the interface. So the names of
# a program can never meet ours, whatever it brings along itself (another libyaml, another fmt).
#
# Nothing is compiled a second time: the objects are those of the programs (-fPIE). Code that finds
# its own names relative to itself is all that a shared library needs, once those names are local;
# if ever it were not, the linker refuses.
target_include_directories(capgate_library PUBLIC ${PROJECT_SOURCE_DIR}/include)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  return()
endif()
target_compile_options(capgate_library PRIVATE -fvisibility=hidden)

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_library(YAML NAMES libyaml.a REQUIRED)
find_library(MD NAMES libmd.a REQUIRED)
find_program(OBJCOPY NAMES llvm-objcopy-19 REQUIRED)

set(_folders capgate_library capgate_import capgate_lower capgate_core capgate_text capgate_base)
set(_archives "")
foreach(_folder ${_folders})
  list(APPEND _archives $<TARGET_FILE:${_folder}>)
endforeach()
set(_object ${CMAKE_BINARY_DIR}/libcapgate.o)
set(_linked ${CMAKE_BINARY_DIR}/libcapgate-all-names.o)
# Without section groups: one that a program's linker drops in favour of the program's own would
# take our local names along.
add_custom_command(
  OUTPUT ${_object}
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -fuse-ld=lld ${CAPGATE_LTO_LINK}
          -Wl,--force-group-allocation -o ${_linked}
          -Wl,--whole-archive $<TARGET_FILE:capgate_library> -Wl,--no-whole-archive
          ${_archives} ${YAML} ${MD}
  COMMAND ${OBJCOPY} --wildcard --localize-hidden --remove-section=.llvm_addrsig
          --keep-global-symbol=capgate_* --keep-global-symbol=_ZN7capgate2v0*
          --keep-global-symbol=_ZNK7capgate2v0* ${_linked} ${_object}
  DEPENDS ${_folders}
  VERBATIM)
set_source_files_properties(${_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)

add_library(capgate_static STATIC ${_object})
add_library(capgate_shared SHARED ${_object})
target_link_libraries(capgate_static INTERFACE stdc++ m)  # for programs in C
target_link_options(capgate_shared PRIVATE -Wl,--gc-sections -Wl,-z,defs -s)
# The number of the binary interface, as in the namespace of capgate.h: it changes when programs must
# be compiled again.
set_target_properties(capgate_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
foreach(_kind static shared)
  set_target_properties(capgate_${_kind} PROPERTIES
    LINKER_LANGUAGE CXX OUTPUT_NAME capgate EXPORT_NAME ${_kind}
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_include_directories(capgate_${_kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

add_custom_target(library DEPENDS capgate_static capgate_shared)

set(_config ${CMAKE_BINARY_DIR}/package)
set(_config_home ${CMAKE_INSTALL_LIBDIR}/cmake/capgate)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/capgate-config.cmake.in
  ${_config}/capgate-config.cmake INSTALL_DESTINATION ${_config_home})
write_basic_package_version_file(${_config}/capgate-config-version.cmake
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH CAPGATE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /.)
string(REGEX REPLACE "/$" "" CAPGATE_PC_UP ${CAPGATE_PC_UP})
configure_file(${PROJECT_SOURCE_DIR}/cmake/capgate.pc.in ${_config}/capgate.pc @ONLY)

install(TARGETS capgate_static capgate_shared EXPORT capgate-targets
  ARCHIVE COMPONENT library LIBRARY COMPONENT library NAMELINK_COMPONENT library)
install(EXPORT capgate-targets NAMESPACE capgate:: DESTINATION ${_config_home} COMPONENT library)
install(FILES ${_config}/capgate-config.cmake ${_config}/capgate-config-version.cmake
  DESTINATION ${_config_home} COMPONENT library)
install(FILES ${_config}/capgate.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/capgate
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library FILES_MATCHING PATTERN *.h)
