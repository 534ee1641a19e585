import assert from "node:assert/strict";
import { test } from "node:test";
import { asCommand, asLines, asPython } from "../src/engine/command";
import { chipOf, clusterOf, filled, requestOf, resize, shapeOf, shortChip } from "../src/engine/request";
import { problemAt, nearest } from "../src/parts/panel";
import { search } from "../src/parts/fields";
import { read, write } from "../src/url";
import { csv } from "../src/parts/share";

test("an address says a request and back", () => {
  const place = {
    view: "plan",
    query: { model: "llama-3-70b", on: "tpu-v5p:16x16x16", batch: "4Mi", set: "memory.hbm.bandwidth=4TB/s" },
  };
  const hash = write(place);
  assert.equal(hash, "#/plan?model=llama-3-70b&on=tpu-v5p:16x16x16&batch=4Mi&set=memory.hbm.bandwidth%3D4TB/s");
  assert.deepEqual(read(hash), place);
  const config = { view: "plan", query: { model: '{"base": "llama-3-8b", "x": "a&b=c#d"}' } };
  assert.deepEqual(read(write(config)), config);
});

test("requests have only what their verb knows", () => {
  const request = requestOf(
    "train",
    filled(
      {
        model: "m",
        on: "h100-sxm:8",
        batch: "64seq",
        theme: "dark",
        open: "step time",
        "sequence-parallel": "true",
        set: "a=1;b=2",
        tp: "",
      },
      { model: "other" },
    ),
  );
  assert.deepEqual(request.arguments, {
    model: "m",
    on: "h100-sxm:8",
    batch: "64seq",
    "sequence-parallel": true,
    set: ["a=1", "b=2"],
  });
  assert.deepEqual(filled({ theme: "dark" }, { model: "x" }), { model: "x", theme: "dark" });
});

test("commands and Python calls ask the same", () => {
  const request = {
    verb: "train" as const,
    arguments: {
      model: "llama-3-70b",
      on: "h100-sxm:1024",
      batch: "4Mi",
      graphs: false,
      "sequence-parallel": true,
      set: ["a=1", "b c=2"],
    },
  };
  assert.equal(
    asCommand(request),
    "assay train llama-3-70b --on h100-sxm:1024 --batch 4Mi --graphs=no --sequence-parallel --set a=1 --set 'b c=2'",
  );
  assert.equal(
    asPython(request),
    'import assay\n\nanswer = assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi", graphs=False, sequence_parallel=True, set=["a=1", "b c=2"])\nprint(answer)\n',
  );
  assert.match(
    asPython({ verb: "train", arguments: { model: "gpt2", seq: "4096", tp: "8", batch: "1Mi" } }),
    /seq=4096, tp=8, batch="1Mi"/,
  );
  assert.equal(
    asLines({ verb: "train", arguments: { model: "llama-3-70b", on: "h100-sxm:1024", batch: "4Mi", seq: "8192" } }),
    "assay train llama-3-70b \\\n  --on h100-sxm:1024 \\\n  --batch 4Mi \\\n  --seq 8192",
  );
  assert.equal(asLines({ verb: "systolic", arguments: { N: 3, M: 1, K: 2 } }), "assay systolic 1 2 3");
  assert.equal(asCommand({ verb: "systolic", arguments: { N: 3, M: 1, K: 2 } }), "assay systolic 1 2 3");
});

test("sizes are halved and doubled as they are written", () => {
  assert.equal(resize("1024seq", 2), "2048seq");
  assert.equal(resize("1Mi", 0.5), "512Ki");
  assert.equal(resize("1GB", 0.5), "500MB");
  assert.equal(resize("4x4x8", 2), "8x4x8");
  assert.equal(resize("4x4x8", 0.5), "4x4x4");
  assert.equal(resize("1", 0.5), null);
  assert.equal(resize("8..64", 2), null);
  assert.equal(clusterOf(chipOf("tpu-v5e:4x4"), shapeOf("tpu-v5e:4x4")), "tpu-v5e:4x4");
  assert.equal(shortChip("h100-sxm"), "H100");
  assert.equal(shortChip("tpu-v5p"), "TPU v5p");
});

test("an error belongs to the field that it names", () => {
  const refusal = {
    error: {
      kind: "missing" as const,
      where: "MODEL",
      what: 'unknown model "llama-3-7b"',
      hint: "did you mean llama-2-7b, llama-3-70b or llama-3-8b?",
    },
  };
  assert.deepEqual(problemAt(refusal, "model")?.names, ["llama-2-7b", "llama-3-70b", "llama-3-8b"]);
  assert.equal(problemAt(refusal, "on"), undefined);
  assert.equal(
    problemAt({ error: { kind: "usage", where: "train", what: "--batch is missing", hint: "" } }, "batch")?.text,
    "Batch is missing.",
  );
  assert.deepEqual(nearest("write a whole number"), []);
});

test("a search finds words in any order", () => {
  const models = [{ value: "llama-3-8b" }, { value: "llama-3-70b" }, { value: "llama-2-70b" }];
  assert.deepEqual(
    search(models, "70b 3").map((one) => one.value),
    ["llama-3-70b"],
  );
  assert.equal(search(models, "").length, 3);
});

test("csv quotes what needs it", () => {
  assert.equal(
    csv([
      ["a", "b"],
      ['x, "y"', 1.5],
    ]),
    'a,b\n"x, ""y""",1.5\n',
  );
});
