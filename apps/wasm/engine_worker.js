// A worker of a browser that answers requests, one after the other: {id, request, files} in, {id, answer} out, where the
// answer is the line that `assay json` prints and `files`, [{name, bytes}], come with the request.
importScripts("engine.js");

let engine = createEngine();

function text_at(module, text) {
  const size = module.lengthBytesUTF8(text);
  const at = module._malloc(size + 1);
  module.stringToUTF8(text, at, size + 1);
  return [at, size];
}

function attach(module, { name, bytes }) {
  const [named] = text_at(module, name);
  const at = module._malloc(bytes.length);
  module.HEAPU8.set(bytes, at);
  module._assay_attach(named, at, bytes.length);
  module._free(at);
  module._free(named);
}

function answer(module, request, files) {
  for (const file of files ?? []) attach(module, file);
  const [at, size] = text_at(module, request);
  const text = module.UTF8ToString(module._assay_answer(at, size));
  module._free(at);
  return text;
}

self.onmessage = async ({ data: { id, request, files } }) => {
  try {
    postMessage({ id, answer: answer(await engine, request, files) });
  } catch (crash) {
    // What a crash leaves behind cannot be trusted: the next request gets a fresh engine.
    engine = createEngine();
    const what = `this is a bug, please report: the engine ended with ${crash}`;
    const error = { kind: "internal", where: "", what, hint: "include the request" };
    postMessage({ id, answer: JSON.stringify({ error, request }) + "\n" });
  }
};
