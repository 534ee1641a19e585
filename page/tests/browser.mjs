// The page in a real browser: each view answers, its numbers are the command line's, links restore it, nothing is asked of
// other hosts, and it is accessible in both themes from a phone to a wide screen. Pictures of it land in SHOTS.
//   node tests/browser.mjs [--path DIRECTORY OF assay] [--only NAME] [--update]: the last takes how views look now as right
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const option = (name) => process.argv[process.argv.indexOf(name) + 1] || undefined;
const has = (name) => process.argv.includes(name);
const build = has("--path") ? option("--path") : "../build/release";
const assay = join(build, "assay");
const shots = process.env.SHOTS ?? join(build, "page_shots");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// ---- who serves the page: the binary, a folder of files with the engine as WebAssembly, or, without either, the bundler
const children = [];
const started = (command, args, env = {}) =>
  new Promise((done, fail) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
    children.push(child);
    child.on("exit", (code) => fail(new Error(`${command} ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", (line) => done(line.trim()));
  });
const files = (root) =>
  new Promise((done) => {
    const types = {
      ".html": "text/html",
      ".js": "text/javascript",
      ".css": "text/css",
      ".wasm": "application/wasm",
      ".svg": "image/svg+xml",
      ".woff2": "font/woff2",
    };
    const server = createServer((request, response) => {
      const path = normalize(new URL(request.url, "http://x").pathname);
      const file = join(root, path === "/" ? "index.html" : path);
      if (!existsSync(file)) return response.writeHead(404).end();
      response
        .writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" })
        .end(readFileSync(file));
    }).listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}/`));
    server.unref();
  });
const knows = (verb) => {
  try {
    execFileSync(assay, [verb, "--help"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
const servers = [];
if (knows("ui")) servers.push({ name: "server", open: () => started(assay, ["ui", "--port", "0"]) });
else
  servers.push({
    name: "bundler",
    open: () => started(process.execPath, ["tools/dev.mjs"], { ASSAY: assay, PORT: "0" }),
  });
const site = join(build, "..", "site");
if (existsSync(join(site, "engine_worker.js"))) servers.push({ name: "site", open: () => files(site) });

// ---- what the command line says
const ask = (verb, args) =>
  JSON.parse(
    execFileSync(assay, ["json"], { input: JSON.stringify({ verb, arguments: args }) + "\n", maxBuffer: 1 << 26 }),
  );
const figures = (x, n = 3) => Number(x.toPrecision(n));
/** Three figures as the page writes them, without the unit. */
const written = (x, scale) => {
  const value = figures(x / scale);
  return value >= 100
    ? String(Math.round(value))
    : value >= 10
      ? value.toFixed(1)
      : value >= 1
        ? value.toFixed(2)
        : value.toPrecision(3);
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
const complaints = [];

async function openPage(base, { width = 1440, theme = "light", height = 900 } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const here = new URL(base).host;
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.host !== here) complaints.push(`asked ${url.host}`);
  });
  // a browser reports every status but 200: an error answer has 400, and views that try changes get some by design; a folder
  // of files has no server whose health could be asked
  page.on(
    "console",
    (message) =>
      message.type() === "error" &&
      !/status of 400/.test(message.text()) &&
      !message.location().url.endsWith("/health") &&
      complaints.push(`console: ${message.text()}`),
  );
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.base = base;
  page.theme = theme;
  return page;
}
async function show(page, hash) {
  await page.goto("about:blank");
  await page.goto(`${page.base}${hash}${hash.includes("?") ? "&" : "?"}theme=${page.theme}`);
  if (hash.startsWith("#/profile")) return void (await page.waitForSelector("h1"));
  await page.waitForSelector(".ans h1", { timeout: 30_000 });
  await settled(page);
}
/** Until nothing is being asked: the answer is current, and so is what follows behind it. */
async function settled(page) {
  await page.waitForFunction(
    () =>
      document.querySelector(".ans[aria-busy=false]") &&
      !document.querySelector("[aria-busy=true]") &&
      document.fonts.status === "loaded",
    undefined,
    { timeout: 30_000 },
  );
  await page.waitForFunction(
    () => ![...document.querySelectorAll(".ans p.muted")].some((p) => /^Being /.test(p.textContent)),
    undefined,
    { timeout: 30_000 },
  );
}
const heading = (page) =>
  page.textContent(".ans h1").then((text) => text.replaceAll("\u202f", " ").replaceAll("\u00a0", " "));
const text = (page, selector) =>
  page.textContent(selector).then((found) => found.replaceAll("\u202f", " ").replaceAll("\u00a0", " "));

// ---- how a view looks: the first screen as 40 x 25 greys, so that a number that moved is no difference, and a card is
const looks = existsSync("tests/looks.json") ? JSON.parse(readFileSync("tests/looks.json", "utf8")) : {};
const eye = await (await browser.newContext()).newPage();
const lookOf = (png) =>
  eye.evaluate(async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(40, 25);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, 40, 25);
    const { data: pixels } = context.getImageData(0, 0, 40, 25);
    let text = "";
    for (let i = 0; i < pixels.length; i += 4)
      text += String.fromCharCode((pixels[i] + pixels[i + 1] + pixels[i + 2]) / 3);
    return btoa(text);
  }, png.toString("base64"));
const difference = (a, b) => {
  const [x, y] = [Buffer.from(a, "base64"), Buffer.from(b, "base64")];
  return x.length === y.length ? x.reduce((sum, grey, i) => sum + Math.abs(grey - y[i]), 0) / x.length / 255 : 1;
};

const tests = {
  async "the plan says what the command line says"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:64&batch=256seq&seq=8192&tokens=1T");
    const { results: r } = ask("train", {
      model: "llama-3-8b",
      on: "h100-sxm:64",
      batch: "256seq",
      seq: 8192,
      tokens: "1T",
    });
    assert.ok(
      (await heading(page)).startsWith(`${written(r.step_time.estimate.value, 1)} s per step on 64 H100.`),
      await heading(page),
    );
    const facts = await text(page, ".facts");
    assert.ok(facts.includes(`${written(r.memory.total.value, 2 ** 30)} GiB`), facts);
    assert.ok(facts.includes(`${written(r.mfu, 0.01)} %`), facts);
    assert.ok(facts.includes(`$${written(r.cost.value, r.cost.value >= 1e6 ? 1e6 : 1e3)}`), facts);
    assert.equal(await page.locator("section[aria-label=Alternatives] tbody tr").count(), 1 + r.alternatives.length);
    for (const name of [
      "Memory of the fullest chip",
      "Where the time goes",
      "Timeline",
      "What would change it",
      "Limits of ideal hardware",
      "Details",
    ])
      assert.equal(await page.locator(`section[aria-label="${name}"]`).count(), 1, name);
    assert.equal(
      await text(page, ".cmd code"),
      "assay train llama-3-8b \\\n  --on h100-sxm:64 \\\n  --batch 256seq \\\n  --seq 8192 \\\n  --tokens 1T",
    );
    await page.click("button[aria-label^='Bytes in']");
    assert.ok((await text(page, ".facts")).includes(`${written(r.memory.total.value, 1e9)} GB`));
    await page.context().close();
  },
  async "a number opens to its sources, and Escape gives the focus back"(base) {
    const page = await openPage(base);
    await show(page, "#/plan");
    await page.click(".head .num");
    await page.waitForSelector("[role=dialog] .formula"); // which is asked for only now
    assert.ok((await page.evaluate(() => location.hash)).includes("open=step+time"));
    for (let depth = 0; depth < 12 && (await page.locator("[role=dialog] .go").count()) > 0; depth++)
      await page.locator("[role=dialog] .go").first().click();
    assert.match(await text(page, "[role=dialog]"), /\.toml:\d+|--batch|Source|model|of the/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("[role=dialog]").count(), 0);
    assert.ok(await page.evaluate(() => document.activeElement?.classList.contains("num")));
    await page.context().close();
  },
  async "a link restores what was asked, pins and all"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:16&batch=64seq&seq=4096");
    const before = await heading(page);
    const shown = await page.textContent(".ans h1");
    await page.click("button[aria-label='×2 Chips']");
    await page.waitForFunction((old) => document.querySelector(".ans h1").textContent !== old, shown);
    await settled(page);
    await page.locator(".pin").nth(0).click();
    await page.locator(".pin").nth(1).click();
    await page.click("[role=tab] >> text=Notes");
    await page.waitForFunction(
      () => document.querySelectorAll("section[aria-label=Compare] tbody tr:nth-child(4) td b").length === 2,
    );
    const [hash, now, compared] = [
      await page.evaluate(() => location.hash),
      await heading(page),
      await text(page, "section[aria-label=Compare]"),
    ];
    assert.notEqual(now, before);
    assert.match(hash, /on=h100-sxm:32/);
    const other = await openPage(base);
    await show(other, hash.replace(/&theme=\w+/, ""));
    await other.waitForFunction(
      () => document.querySelectorAll("section[aria-label=Compare] tbody tr:nth-child(4) td b").length === 2,
    );
    assert.equal(await heading(other), now);
    assert.equal(await text(other, "section[aria-label=Compare]"), compared);
    assert.equal(await other.getAttribute("[role=tab][aria-selected=true]", "aria-selected"), "true");
    assert.match(await text(other, "[role=tab][aria-selected=true]"), /Notes/);
    await page.goBack();
    await page.waitForFunction(() => /on=h100-sxm:16/.test(location.hash));
    await page.waitForFunction(
      (old) => document.querySelector(".ans h1").textContent.replaceAll("\u202f", " ") === old,
      before,
    );
    await page.context().close();
    await other.context().close();
  },
  async "what is wrong is said at its field, with near names"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-7b&on=h100-sxm:8&batch=64seq&seq=4096");
    assert.match(await heading(page), /Unknown model "llama-3-7b"/);
    assert.equal(await page.locator("input[aria-invalid=true]").count(), 1);
    await page.click("text=Use llama-3-8b");
    await page.waitForFunction(() => /per step/.test(document.querySelector(".ans h1").textContent));
    assert.match(await page.evaluate(() => location.hash), /model=llama-3-8b/);
    await show(page, `#/plan?model=${encodeURIComponent("{ not json")}&on=h100-sxm:8&batch=64seq`);
    assert.equal(await page.locator(".engine-said:not([open])").count(), 1);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:1000000000000000000&batch=64seq");
    assert.equal(await page.locator(".engine-said:not([open])").count(), 1);
    // in the words of the page, above the last good answer
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:8&batch=64seq&seq=4096");
    const good = await heading(page);
    await page.evaluate(() => (location.hash = "#/plan?model=llama-3-8b&on=&batch=64seq&seq=4096"));
    await page.waitForFunction(() => document.querySelector(".ans h1").textContent === "Chip is missing.");
    assert.equal(await text(page, ".last-good[inert] h1"), good);
    assert.ok(!/--/.test(await text(page, ".ans .say")));
    await page.context().close();
  },
  async "a pasted config.json is a model, and what does not fit says so"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:8&batch=64seq&seq=4096");
    await page.click("summary:has-text('Paste a config.json')");
    await page.fill("textarea", '{"base": "llama-3-8b",\n "num_hidden_layers": 16}');
    await page.click("text=Use it");
    const { results } = ask("train", {
      model: '{"base":"llama-3-8b","num_hidden_layers":16}',
      on: "h100-sxm:8",
      batch: "64seq",
      seq: 4096,
    });
    await page.waitForFunction(
      (want) => document.querySelector(".ans h1").textContent.startsWith(want),
      written(results.step_time.estimate.value, 1),
    );
    await show(page, "#/plan?model=llama-3-70b&on=h100-sxm:8&batch=64seq&seq=8192");
    assert.match(await heading(page), /^It does not fit: \d+ GiB a chip, and one H100 has 80.0 GiB/);
    await page.waitForSelector(".say.no button:has-text('Apply')");
    await page.context().close();
  },
  async "models are found by keyboard, and the newest request wins"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:8&batch=64seq&seq=4096");
    await page.focus("[role=combobox] >> nth=0");
    await page.keyboard.type("mistral 7b");
    await page.waitForSelector("[role=option]");
    const first = await page.textContent("[role=option] >> nth=0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (id) => location.hash.includes(`model=${id}`),
      first.replace(/[\d.]+\u202f\w$/, "").trim(),
    );
    for (const chips of [16, 32, 64])
      await page.evaluate((n) => {
        location.hash = `#/plan?model=llama-3-8b&on=h100-sxm:${n}&batch=64seq&seq=4096`;
      }, chips);
    await page.waitForFunction(() => /on 64 H100/.test(document.querySelector(".ans h1").textContent));
    await page.waitForTimeout(300);
    assert.match(await heading(page), /on 64 H100/);
    await page.context().close();
  },
  async "a busy engine is asked again, and a bug of it leaves the last answer"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:8&batch=64seq&seq=4096");
    let busy = true;
    await page.click("button[aria-label='×2 Chips']"); // one of the changes that were tried: known at once
    await page.waitForFunction(() => /on 16 H100/.test(document.querySelector(".ans h1").textContent));
    await settled(page);
    const before = await heading(page);
    await page.route("**/api", (route) => (busy ? route.fulfill({ status: 503, body: "{}" }) : route.continue()));
    await page.getByLabel("Sequence", { exact: true }).fill("2048");
    await page.waitForSelector("text=The engine is busy");
    await page.waitForSelector(".engine.off:visible");
    assert.equal(await heading(page), before);
    busy = false;
    await page.waitForFunction(
      (old) => document.querySelector(".ans h1").textContent.replaceAll("\u202f", " ") !== old,
      before,
    );
    await page.waitForSelector(".engine:not(.off)");
    await settled(page);
    const crash = { error: { kind: "internal", where: "", what: "this is a bug", hint: "" }, request: "{}" };
    await page.unroute("**/api");
    await page.route("**/api", (route) =>
      route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify(crash) }),
    );
    await page.getByLabel("Sequence", { exact: true }).fill("1024");
    await page.waitForSelector("text=The engine made a mistake of its own");
    assert.match(await text(page, ".ans"), /on 16 H100/);
    await page.context().close();
    complaints.length = 0; // the browser reports both statuses
  },
  async "serving, rooflines, collectives, arrays and the book agree with the command line"(base) {
    const page = await openPage(base);
    await show(page, "#/serve?model=llama-3-8b&on=h100-sxm:1&prompt=1024&output=256&tpot=20ms&ttft=500ms&rate=2");
    const serve = ask("serve", {
      model: "llama-3-8b",
      on: "h100-sxm:1",
      prompt: 1024,
      output: 256,
      tpot: "20ms",
      ttft: "500ms",
    }).results;
    assert.ok(
      (await heading(page)).startsWith(
        `${written(serve.served.output_tokens_per_second.value, 1e3)} ktokens/s at ${written(serve.served.time_per_token.value, 1e-3)} ms per token with batch ${serve.batch}.`,
      ),
      await heading(page),
    );
    await page.waitForSelector("section[aria-label='Under load'] tbody tr");
    await show(page, "#/roofline?op=bf16[B,8192]+@+bf16[8192,28672]&on=h100-sxm&at=256");
    const roofline = ask("roofline", { op: "bf16[B,8192] @ bf16[8192,28672]", sizes: "B=256", on: "h100-sxm" }).results;
    assert.ok(
      (await heading(page)).endsWith(`${written(roofline.time.estimate.value, 1e-6)} µs.`),
      await heading(page),
    );
    await show(page, "#/network?kind=all-reduce&on=h100-sxm:8&bytes=1GB");
    const collective = ask("collective", { kind: "all-reduce", on: "h100-sxm:8", bytes: "1GB" }).results;
    assert.ok(
      (await heading(page)).startsWith(`${written(collective.time.estimate.value, 1e-3)} ms to all-reduce`),
      await heading(page),
    );
    await show(page, "#/sharding");
    const shard = ask("shard", {
      expr: "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]",
      mesh: "X=4,Y=4",
      sizes: "I=8192,J=8192,K=8192",
      on: "tpu-v5e:4x4",
    }).results;
    assert.ok((await heading(page)).includes(`${written(shard.time.estimate.value, 1e-3)} ms`), await heading(page));
    assert.equal(await page.locator(".steps button").count(), shard.steps.length);
    await page.waitForFunction(() => Number(document.querySelector(".play input").max) > 6); // hop by hop
    for (let k = 0; k < 8; k++) await page.click("button[aria-label='One step on']");
    await show(page, "#/matrix?M=8&K=16&N=16&array=8x8");
    assert.match(await heading(page), /^54 cycles, and 59.3 % /);
    await show(page, "#/accuracy?set=h200-ops");
    const validate = ask("validate", { set: "h200-ops", by: "hardware" }).results;
    assert.ok((await heading(page)).startsWith(`Half of ${validate.reported} `), await heading(page));
    await page.locator("section[aria-label='Predicted against measured'] .hit").first().dispatchEvent("click");
    await page.waitForSelector("a:has-text('Open in Roofline')");
    await show(page, "#/book?chapter=sharding");
    const book = ask("book", { chapter: "sharding" }).results;
    const own = book.figures.filter((figure) => figure.chapter === "sharding");
    assert.ok(
      (await text(page, "section[aria-label='Worked answers']")).includes(
        `${book.passed} of ${book.passed + book.failed} reproduced`,
      ),
    );
    for (const figure of own)
      assert.equal(
        (await page.locator(`section[aria-label="${figure.title}"] svg[role]`).count()) > 0,
        true,
        figure.title,
      );
    await page.context().close();
  },
  async "a designed chip and what runs on it are those of the command line"(base) {
    const page = await openPage(base);
    const workloads = async (set) => {
      const { results } = ask("design", { file: "h100", set });
      const on = (verb, args) =>
        ask(verb, { ...args, model: "llama-3-8b", catalogue: JSON.stringify({ "chips/h100": results.chip }) }).results;
      const train = on("train", { on: "h100:64", batch: "1Mi", seq: 8192 });
      const serve = on("serve", { on: "h100:8", prompt: 2048, output: 256 });
      return { results, train, serve };
    };
    const says = async (label, expected) =>
      page.waitForFunction(
        ([label, expected]) =>
          document
            .querySelector(`section[aria-label="${label}"] tbody`)
            .textContent.replaceAll("\u202f", " ")
            .includes(expected),
        [label, expected],
      );
    await show(page, "#/design");
    const known = await workloads([]);
    await says("Training on this chip", `${written(known.train.tokens_per_second.value, 1e3)} ktokens/s`);
    // a slider by keyboard: the address, the engine's figures and the change against the known chip follow
    await page.focus("input[type=range] >> nth=0");
    for (let k = 0; k < 12; k++) await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => /set=die.0.cores_on%3D120/.test(location.hash));
    await settled(page);
    const fewer = await workloads(["die.0.cores_on=120"]);
    assert.ok(
      (await heading(page)).startsWith(`${written(fewer.results.peak.value, 1e12)} TFLOP/s from `),
      await heading(page),
    );
    const rate = fewer.train.tokens_per_second.value;
    await says("Training on this chip", `${written(rate, 1e3)} ktokens/s`);
    await says(
      "Training on this chip",
      `\u2212${figures(100 * (1 - rate / known.train.tokens_per_second.value), 2)} %`,
    );
    await says("Serving on this chip", `${written(fewer.serve.served.output_tokens_per_second.value, 1e3)} ktokens/s`);
    await page.click("summary:has-text('Share')");
    await page.click("text=Copy as command");
    assert.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      "assay design h100 --set die.0.cores_on=120",
    );
    // what cannot be built is said in the engine's words beside the sliders, and nothing runs on it
    await show(page, "#/design?set=die.0.cores=288;die.0.cores_on=276");
    const { headline } = ask("design", { file: "h100", set: ["die.0.cores=288", "die.0.cores_on=276"] });
    assert.equal((await text(page, ".can")).toLowerCase(), `${headline.replaceAll(" mm2", " mm²").toLowerCase()}.`);
    assert.match(await text(page, "section[aria-label='Training on this chip'] tbody"), /^Tokens–/);
    // nothing moves, neither while a part is dragged nor where it becomes impossible
    const phone = await openPage(base, { width: 400 });
    const tops = () =>
      phone.evaluate(() =>
        [...document.querySelectorAll(".dial, .facts, .ans .card")].map((one) =>
          Math.round(one.getBoundingClientRect().top + scrollY),
        ),
      );
    await show(phone, "#/design?set=die.0.cores=288;die.0.cores_on=276");
    const impossible = (await tops()).slice(0, -1); // notes differ
    await show(phone, "#/design");
    assert.deepEqual((await tops()).slice(0, impossible.length), impossible);
    await phone.context().close();
    // a line that is no request says so at its field
    await show(page, "#/design?train=train+llama-3-7b+--on+{chip}:8+--batch+64seq");
    await page.waitForSelector("section[aria-label='Training on this chip'] input[aria-invalid=true]");
    await page.context().close();
  },
  async "every view is accessible from a phone to a wide screen, in both themes"(base) {
    const views = {
      plan: "",
      serve: "",
      roofline: "",
      sharding: "?frame=3",
      network: "",
      matrix: "",
      design: "",
      profile: "",
      accuracy: "?set=h200-ops",
      book: "?chapter=inference",
    };
    mkdirSync(shots, { recursive: true });
    for (const [width, theme] of [
      [390, "light"],
      [768, "dark"],
      [1440, "light"],
    ]) {
      const page = await openPage(base, { width, theme, height: width < 600 ? 780 : 1000 });
      for (const [view, query] of Object.entries(views)) {
        await show(page, `#/${view}${query}`);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        const wide = await page.evaluate(() =>
          [...document.querySelectorAll("main *")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .seg, .tabs"))
            .slice(0, 5)
            .map((one) => one.outerHTML.slice(0, 120)),
        );
        assert.ok(over <= 0, `${view} at ${width} is ${over} px too wide: ${wide.join(" | ")}`);
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme);
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        assert.deepEqual(
          found.violations.map(
            (one) =>
              `${one.id}: ${one.nodes
                .slice(0, 3)
                .map((node) => node.html.slice(0, 160))
                .join(" | ")}`,
          ),
          [],
          `${view} at ${width}`,
        );
        const name = `${view}-${width}-${theme}`;
        await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
        const look = await lookOf(await page.screenshot());
        if (has("--update")) looks[name] = look;
        else {
          const off = difference(look, looks[name] ?? "");
          assert.ok(
            off < 0.05,
            `${name} looks different: ${(100 * off).toFixed(1)} % off; see ${shots}, then --update`,
          );
        }
      }
      await page.context().close();
    }
    if (has("--update")) writeFileSync("tests/looks.json", JSON.stringify(looks, null, 1) + "\n");
  },
  "a file is taken wherever it is dropped, by what is in it": async (base) => {
    const page = await openPage(base);
    await page.goto(`${base}#/network`);
    const drop = async (name, content) => {
      const data = await page.evaluateHandle(
        ([name, bytes]) => {
          const all = new DataTransfer();
          all.items.add(new File([new Uint8Array(bytes)], name));
          return all;
        },
        [name, [...Buffer.from(content)]],
      );
      await page.dispatchEvent("footer", "drop", { dataTransfer: data });
    };
    await drop("noise.txt", "hello");
    await page.waitForFunction(() => /noise.txt is no profile/.test(document.querySelector(".toast").textContent));
    assert.match(new URL(page.url()).hash, /^#\/network/);
    await drop("binary", [1, 2, 0, 3]);
    await page.waitForFunction(() => location.hash.startsWith("#/profile"));
    await page.waitForFunction(() => /Nothing was priced/.test(document.querySelector("main").textContent));
    await drop("config.json", '{"base": "llama-3-8b", "num_hidden_layers": 16}');
    await page.waitForFunction(() => location.hash.startsWith("#/plan") && /num_hidden_layers/.test(location.hash));
    assert.equal(await page.locator("[aria-invalid=true]").count(), 0); // the rest of the request is the example's
    const script =
      "#!/bin/sh\ntorchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 32 " +
      "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16\n";
    await show(page, "#/plan?on=h100-sxm:64");
    await drop("run.sh", script);
    await page.waitForFunction(() => document.querySelector("pre[aria-label='The script']"));
    await settled(page);
    const { results } = ask("train", { from: script, on: "h100-sxm:64" });
    const expected = `${written(results.step_time.estimate.value, 1)} s per step on 64 H100`;
    assert.ok((await heading(page)).startsWith(expected), await heading(page));
    await drop("log.jsonl", '{"timestamp": 0, "input_length": 1000, "output_length": 100}\n'.repeat(3));
    await page.waitForFunction(() => location.hash.startsWith("#/serve"));
    await page.waitForFunction(() =>
      /as in log.jsonl/.test(document.querySelector("section[aria-label='Under load']")?.textContent),
    );
    await drop("blob.json", [0, 1, 2, 3]);
    await page.waitForFunction(() => location.hash.startsWith("#/profile") && !/model=/.test(location.hash));
    await page.context().close();
  },
  async "a timeline is moved, zoomed, read and opened in Perfetto"(base) {
    const page = await openPage(base);
    await page.context().route("https://ui.perfetto.dev/**", (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<script>addEventListener("message", ({ data, source }) => {
          if (data === "PING") opener.postMessage("PONG", "*");
          else document.title = new TextDecoder().decode(data.perfetto.buffer).slice(0, 16) + data.perfetto.title;
        });</script>`,
      }),
    );
    await show(page, "#/plan?model=llama-3-70b&on=h100-sxm:64&batch=128seq&seq=4096&pp=4");
    const last = () => page.locator("section[aria-label=Timeline] svg text").last().textContent();
    const whole = await last();
    const chart = page.locator(".timeline").first();
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    await page.mouse.move(box.x + 140, box.y + 8);
    assert.match(await text(page, ".tip"), /^stage 0: (for|back)ward, microbatch \d+(, part \d+)?, [\d.]+ ms$/);
    await chart.focus();
    await page.keyboard.press("+");
    await page.keyboard.press("+");
    assert.notEqual(await last(), whole);
    const zoomed = await last();
    await page.mouse.move(box.x + 700, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + 100, box.y + 8);
    await page.mouse.up();
    assert.notEqual(await last(), zoomed);
    await page.click("button[aria-label='Show the whole step']");
    assert.equal(await last(), whole);
    const [other] = await Promise.all([
      page.context().waitForEvent("page"),
      page.click("button[aria-label='Open in Perfetto']"),
    ]);
    await other.waitForFunction(() => document.title !== "");
    assert.match(await other.title(), /^\{"traceEvents":\[llama-3-70b on h100-sxm:64/);
    await page.context().close();
  },
  async "one change is recommended once all are tried, and nothing moves"(base) {
    const page = await openPage(base);
    await page.goto(`${base}#/plan?model=llama-3-8b&on=h100-sxm:16&batch=64seq&seq=4096`);
    await page.waitForSelector(".fact.waits");
    const height = () => page.evaluate(() => document.querySelector(".facts").offsetHeight);
    const before = await height();
    assert.equal(await page.locator(".facts button:has-text('Apply')").count(), 0);
    assert.match(await text(page, ".fact.waits"), /\d of \d+ are tried/);
    await page.waitForSelector(".fact:has-text('What should I change?'):not(.waits)");
    assert.equal(await height(), before);
    assert.match(await text(page, "section[aria-label='What would change it'] .note"), /^\d+ tried, each alone/);
    await page.context().close();
  },
  async "a plan is pinned at its headline and compared with other requests"(base) {
    const page = await openPage(base);
    await show(page, "#/plan?model=llama-3-8b&on=h100-sxm:16&batch=64seq&seq=4096");
    await page.click("text=Pin to compare");
    await page.evaluate(() => (location.hash = location.hash.replace("on=h100-sxm:16", "on=b200:16")));
    await page.waitForFunction(() => /on 16 B200/.test(document.querySelector(".ans h1").textContent));
    await settled(page);
    await page.click("text=Pin to compare");
    await page.waitForSelector(
      "section[aria-label=Compare] svg[role=img][aria-label*='h100-sxm:16'][aria-label*='b200:16']",
    );
    for (const width of [390, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const places = await page.$$eval("section[aria-label=Compare] td:nth-child(3)", (cells) =>
        cells.map((cell) => getComputedStyle(cell).display),
      );
      assert.ok(places.length > 5 && places.every((one) => one === "table-cell"));
    }
    await page.context().close();
  },
  async "a folder of files works without a network"() {
    const folder = mkdtempSync(join(tmpdir(), "assay-site-"));
    cpSync("dist", folder, { recursive: true });
    for (const file of ["engine.js", "engine.wasm"]) writeFileSync(join(folder, file), "");
    const said = JSON.stringify({
      error: { kind: "input", where: "model", what: "an answer of the folder", hint: "" },
    });
    writeFileSync(
      join(folder, "engine_worker.js"),
      `onmessage = ({ data }) => postMessage({ id: data.id, answer: ${JSON.stringify(said)} });`,
    );
    const page = await openPage(await files(folder));
    await page.goto(`${page.base}#/plan`);
    await page.waitForSelector("text=An answer of the folder");
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.context().setOffline(true);
    await page.goto("about:blank");
    await page.goto(`${page.base}#/plan`);
    await page.waitForSelector("text=An answer of the folder");
    await page.evaluate(() => document.fonts.ready);
    await page.context().close();
    complaints.length = 0; // what is not there is reported by the browser
  },
  async "the accuracy is there at once"(base) {
    const page = await openPage(base);
    const asked = [];
    page.on("request", (request) => request.method() === "POST" && asked.push(request.postData()));
    const at = Date.now();
    await show(page, "#/accuracy?set=inference-ttft");
    assert.ok(Date.now() - at < 4000, `${Date.now() - at} ms`);
    assert.ok(!asked.some((one) => one.includes("validate")), "validate was asked");
    const { results } = ask("validate", { set: "inference-ttft", by: "hardware" });
    assert.ok((await heading(page)).startsWith(`Half of ${results.reported} published times to the first token`));
    await page.context().close();
  },
  "samples are profiles to look at": async (base) => {
    const page = await openPage(base);
    await page.goto(`${base}#/profile`);
    await page.waitForSelector(".drop.zone");
    for (const [name, says] of [
      ["A training run in PyTorch", /busy/],
      ["Before and after", /Before and after/],
      ["A program in JAX", /busy/],
    ]) {
      await page.click(`.samples button:has-text('${name}')`);
      await page.waitForFunction(
        (source) =>
          document.querySelector(".ans h1") && new RegExp(source).test(document.querySelector("main").textContent),
        says.source,
      );
      await page.click("text=Close");
    }
    await page.context().close();
  },
  "a profile is read where it is dropped": async (base) => {
    const page = await openPage(base);
    const name = "llama8b-4l-train.kineto.json.gz";
    const path = join("../tests/data/profiles", name);
    await page.goto(`${base}#/profile`);
    await page.setInputFiles("input[type=file]", path);
    await page.waitForFunction(() => document.querySelector(".ans h1"));
    const { results, headline } = JSON.parse(
      execFileSync(assay, ["profile", path, "--format", "json"], { maxBuffer: 1 << 26 }),
    );
    assert.match(await heading(page), new RegExp(headline.split(" on ")[0].replace(".", "\\.")));
    const facts = await text(page, ".facts");
    assert.match(facts, new RegExp(written(results.total_time.value, 1e-3)));
    assert.match(facts, new RegExp(written(results.host_bound_time.value, 1e-3)));
    assert.match(await text(page, "main"), /aten::mm/);
    const rows = await page.locator("section[aria-label='The slowest operations'] tbody tr").count();
    assert.equal(rows, 12);
    // before and after
    await page.setInputFiles("input[type=file]", [path, "../tests/data/profiles/two-steps.json"]);
    await page.waitForFunction(() => /Before and after/.test(document.querySelector("main").textContent));
    // what cannot be read is said
    await page.setInputFiles("input[type=file]", {
      name: "x.json",
      mimeType: "text/plain",
      buffer: Buffer.from("no profile"),
    });
    await page.waitForFunction(() => /Nothing was priced/.test(document.querySelector("main").textContent));
    await page.context().close();
  },

  "a report is one file that sorts and searches": async (base) => {
    const file = join(shots, "report.html");
    mkdirSync(shots, { recursive: true });
    execFileSync(assay, ["profile", "../tests/data/profiles/llama8b-4l-train.kineto.json.gz", "--output", file]);
    const page = await openPage(base);
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`file://${resolve(file)}`);
    assert.equal(asked.length, 1); // nothing but itself
    assert.match(await text(page, "h1"), /82\.3 ms on NVIDIA H200/);
    assert.ok((await page.locator("figure svg").count()) >= 2); // the timeline and the difference
    const table = page.locator("details", { has: page.locator("summary", { hasText: /^operations/ }) });
    const calls = async () => (await table.locator("tbody tr:not([hidden]) td:nth-child(1)").allTextContents()).length;
    const all = await calls();
    await table.locator("th button", { hasText: /^time$/ }).click();
    const at = await table.locator("th", { hasText: /^time$/ }).evaluate((head) => head.cellIndex);
    const times = await table
      .locator("tbody tr")
      .evaluateAll((rows, cell) => rows.map((row) => Number(row.cells[cell].dataset.v)), at);
    assert.deepEqual(
      times,
      [...times].sort((a, b) => b - a),
    );
    await table.locator("th button", { hasText: /^time$/ }).click(); // the other way round
    assert.ok((await table.locator("tbody tr td:nth-child(1)").count()) === all);
    await page.fill("input[type=search]", "aten::mm");
    const left = await calls();
    assert.ok(left > 0 && left < all, `${left} of ${all}`);
    await page.context().close();
  },
};
// the WebAssembly engine is slower and the same: what needs many answers is asked of the server alone
const brief = new Set([
  "the plan says what the command line says",
  "a link restores what was asked, pins and all",
  "what is wrong is said at its field, with near names",
  "a profile is read where it is dropped",
]);

let failed = 0;
try {
  for (const server of servers) {
    const base = await server.open();
    for (const [name, test] of Object.entries(tests)) {
      if ((server.name === "site" && !brief.has(name)) || (has("--only") && !name.includes(option("--only")))) continue;
      complaints.length = 0;
      const at = Date.now();
      try {
        await test(base);
        assert.deepEqual(complaints, []);
        console.log(`ok ${server.name}: ${name} (${((Date.now() - at) / 1000).toFixed(1)} s)`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED ${server.name}: ${name}\n${error.stack}\n${[...new Set(complaints)].join("\n")}`);
        for (const context of browser.contexts()) if (context !== eye.context()) await context.close();
      }
    }
  }
} finally {
  await browser.close();
  for (const child of children) {
    child.removeAllListeners("exit");
    child.kill();
  }
}
process.exit(failed > 0 ? 1 : 0);
