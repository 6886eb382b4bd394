# Language, optimisation and sanitizers: the interface target sw_flags, which every target links.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The shared library is made of the same objects as the command; what it shows is marked in its
# header.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# Assertions stay on in the default build: what is tested is what is used. No -march=native: the
# machines of a cluster may differ; a hot file may clone its functions for several targets.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

set(SW_SANITIZE "" CACHE STRING "Sanitizers for everything, such as address,undefined or thread")
option(SW_FUZZ "Build tests/fuzz (clang's libFuzzer), everything instrumented" OFF)

add_library(sw_flags INTERFACE)
target_include_directories(sw_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(sw_flags INTERFACE
  _DEFAULT_SOURCE
  $<$<CONFIG:Debug>:SW_ARENA_SEPARATE SW_VERIFY_STAGES>)
# -ffp-contract=off: the same numbers on every machine, with or without fused multiply-add.
target_compile_options(sw_flags INTERFACE -fno-math-errno -ffp-contract=off -ftree-vectorize)
target_link_libraries(sw_flags INTERFACE sw_warnings)

# A write beyond an object ends the program instead of going on with what it overwrote.
target_compile_options(sw_flags INTERFACE -fstack-protector-strong)
if(NOT SW_SANITIZE AND NOT SW_FUZZ AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(sw_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

if(SW_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SW_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  set(SW_SANITIZE "address,undefined")
  target_compile_options(sw_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(SW_SANITIZE)
  # -O1 and line tables only: the build takes no longer than without a sanitizer, and reports still
  # name the line. gcc judges the lengths of formatted text by ranges that it knows only at -O2.
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  target_compile_options(sw_warnings INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
  target_compile_options(sw_flags INTERFACE
    -fsanitize=${SW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(sw_flags INTERFACE -fsanitize=${SW_SANITIZE})
  target_compile_definitions(sw_flags INTERFACE SW_VERIFY_STAGES)
  if(SW_SANITIZE MATCHES "address")
    target_compile_definitions(sw_flags INTERFACE SW_ARENA_SEPARATE)
  endif()
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
