# embed_catalogue(VARIABLE): compiles the catalogue's files in; VARIABLE is the source that defines
# assay::embedded_catalogue(), made anew whenever a file changes, appears or goes.
function(embed_catalogue variable)
  set(root ${PROJECT_SOURCE_DIR}/catalogue)
  set(output ${PROJECT_BINARY_DIR}/embedded_catalogue.cpp)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.toml ${root}/*.json ${root}/*.csv)
  list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)

  add_executable(embed ${PROJECT_SOURCE_DIR}/cmake/embed.cpp)
  set_target_properties(embed PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND embed ${output} ${root} ${files}
    DEPENDS embed ${paths}
    COMMENT "Embedding the catalogue"
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
