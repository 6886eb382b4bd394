# What `make install` and the Debian package hold: the command, manual pages and completions made from
# its --help, cluster files, documents; the library, its header and its pkg-config file. CMAKE_INSTALL_PREFIX and DESTDIR say where.

include(GNUInstallDirs)

set(SW_PAGES ${PROJECT_BINARY_DIR}/pages)
add_custom_command(
  OUTPUT ${SW_PAGES}/done
  COMMAND ${PROJECT_SOURCE_DIR}/tools/make_pages $<TARGET_FILE:shardwright>
          ${PROJECT_SOURCE_DIR}/tools/elastic ${PROJECT_SOURCE_DIR}/clusters ${SW_PAGES}
  COMMAND ${CMAKE_COMMAND} -E touch ${SW_PAGES}/done
  DEPENDS shardwright ${PROJECT_SOURCE_DIR}/tools/make_pages ${PROJECT_SOURCE_DIR}/tools/elastic
  COMMENT "Manual pages and completions")
add_custom_target(pages ALL DEPENDS ${SW_PAGES}/done)

install(TARGETS shardwright RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET libshardwright)
  file(RELATIVE_PATH SW_PREFIX_FROM_PC /root/${CMAKE_INSTALL_LIBDIR}/pkgconfig /root)
  configure_file(${PROJECT_SOURCE_DIR}/library/shardwright.pc.in
    ${PROJECT_BINARY_DIR}/shardwright.pc @ONLY)
  install(TARGETS libshardwright
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_BINARY_DIR}/shardwright.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/plan.c ${PROJECT_SOURCE_DIR}/examples/train.c
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
endif()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/elastic
  DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME shardwright-elastic)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/clusters
  DESTINATION ${CMAKE_INSTALL_DATADIR}/shardwright FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/
  DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${SW_PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${SW_PAGES}/shardwright.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME shardwright)
install(FILES ${SW_PAGES}/_shardwright
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardwright)
set(CPACK_PACKAGE_CONTACT "The Shardwright developers <shardwright@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fastest parallel plans for training programs, and running them on MPI")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # and what runs ldconfig
set(CPACK_STRIP_FILES ON)
# opened when a program multiplies matrices, so that no tool sees it
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin")
include(CPack)
