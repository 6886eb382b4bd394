# One static library per folder of src/, in the order of src/LAYERS: sw_base, sw_program, ...
# A folder links all folders above it; it sees none below it (tools/check_layers proves that no
# header reaches upwards). Its sub-folders belong to it: they sort its files, and are no layers of
# their own. A folder without a .c file has no library.

set(SW_UPTO "" CACHE STRING "Build only the layers down to this folder, and their tests")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/LAYERS)

# Sets <variable> to the folders of src/LAYERS, outermost last, cut after SW_UPTO.
function(sw_read_layers variable)
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/LAYERS lines REGEX "^[a-z]")
  set(folders "")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[a-z0-9_]+" folder "${line}")
    list(APPEND folders ${folder})
    if(folder STREQUAL SW_UPTO)
      break()
    endif()
  endforeach()
  if(SW_UPTO AND NOT SW_UPTO IN_LIST folders)
    message(FATAL_ERROR "SW_UPTO=${SW_UPTO}: no such line in src/LAYERS")
  endif()
  set(${variable} ${folders} PARENT_SCOPE)
endfunction()

function(sw_add_layer folder libraries_above)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.c)
  if(NOT sources)
    return()
  endif()
  add_library(sw_${folder} STATIC ${sources})
  target_link_libraries(sw_${folder} PUBLIC sw_flags ${libraries_above} ${SW_LINKS_${folder}})
  target_include_directories(sw_${folder} SYSTEM PRIVATE ${SW_INCLUDES_${folder}})
  add_dependencies(sw_${folder} check_layers)
endfunction()

add_custom_target(check_layers ALL
  COMMAND ${PROJECT_SOURCE_DIR}/tools/check_layers ${PROJECT_SOURCE_DIR}
  COMMENT "Checking that folders include only what stands above them" VERBATIM)

sw_read_layers(SW_FOLDERS)
set(SW_LIBRARIES "")
foreach(folder IN LISTS SW_FOLDERS)
  list(REVERSE SW_LIBRARIES)
  sw_add_layer(${folder} "${SW_LIBRARIES}")
  list(REVERSE SW_LIBRARIES)
  if(TARGET sw_${folder})
    list(APPEND SW_LIBRARIES sw_${folder})
  endif()
endforeach()
list(REVERSE SW_LIBRARIES) # for the linker: users first
