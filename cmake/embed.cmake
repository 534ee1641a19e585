# The program that writes sources runs here, whatever machine the rest is compiled for.
if(CMAKE_CROSSCOMPILING)
  set(embed ${PROJECT_BINARY_DIR}/cmake/embed)
  add_custom_command(
    OUTPUT ${embed}
    COMMAND c++ -std=c++20 -O1 -o ${embed} ${PROJECT_SOURCE_DIR}/cmake/embed.cpp
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/embed.cpp
    VERBATIM)
else()
  set(embed embed)
  add_executable(embed ${PROJECT_SOURCE_DIR}/cmake/embed.cpp)
  set_target_properties(embed PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cmake)
endif()

# embed_files(VARIABLE FOLDER HEADER FUNCTION PATTERN...): compiles in the files of a folder that match; VARIABLE is the
# source that defines FUNCTION, which HEADER declares, made anew whenever a file changes, appears or goes.
function(embed_files variable folder header function)
  set(root ${PROJECT_SOURCE_DIR}/${folder})
  set(output ${PROJECT_BINARY_DIR}/${variable}.cpp)
  list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${patterns})
  list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${embed} ${output} ${header} ${function} ${root} ${files}
    DEPENDS ${embed} ${paths}
    COMMENT "Embedding ${folder}"
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
