// Bundles the page into dist/, which is committed and compiled into the binary. `--check` bundles elsewhere and compares.
import { build } from "esbuild";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const page = fileURLToPath(new URL("..", import.meta.url));
const check = process.argv.includes("--check");
const out = check ? mkdtempSync(join(tmpdir(), "assay-page-")) : join(page, "dist");
if (!check) rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
process.chdir(page);
await build({
  entryPoints: { app: "src/main.tsx", theme: "src/theme.ts", offline: "src/offline.ts" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "eof",
  outdir: out,
  logLevel: "warning",
});
await build({
  entryPoints: ["style.css"],
  bundle: true,
  minify: true,
  external: ["*.woff2"],
  charset: "utf8",
  outdir: out,
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg", "manifest.webmanifest"]) cpSync(file, join(out, file));
cpSync("fonts", join(out, "fonts"), { recursive: true });
// Profiles to look at: the same files that the tests of the engine read.
for (const name of [
  "gpt2-xl-6l-train.kineto.json.gz",
  "gpt2-xl-6l-train-compiled.kineto.json.gz",
  "mlp4-grad.xplane.pb.gz",
])
  cpSync(join("../tests/data/profiles", name), join(out, "samples", name));

const files = (root, below = "") =>
  readdirSync(join(root, below), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? files(root, join(below, entry.name)) : [join(below, entry.name)]))
    .sort();
const all = files(out);
const bytes = (list) => list.reduce((sum, file) => sum + readFileSync(join(out, file)).length, 0);
const script = gzipSync(readFileSync(join(out, "app.js")), { level: 9 }).length;
console.log(`page/dist: ${bytes(all)} bytes in ${all.length} files; script ${script} bytes compressed`);
const fail = (why) => {
  console.error(why);
  process.exitCode = 1;
};
if (script > 300e3) fail("the script is over 300 kB compressed");
if (bytes(all) > 600e3) fail("the page is over 600 kB");
if (check) {
  const kept = files(join(page, "dist"));
  if (
    kept.join() !== all.join() ||
    all.some((file) => !readFileSync(join(out, file)).equals(readFileSync(join(page, "dist", file))))
  )
    fail("page/dist is not what its sources give: run `make page`");
  rmSync(out, { recursive: true });
}
