# Compiler and linker flags, the same for every target of a build type.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# -O0 compiles faster than -Og but runs slower: folders marked HOT and some tests get -O1.
set(CMAKE_CXX_FLAGS_DEV "-O0 -g1" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_DEV "-O0 -g1" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O3" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)

add_compile_options(
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wswitch-enum -Wcast-qual
  -Wundef -Wnull-dereference -Wimplicit-fallthrough -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  # TRY is a statement expression; it is marked __extension__ where it is defined.
  -Wno-gnu-statement-expression-from-macro-expansion
  # Designated initialisers name what differs from the defaults; the rest is meant to be default.
  -Wno-missing-designated-field-initializers
)
add_link_options(-fuse-ld=lld)

if(CMAKE_BUILD_TYPE STREQUAL "Dev")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

if(CAPGATE_SANITIZE)
  set(CAPGATE_SANITIZE_FLAGS
    -fsanitize=${CAPGATE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${CAPGATE_SANITIZE_FLAGS})
  add_link_options(${CAPGATE_SANITIZE_FLAGS})
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=3)
  add_compile_options(-fstack-protector-strong -fcf-protection -fPIE)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  # Most modules of a program are unchanged when it is linked again; their machine code is reused.
  set(CAPGATE_LTO_CACHE ${CMAKE_BINARY_DIR}/lto-cache CACHE PATH "Where the linker keeps compiled modules")
  set(CAPGATE_LTO_LINK -flto=thin -Wl,--thinlto-cache-dir=${CAPGATE_LTO_CACHE}
    -Wl,--thinlto-cache-policy=cache_size_bytes=1g)
endif()
