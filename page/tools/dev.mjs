// `npm run dev`: bundles anew at every load and answers from `assay json`, so that the page can be changed without a build
// of the engine. ASSAY names the binary, PORT the port.
import { context } from "esbuild";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const engine = spawn(process.env.ASSAY ?? "../build/release/assay", ["json"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = [];
createInterface({ input: engine.stdout }).on("line", (line) => waiting.shift()(line));
const script = await context({
  entryPoints: { app: "src/main.tsx", theme: "src/theme.ts" },
  bundle: true,
  write: false,
  outdir: "out",
  sourcemap: "inline",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
});
const types = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".txt": "text/plain",
  ".webmanifest": "application/manifest+json",
};
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'";

createServer(async (request, response) => {
  const path = normalize(new URL(request.url, "http://localhost").pathname);
  const send = (type, body) =>
    response
      .writeHead(200, { "content-type": type, "content-security-policy": policy, "cache-control": "no-store" })
      .end(body);
  try {
    if (path === "/health") return send("application/json", JSON.stringify({ engine: "native" }));
    if (path === "/api") {
      let body = "";
      for await (const part of request) body += part;
      engine.stdin.write(body.replaceAll("\n", " ") + "\n");
      return send("application/json", await new Promise((done) => waiting.push(done)));
    }
    const built = (await script.rebuild()).outputFiles.find((file) => file.path.endsWith(path));
    if (built) return send(types[".js"], built.contents);
    const file = path === "/" ? "index.html" : path.slice(1);
    return send(types[extname(file)] ?? "application/octet-stream", readFileSync(join(process.cwd(), file)));
  } catch {
    response.writeHead(404).end();
  }
}).listen(Number(process.env.PORT ?? 8123), "127.0.0.1", function () {
  console.log(`http://127.0.0.1:${this.address().port}/`);
});
