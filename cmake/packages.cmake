# The Debian packages of `make package`: the program, the library, what one links with it, and the Python module.
set(packages assay ${library_package} libassay-dev)
if(TARGET assay_python)
  list(APPEND packages python3-assay)
endif()

# Of each package: what Debian wants below /usr/share/doc, the changelog with the date of the commit.
find_package(Git QUIET)
set(changed "Thu, 01 Jan 2026 00:00:00 +0000")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} log -1 --format=%aD OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  if(date)
    set(changed ${date})
  endif()
endif()
set(ASSAY_MAINTAINER "The Assay developers <assay@example.org>" CACHE STRING "who publishes the packages, with an address")
set(maintainer ${ASSAY_MAINTAINER})
file(CONFIGURE OUTPUT changelog CONTENT "assay (${PROJECT_VERSION}) unstable; urgency=medium

  * CHANGELOG.md of the sources says what changed.

 -- ${maintainer}  ${changed}
")
foreach(package IN LISTS packages)
  install(CODE "
    if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
      set(folder \${CMAKE_INSTALL_PREFIX}/share/doc/${package})
      file(INSTALL DESTINATION \${folder} TYPE FILE FILES \"${PROJECT_SOURCE_DIR}/cmake/debian/copyright\")
      execute_process(COMMAND gzip -9nc INPUT_FILE \"${PROJECT_BINARY_DIR}/changelog\"
                      OUTPUT_FILE \"${PROJECT_BINARY_DIR}/changelog.gz\" COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL DESTINATION \${folder} TYPE FILE FILES \"${PROJECT_BINARY_DIR}/changelog.gz\")
      if(EXISTS \"${PROJECT_SOURCE_DIR}/cmake/debian/${package}.lintian\")
        file(INSTALL DESTINATION \${CMAKE_INSTALL_PREFIX}/share/lintian/overrides TYPE FILE RENAME ${package}
             FILES \"${PROJECT_SOURCE_DIR}/cmake/debian/${package}.lintian\")
      endif()
    endif()" COMPONENT ${package})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${maintainer})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(what_it_does "Assay predicts how long language models take to train and serve, what\nlimits them, what they cost, and why.")

# package(NAME SECTION SUMMARY DESCRIPTION [DEPENDS])
macro(package name section summary description)
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${what_it_does}\n${description}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARGN}")
endmacro()
set(same "(= ${PROJECT_VERSION})")
package(assay science "predicts training and inference of language models" "This package has the program and its manual.")
set(CPACK_DEBIAN_ASSAY_PACKAGE_RECOMMENDS libopenblas0)
package(${library_package} libs "predicts training and inference of language models: library"
        "This package has the shared library, for C, C++ and languages that call C.")
set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
package(libassay-dev libdevel "predicts training and inference of language models: headers"
        "This package has the headers and what compilers and linkers need."
        "${library_package} ${same}, libsqlite3-dev, libyaml-dev, zlib1g-dev")
package(python3-assay python "predicts training and inference of language models: Python module"
        "This package has the module for Python 3." "${library_package} ${same}, python3 (>= 3.9)")
set(CPACK_DEBIAN_PYTHON3-ASSAY_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3-ASSAY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/postinst
                                                       ${PROJECT_SOURCE_DIR}/cmake/debian/prerm)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
include(CPack)
