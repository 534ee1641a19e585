# The engine as WebAssembly, by Debian's emscripten: one thread, no files, no libraries to load.

# Headers of the host that hold all of their library, without the rest of /usr/include.
set(header_libraries ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${header_libraries})
foreach(library fmt nlohmann tl)
  file(CREATE_LINK /usr/include/${library} ${header_libraries}/${library} SYMBOLIC)
endforeach()
include_directories(SYSTEM ${header_libraries})
foreach(library nlohmann_json::nlohmann_json tl::expected Threads::Threads)
  add_library(${library} INTERFACE IMPORTED)
endforeach()

add_compile_options(-fwasm-exceptions)
add_link_options(-fwasm-exceptions)

# `engine.js`, which loads `engine.wasm`: createEngine() gives a module with the function of apps/wasm/engine.cpp.
function(engine_for_browsers)
  add_executable(engine apps/wasm/engine.cpp)
  target_link_libraries(engine PRIVATE assay_core)
  target_link_options(
    engine PRIVATE
    -O3
    -sMODULARIZE=1
    -sEXPORT_NAME=createEngine
    -sENVIRONMENT=worker
    -sEXPORTED_FUNCTIONS=_assay_answer,_assay_attach,_malloc,_free
    -sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8,lengthBytesUTF8,HEAPU8
    -sALLOW_MEMORY_GROWTH=1
    -sMAXIMUM_MEMORY=4GB
    -sINITIAL_MEMORY=64MB
    -sTOTAL_STACK=8MB
    -sDYNAMIC_EXECUTION=0)
endfunction()
