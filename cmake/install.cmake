# What `make install` and the packages hold: program, manual, completions, the small pair, library with header.
include(GNUInstallDirs)

# libingot.a: the modules behind ingot.h as one object in which only ingot_* is visible, so that the names inside cannot
# clash with those of the program that links it.
set(objects)
foreach(name base pack text compute model engine api)
  list(APPEND objects $<TARGET_OBJECTS:ingot_${name}>)
endforeach()
set(library ${CMAKE_BINARY_DIR}/libingot.a)
set(merged ${CMAKE_BINARY_DIR}/libingot.o)
if(APPLE)
  file(WRITE ${CMAKE_BINARY_DIR}/libingot.symbols "_ingot_*\n")
  add_custom_command(OUTPUT ${library} COMMAND_EXPAND_LISTS DEPENDS ${objects}
    COMMAND ${CMAKE_LINKER} -r -exported_symbols_list ${CMAKE_BINARY_DIR}/libingot.symbols -o ${merged} ${objects}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${library} COMMAND ${CMAKE_AR} rcs ${library} ${merged})
else()
  add_custom_command(OUTPUT ${library} COMMAND_EXPAND_LISTS DEPENDS ${objects}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=ingot_* ${merged}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${library} COMMAND ${CMAKE_AR} rcs ${library} ${merged})
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release) # what is installed; the others are for tests
  add_custom_target(libingot ALL DEPENDS ${library})
endif()
configure_file(cmake/ingot.pc.in ingot.pc @ONLY)

# Man pages and completions, from what the program itself says.
set(manual ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/man1/ingot.1 DEPENDS ingot ${CMAKE_SOURCE_DIR}/scripts/manual VERBATIM
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${CMAKE_SOURCE_DIR}/scripts/manual $<TARGET_FILE:ingot> ${manual})
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT CMAKE_CROSSCOMPILING)
  add_custom_target(manual ALL DEPENDS ${manual}/man1/ingot.1)
endif()

# All that is installed, and no test: what `make install` and `make package` build.
add_custom_target(installed)
foreach(target ingot libingot manual)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

set(pair models/nugget)
install(TARGETS ingot)
install(DIRECTORY ${pair}/king ${pair}/drafter-q8 DESTINATION ${CMAKE_INSTALL_DATADIR}/ingot/models/nugget)
install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
install(FILES ${manual}/completions/ingot.bash OPTIONAL
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ingot)
install(FILES ${manual}/completions/_ingot OPTIONAL DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/completions/ingot.fish OPTIONAL DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES include/ingot/ingot.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ingot)
install(FILES ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/ingot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Packages: `make package` gives a .deb that names the libraries it needs; with INGOT_STATIC a .tar.gz that needs none.
set(CPACK_PACKAGE_NAME ingot)
set(CPACK_PACKAGE_VENDOR ingot)
set(CPACK_PACKAGE_CONTACT "the authors of ingot <ingot@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs Ingot kings and their drafters on a CPU, with the same bits everywhere")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME ingot-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
string(TOLOWER ${CPACK_PACKAGE_FILE_NAME} CPACK_PACKAGE_FILE_NAME)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
if(INGOT_STATIC)
  set(CPACK_PACKAGING_INSTALL_PREFIX /)
endif()
include(CPack)
