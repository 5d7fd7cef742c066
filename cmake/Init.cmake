# capgate-init: freestanding, built with its own flags whatever the preset is, and carried inside
# capgate (src/sandbox/init_image.S). It is small enough to be compiled in one go.
file(GLOB _init_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sandbox/init/*.cc)
set(_init ${CMAKE_BINARY_DIR}/bin/capgate-init)
add_custom_command(
  OUTPUT ${_init}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bin
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 -O2 -ffreestanding -nostdlib -static -fno-pic
          -fno-exceptions -fno-rtti -fno-stack-protector -fno-asynchronous-unwind-tables
          -Wall -Wextra -Werror -I${PROJECT_SOURCE_DIR}/src ${_init_sources}
          -fuse-ld=lld -Wl,-z,noexecstack,-z,separate-code,-s,--build-id=none -o ${_init}
  DEPENDS ${_init_sources} ${PROJECT_SOURCE_DIR}/src/sandbox/orders.h
          ${PROJECT_SOURCE_DIR}/src/sandbox/init/init.h ${PROJECT_SOURCE_DIR}/src/sandbox/init/raw.h
          ${PROJECT_SOURCE_DIR}/src/sandbox/init/forward.h
          ${PROJECT_SOURCE_DIR}/src/sandbox/init/forward_filter.h
          ${PROJECT_SOURCE_DIR}/src/sandbox/proxy_variables.h
  VERBATIM)
add_custom_target(capgate_init DEPENDS ${_init})

set(_image ${PROJECT_SOURCE_DIR}/src/sandbox/init_image.S)
set_source_files_properties(${_image} PROPERTIES
  COMPILE_DEFINITIONS CAPGATE_INIT="${_init}" OBJECT_DEPENDS ${_init})
target_sources(capgate_sandbox PRIVATE ${_image})
add_dependencies(capgate_sandbox capgate_init)
