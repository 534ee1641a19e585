// A worker of a browser that answers requests, one after the other: {id, request} in, {id, answer} out, where the answer
// is the line that `assay json` prints.
importScripts("engine.js");

let engine = createEngine();

function answer(module, request) {
  const size = module.lengthBytesUTF8(request);
  const at = module._malloc(size + 1);
  module.stringToUTF8(request, at, size + 1);
  const text = module.UTF8ToString(module._assay_answer(at, size));
  module._free(at);
  return text;
}

self.onmessage = async ({ data: { id, request } }) => {
  try {
    postMessage({ id, answer: answer(await engine, request) });
  } catch (crash) {
    // What a crash leaves behind cannot be trusted: the next request gets a fresh engine.
    engine = createEngine();
    const what = `this is a bug, please report: the engine ended with ${crash}`;
    const error = { kind: "internal", where: "", what, hint: "include the request" };
    postMessage({ id, answer: JSON.stringify({ error, request }) + "\n" });
  }
};
