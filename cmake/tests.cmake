# Tests, found by name:
#   tests/FOLDER/test_NAME.c   a cmocka program, test FOLDER_NAME, label FOLDER
#   tests/FOLDER/long_NAME.c   the same, test FOLDER_long_NAME, labels FOLDER and long
#   tests/FOLDER/*.sh          if executable: a test as well, named and labelled in the same way;
#                              exit code 77: skipped
#   tests/FOLDER/*.c           anything else: helpers, linked into each program of that folder
#   tests/FOLDER/write_NAME.c  a program that is no test: it writes what other tools read
#   tests/FOLDER/preload_NAME.c  a library that its scripts load before the C library
#   tests/generate/*.c         writes random programs: a library that every test may use
#   tests/planned/*.c          programs, clusters and plans for them: another such library
#   tests/fuzz/fuzz_NAME.c     a libFuzzer target, only with SW_FUZZ
# tests/LABELS gives tests more labels. Targets: tests_all builds what any test needs, tests_FOLDER
# and tests_LABEL the programs of one folder or label.
# Every test runs in the root of the source. Programs have SW_SOURCE_DIR and SW_BINARY_DIR as
# macros, scripts have them, and SHARDWRIGHT (the command), in the environment.

set(SW_TEST_LIBRARIES planned generate)
set(SW_TEST_ENVIRONMENT
  SHARDWRIGHT=${PROJECT_BINARY_DIR}/shardwright
  SW_SOURCE_DIR=${PROJECT_SOURCE_DIR}
  SW_BINARY_DIR=${PROJECT_BINARY_DIR}
  # Open MPI as root in a container, with more ranks than cores (the names of versions 4 and 5).
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1
  TSAN_OPTIONS=allocator_may_return_null=1
  UBSAN_OPTIONS=print_stacktrace=1
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0)

file(STRINGS ${PROJECT_SOURCE_DIR}/tests/LABELS SW_LABEL_LINES REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/LABELS)

# Sets <labels> to those that tests/LABELS gives the test <name>.
function(sw_extra_labels name labels)
  set(found "")
  foreach(line IN LISTS SW_LABEL_LINES)
    string(REGEX REPLACE " +" ";" words "${line}")
    list(POP_FRONT words test)
    if(test STREQUAL name)
      list(APPEND found ${words})
    endif()
  endforeach()
  set(${labels} "${found}" PARENT_SCOPE)
endfunction()

# Every line of tests/LABELS names a test that exists.
function(sw_check_labels)
  foreach(line IN LISTS SW_LABEL_LINES)
    string(REGEX MATCH "^[a-z0-9_]+" name "${line}")
    if(NOT TEST ${name})
      message(FATAL_ERROR "tests/LABELS: there is no test ${name}")
    endif()
  endforeach()
endfunction()

# Sets <name> to FOLDER_NAME or FOLDER_long_NAME, and <labels> to its labels.
function(sw_describe_test file name labels)
  get_filename_component(path ${file} DIRECTORY)
  get_filename_component(folder ${path} NAME)
  get_filename_component(stem ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "" stem ${stem})
  set(${name} ${folder}_${stem} PARENT_SCOPE)
  sw_extra_labels(${folder}_${stem} extra)
  if(stem MATCHES "^long_")
    list(PREPEND extra long)
  endif()
  set(${labels} "${folder};${extra}" PARENT_SCOPE)
endfunction()

# A test that hangs ends after ten minutes, a long or slow one after twenty, one of hours after four
# hours, twice that under sanitizers: continuous integration may be half as fast as a machine of a
# developer.
function(sw_register_test name labels)
  # Where nothing is known of earlier runs, the tests that take longest start first.
  if("hours" IN_LIST labels)
    set(limit 14400)
    set(cost 1000)
  elseif("long" IN_LIST labels)
    set(limit 1200)
    set(cost 100)
  elseif("slow" IN_LIST labels)
    set(limit 1200)
    set(cost 10)
  else()
    set(limit 600)
    set(cost 0)
  endif()
  if(SW_SANITIZE)
    math(EXPR limit "2 * ${limit}")
  endif()
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" ENVIRONMENT "${SW_TEST_ENVIRONMENT}" TIMEOUT ${limit} COST ${cost})
endfunction()

# The helpers of one folder of tests: its .c files that are no test themselves.
function(sw_add_helpers folder kind)
  file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.c)
  list(FILTER helpers EXCLUDE REGEX "/(test|long|fuzz|write|preload)_[^/]*$")
  if(helpers)
    add_library(helpers_${folder} ${kind} ${helpers})
    target_include_directories(helpers_${folder} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(helpers_${folder} PRIVATE
      SW_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SW_BINARY_DIR="${PROJECT_BINARY_DIR}")
    target_link_libraries(helpers_${folder} PRIVATE sw_flags ${SW_LIBRARIES} PkgConfig::CMOCKA)
  endif()
endfunction()

function(sw_link_test target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set(libraries "")
  foreach(folder IN LISTS SW_TEST_LIBRARIES)
    if(TARGET helpers_${folder})
      list(APPEND libraries helpers_${folder})
    endif()
  endforeach()
  sw_link_program(${target} ${ARGN} ${libraries} PkgConfig::CMOCKA)
endfunction()

function(sw_add_test_program file)
  sw_describe_test(${file} name labels)
  list(GET labels 0 folder)
  add_executable(${name} ${file})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(TARGET helpers_${folder} AND NOT folder IN_LIST SW_TEST_LIBRARIES)
    sw_link_test(${name} helpers_${folder})
  else()
    sw_link_test(${name})
  endif()
  sw_register_test(${name} "${labels}" ${name})
  foreach(label IN LISTS labels)
    sw_add_to_target(tests_${label} ${name})
  endforeach()
endfunction()

# Makes the target <whole> build <part>, too.
function(sw_add_to_target whole part)
  if(NOT TARGET ${whole})
    add_custom_target(${whole})
  endif()
  if(TARGET ${part})
    add_dependencies(${whole} ${part})
  endif()
endfunction()

function(sw_add_test_script file)
  execute_process(COMMAND test -x ${file} RESULT_VARIABLE not_executable)
  if(not_executable)
    return()
  endif()
  sw_describe_test(${file} name labels)
  sw_register_test(${name} "${labels}" ${file})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  # Times are measured: nothing else may run beside it.
  if(labels MATCHES "^lab|(^|;)alone")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# All tests of tests/<folder>, and the target tests_<folder> that builds them.
function(sw_add_test_folder folder)
  if(NOT folder IN_LIST SW_TEST_LIBRARIES)
    sw_add_helpers(${folder} OBJECT)
  endif()
  file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/test_*.c
                                       ${PROJECT_SOURCE_DIR}/tests/${folder}/long_*.c)
  file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.sh)
  sw_add_to_target(tests_${folder} shardwright)
  foreach(file IN LISTS programs)
    sw_add_test_program(${file})
  endforeach()
  foreach(file IN LISTS scripts)
    sw_add_test_script(${file})
  endforeach()
  file(GLOB writers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/write_*.c)
  foreach(file IN LISTS writers)
    get_filename_component(name ${file} NAME_WE)
    add_executable(${name} ${file})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    sw_link_test(${name})
    sw_add_to_target(tests_${folder} ${name})
  endforeach()
  file(GLOB preloads CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/preload_*.c)
  foreach(file IN LISTS preloads)
    get_filename_component(name ${file} NAME_WE)
    add_library(${name} MODULE ${file})
    set_target_properties(${name} PROPERTIES
      PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests C_VISIBILITY_PRESET default)
    target_link_libraries(${name} PRIVATE sw_warnings Threads::Threads ${CMAKE_DL_LIBS})
    sw_add_to_target(tests_${folder} ${name})
  endforeach()
  sw_add_to_target(tests_all tests_${folder})
endfunction()

# Sets <library> to that of the lowest folder that a fuzz target includes: it brings those above it,
# and all else needn't be built.
function(sw_lowest_library file library)
  file(STRINGS ${file} includes REGEX "^#include \"[a-z_]+/")
  set(lowest -1)
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" folder "${line}")
    list(FIND SW_FOLDERS ${folder} place)
    if(place GREATER lowest)
      set(lowest ${place})
      set(${library} sw_${folder} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(sw_add_fuzz_targets)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    add_executable(${name} ${file})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    sw_lowest_library(${file} library)
    target_link_libraries(${name} PRIVATE sw_flags ${library})
  endforeach()
endfunction()

function(sw_add_tests)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true
       RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/*)
  if(NOT SW_UPTO)
    foreach(folder IN LISTS SW_TEST_LIBRARIES)
      sw_add_helpers(${folder} STATIC)
    endforeach()
  endif()
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${folder} AND NOT folder STREQUAL "fuzz"
       AND (NOT SW_UPTO OR folder IN_LIST SW_FOLDERS))
      sw_add_test_folder(${folder})
    endif()
  endforeach()
  if(NOT SW_UPTO)
    sw_register_test(build_layers build ${PROJECT_SOURCE_DIR}/tools/check_layers ${PROJECT_SOURCE_DIR})
    sw_register_test(build_names build ${PROJECT_SOURCE_DIR}/tools/check_names ${PROJECT_SOURCE_DIR})
    sw_check_labels()
    if(TARGET libshardwright) # tests/build/*.sh install it
      sw_add_to_target(tests_all libshardwright)
    endif()
    foreach(bench IN ITEMS bench_honesty bench_papers) # tests/search/*.sh run these
      sw_add_to_target(tests_all ${bench})
    endforeach()
  endif()
endfunction()

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
option(SW_TESTS "Build the tests (needs cmocka)" ${CMOCKA_FOUND})
enable_testing()
if(SW_FUZZ)
  sw_add_fuzz_targets()
elseif(SW_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  sw_add_tests()
endif()
