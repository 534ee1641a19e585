import assert from "node:assert/strict";
import { test } from "node:test";
import { asCommand, fromCommand } from "../src/engine/command";
import { controlsOf, memoryOf, merged, placeOf, readSets, setsAfter, valuesOf } from "../src/views/design/parts";
import type { Control } from "../src/views/design/parts";
import { chipOf } from "../src/views/design/workload";

const file = `id = "two \\"dies\\""
clock = "2.1 GHz"

[source]

[source.vendor]
accessed = 2026-11-10

[memory]
kind = "hbm3"
capacity = "24 GB"

[[die]]
node = "5nm"
count = 8
cores = 40
cores_on = 38
matrix_units = 4
multiply_adds = 256
local = "608 KiB"

[[die]]
node = "6nm"
count = 4
cache = "64 MiB"
stacks = 2

[die.links]
infinity-fabric = 2
`;
const base = valuesOf(file);
const all = (sets: string): Control[] => {
  const controls = controlsOf(base, readSets(sets));
  return [...controls.first, controls.power, ...controls.dies.flatMap((die) => die.controls)];
};
/** The parts that differ after a slider went to a value. */
const after = (sets: string, path: string, value: string): string => {
  const control = all(sets).find((one) => one.path === path)!;
  assert.ok(control.list.includes(value), `${path} cannot be ${value}`);
  return setsAfter(base, readSets(sets), { [path]: value, ...control.also?.(value) });
};

test("a design is read into paths", () => {
  assert.equal(base.get("id"), 'two "dies"');
  assert.equal(base.get("die.0.cores"), "40");
  assert.equal(base.get("die.1.stacks"), "2");
  assert.equal(base.get("die.1.links.infinity-fabric"), "2");
  assert.equal(base.get("memory.kind"), "hbm3");
  assert.equal(base.has("die.0.cache"), false);
});

test("only what differs is named", () => {
  assert.equal(after("", "clock", "2.2 GHz"), "clock=2.2 GHz");
  assert.equal(after("clock=2.2 GHz", "clock", "2.1 GHz"), "");
  assert.equal(after("", "power", "500 W"), "power=500 W");
  assert.equal(after("power=500 W", "power", ""), "");
  assert.equal(merged(base, readSets("memory.capacity=;clock=1 GHz")).has("memory.capacity"), false);
});

test("spare cores stay spare, and stacks are on as far as there are PHYs", () => {
  assert.equal(after("", "die.0.cores", "50"), "die.0.cores=50;die.0.cores_on=48");
  assert.equal(after("", "die.1.stacks", "3"), "die.1.stacks=3");
  assert.equal(after("", "memory.stacks_on", "5"), "memory.stacks_on=5");
  assert.equal(after("memory.stacks_on=5", "memory.stacks_on", "8"), "");
  assert.equal(after("memory.stacks_on=5", "die.1.stacks", "1"), "die.1.stacks=1");
  assert.equal(all("die.1.stacks=3").find((one) => one.path === "memory.stacks_on")?.shown, "12 of 12");
});

test("another memory has its own capacity, and the first one its old", () => {
  const other = setsAfter(base, readSets(""), memoryOf(base, "hbm3e"));
  assert.equal(other, "memory.kind=hbm3e;memory.capacity=");
  assert.equal(setsAfter(base, readSets(other), memoryOf(base, "hbm3")), "");
});

test("a slider stands at the nearest of its values", () => {
  assert.equal(placeOf(["0.5 GHz", "1 GHz", "2 GHz"], "1.2 GHz"), 1);
  assert.equal(placeOf(["100 W", "125 W", ""], ""), 2);
  for (const control of all("")) assert.ok(control.list.includes(control.value), control.path);
});

test("a line is a request and back", () => {
  const line = "serve llama-3-8b --on mine:8 --prompt 2048 --output 256";
  const read = fromCommand(line, ["serve"]);
  assert.deepEqual(read, {
    verb: "serve",
    arguments: { model: "llama-3-8b", on: "mine:8", prompt: "2048", output: "256" },
  });
  assert.equal(typeof read === "string" ? read : asCommand(read), `assay ${line}`);
  const quoted = fromCommand(`assay train '{"base": "llama-3-8b"}' --sequence-parallel --set a=1 --set "b c=2"`, [
    "train",
  ]);
  assert.deepEqual(typeof quoted === "string" ? quoted : quoted.arguments, {
    model: '{"base": "llama-3-8b"}',
    "sequence-parallel": true,
    set: ["a=1", "b c=2"],
  });
  assert.equal(fromCommand("chips h100", ["train"]), "A request begins with train");
  assert.equal(fromCommand("train a b", ["train"]), "“b” is neither an option nor the value of one");
});

test("a chip file has its id", () => {
  assert.deepEqual(chipOf('id = "h100"\nbase = "x"\n'), { id: "h100", text: 'id = "h100"\nbase = "x"\n' });
  assert.equal(chipOf(undefined), null);
});
