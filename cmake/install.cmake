# What `make install` and `make package` put where: the program with its man pages and completions, the library for C and C++,
# and the Python module where it is built. Components are Debian packages, see packages.cmake.
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
set(library_package libassay${abi_version})
install(TARGETS assay)
install(TARGETS assay_core ARCHIVE COMPONENT libassay-dev)
install(TARGETS assay_shared LIBRARY COMPONENT ${library_package} NAMELINK_COMPONENT libassay-dev)
install(FILES src/assay/assay.h src/assay/c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay COMPONENT libassay-dev)

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
        DESTINATION ${package_folder} COMPONENT libassay-dev)
install(FILES ${PROJECT_BINARY_DIR}/assay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libassay-dev)

# `cmake --build --target installed` builds what is installed, and no test.
add_custom_target(installed DEPENDS assay assay_core assay_shared)
foreach(program assay-measure-cuda assay-measure-mpi assay-mpi assay-cuda)
  if(TARGET ${program})
    add_dependencies(installed ${program})
  endif()
endforeach()

# The module, where Debian's interpreter looks: below /usr/lib/python3 for packages, which have the library elsewhere, below
# the folder of its version in other places, with the library that a wheel has.
if(TARGET assay_python)
  add_dependencies(installed assay_python)
  install(CODE "
    set(modules lib/python3/dist-packages)
    set(library PATTERN libassay.so EXCLUDE)
    if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr)
      set(modules lib/python${assay_python}/dist-packages)
      set(library)
    endif()
    file(INSTALL DESTINATION \${CMAKE_INSTALL_PREFIX}/\${modules} TYPE DIRECTORY FILES \"${PROJECT_BINARY_DIR}/python/assay\"
         PATTERN __pycache__ EXCLUDE \${library})" COMPONENT python3-assay)
endif()

include(cmake/packages.cmake)
