// check_contrast.mjs FOLDER: every page of a folder in Chromium, in both palettes; text whose contrast to what is behind it is
// below WCAG's AA (axe's rule color-contrast) is a fault. `make docs` asks it of build/docs.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(fileURLToPath(new URL("../page/package.json", import.meta.url)));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const folder = resolve(process.argv[2]);
const pages = readdirSync(folder, { recursive: true }).filter((name) => /^[^/]+\.html$/.test(name) && name !== "404.html");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
let faults = 0;
for (const scheme of ["light", "dark"]) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 900 } });
  for (const name of pages) {
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(folder, name)).href);
    await page.addScriptTag({ content: axe });
    const { violations } = await page.evaluate(() => axe.run(document, { runOnly: ["color-contrast"], resultTypes: ["violations"] }));
    const nodes = violations.flatMap((violation) => violation.nodes);
    faults += nodes.length;
    const kinds = new Map();
    for (const node of nodes) {
      const { fgColor, bgColor, contrastRatio } = node.any[0].data;
      const kind = `${fgColor} on ${bgColor} (${contrastRatio})`;
      kinds.set(kind, [(kinds.get(kind)?.[0] ?? 0) + 1, node.target.join(" ")]);
    }
    for (const [kind, [count, target]] of kinds) console.log(`${name}, ${scheme}: ${count} x ${kind}, e.g. ${target}`);
    await page.close();
  }
}
await browser.close();
console.log(`${folder}: ${pages.length} pages in two palettes, ${faults} texts below a contrast of 4.5`);
process.exit(faults ? 1 : 0);
