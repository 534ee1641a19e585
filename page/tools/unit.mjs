// Runs tests/*.test.ts under node's test runner; esbuild takes the types away.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const out = mkdtempSync(join(tmpdir(), "assay-unit-"));
const entryPoints = readdirSync("tests")
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => join("tests", file));
await build({
  entryPoints,
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const { status } = spawnSync(process.execPath, ["--test", ...readdirSync(out).map((file) => join(out, file))], {
  stdio: "inherit",
});
rmSync(out, { recursive: true });
process.exitCode = status ?? 1;
