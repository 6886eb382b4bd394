# The command (cli/*.c), the shared library (library/*.c) and the benchmarks (bench/NAME.c, bench/NAME/*.c; what several need is in
# bench/common).

if(SW_SANITIZE MATCHES "address")
  add_library(sw_keep_modules OBJECT ${PROJECT_SOURCE_DIR}/cmake/keep_modules.c)
  # libraries must see it
  set_target_properties(sw_keep_modules PROPERTIES C_VISIBILITY_PRESET default)
endif()

# Give an executable what all get: all libraries, and the two folders as macros.
function(sw_link_program target)
  target_link_libraries(${target} PRIVATE ${ARGN} sw_flags ${SW_LIBRARIES})
  target_compile_definitions(${target} PRIVATE
    SW_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SW_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(TARGET sw_keep_modules)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:sw_keep_modules>)
  endif()
endfunction()

function(sw_add_command)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
  if(sources AND NOT SW_UPTO)
    add_executable(shardwright ${sources})
    sw_link_program(shardwright)
    target_compile_definitions(shardwright PRIVATE SW_VERSION="${PROJECT_VERSION}")
    set_target_properties(shardwright PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  else()
    add_custom_target(shardwright DEPENDS ${SW_LIBRARIES})
  endif()
endfunction()

# libshardwright: it runs plans on threads alone, so that nothing in it needs MPI, and --as-needed leaves
# that out. --exclude-libs and the hidden visibility leave only what library/shardwright.h marks; assertions of all of it are those of
# library/assertion.c. Threads of calls that were given up sleep in it: it is never unloaded.
function(sw_add_library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/library/*.c)
  add_library(libshardwright SHARED ${sources})
  target_link_libraries(libshardwright PRIVATE sw_flags ${SW_LIBRARIES} ${CMAKE_DL_LIBS})
  target_link_options(libshardwright PRIVATE -Wl,--as-needed
    -Wl,--exclude-libs,ALL -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic)
  target_compile_definitions(libshardwright PRIVATE SW_VERSION="${PROJECT_VERSION}")
  set_target_properties(libshardwright PROPERTIES OUTPUT_NAME shardwright
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    PUBLIC_HEADER ${PROJECT_SOURCE_DIR}/library/shardwright.h)
endfunction()

function(sw_add_bench name)
  add_executable(bench_${name} ${ARGN})
  target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  sw_link_program(bench_${name} bench_common ${SW_BENCH_LINKS_${name}})
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

function(sw_add_benches)
  file(GLOB common CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/common/*.c)
  add_library(bench_common STATIC ${common})
  target_link_libraries(bench_common PRIVATE sw_flags sw_base)
  file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/bench/*)
  list(FILTER entries EXCLUDE REGEX "/common$")
  foreach(entry IN LISTS entries)
    get_filename_component(name ${entry} NAME_WE)
    if(IS_DIRECTORY ${entry})
      file(GLOB sources CONFIGURE_DEPENDS ${entry}/*.c)
    elseif(entry MATCHES "\\.c$")
      set(sources ${entry})
    else()
      set(sources "")
    endif()
    if(sources)
      sw_add_bench(${name} ${sources})
    endif()
  endforeach()
endfunction()

sw_add_command()
if(NOT SW_UPTO AND NOT SW_FUZZ AND NOT SW_SANITIZE)
  sw_add_library()
endif()
if(NOT SW_UPTO AND NOT SW_FUZZ)
  sw_add_benches()
endif()
