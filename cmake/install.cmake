# What `make install` and `make package` put where: the program with its man pages and completions, the library for C++,
# and the Python module where it is built.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME assay)

# The objects of the static library. While the version starts with 0, each minor one may break programs.
set(abi_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(assay_shared SHARED ${assay_objects})
target_link_libraries(assay_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS} ${file_libraries})
target_link_options(assay_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
set_target_properties(assay_shared PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map OUTPUT_NAME assay VERSION ${PROJECT_VERSION}
                                              SOVERSION ${abi_version})
install(TARGETS assay assay_core assay_shared)
install(FILES src/assay/assay.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay)

# Programs that `assay measure` runs; in no package, because they need MPI and CUDA.
foreach(program assay-measure-cuda assay-measure-mpi)
  if(TARGET ${program})
    install(TARGETS ${program} COMPONENT measure)
  endif()
endforeach()
foreach(engine assay-mpi assay-cuda)  # what `assay run --engine` loads
  if(TARGET ${engine})
    install(TARGETS ${engine} DESTINATION lib/assay COMPONENT measure)
  endif()
endforeach()

# What is made of the verb table: written when it is installed, by the program itself.
install(CODE "
  set(program \"$<TARGET_FILE:assay>\")
  set(pages \"${PROJECT_BINARY_DIR}/pages\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_pages.cmake\")")

# For CMake and pkg-config.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
configure_package_config_file(cmake/assay-config.cmake.in assay-config.cmake INSTALL_DESTINATION ${package_folder}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(assay-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/assay.pc.in assay.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/assay-config.cmake ${PROJECT_BINARY_DIR}/assay-config-version.cmake
        DESTINATION ${package_folder})
install(FILES ${PROJECT_BINARY_DIR}/assay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cmake --build --target installed` builds what is installed, and no test.
add_custom_target(installed DEPENDS assay assay_core assay_shared)
foreach(program assay-measure-cuda assay-measure-mpi assay-mpi assay-cuda)
  if(TARGET ${program})
    add_dependencies(installed ${program})
  endif()
endforeach()

# The module, where Debian's interpreter looks: below /usr/lib/python3 for packages, below the folder of its version elsewhere.
if(TARGET assay_python)
  add_dependencies(installed assay_python)
  install(CODE "
    set(modules lib/python3/dist-packages)
    if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr)
      set(modules lib/python${assay_python}/dist-packages)
    endif()
    file(INSTALL DESTINATION \${CMAKE_INSTALL_PREFIX}/\${modules} TYPE DIRECTORY FILES \"${PROJECT_BINARY_DIR}/python/assay\"
         PATTERN __pycache__ EXCLUDE)")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL assay)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME assay)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Assay developers <assay@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "predicts training and inference of language models\n\
Assay predicts how long language models take to train and serve, what limits them, and why. This package has the\n\
program, its manual, the library for C++ and the module for Python.")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0)
if(TARGET assay_python)  # only who imports the module needs Python
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", python3 (>= ${assay_python}~), python3 (<< ${assay_next_python}~)")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/postinst ${PROJECT_SOURCE_DIR}/cmake/debian/prerm)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
include(CPack)
