// site_worker.mjs FOLDER: answers the requests on standard input, one a line, by the worker of a site, as a browser would
// run it. On standard error: how long the first answer took, and all of them.
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

const folder = resolve(process.argv[2]);
const started = performance.now();
const wasm = { headers: { "content-type": "application/wasm" } };
globalThis.self = globalThis;
globalThis.location = { href: `http://localhost/engine_worker.js` };
globalThis.fetch = async (url) => new Response(readFileSync(`${folder}/${basename(url)}`), wasm);
globalThis.importScripts = (file) => runInThisContext(readFileSync(`${folder}/${file}`, "utf8"), { filename: file });
importScripts("engine_worker.js");

let first;
for await (const request of createInterface({ input: process.stdin })) {
  const reply = await new Promise((done) => {
    globalThis.postMessage = done;
    self.onmessage({ data: { id: 7, request } });
  });
  if (reply.id !== 7) throw new Error("the answer to another request");
  first ??= performance.now() - started;
  process.stdout.write(reply.answer);
}
console.error(`first answer after ${first?.toFixed(0)} ms, all after ${(performance.now() - started).toFixed(0)} ms`);
