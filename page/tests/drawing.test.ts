import assert from "node:assert/strict";
import { test } from "node:test";
import { apart, decades, histogram, joinNarrow, linear, logTicks, logarithmic, stack, ticks } from "../src/draw/scale";
import { markPath } from "../src/draw/svg";
import { chromeTrace } from "../src/views/plan/perfetto";
import type { Timeline } from "../src/views/plan/perfetto";
import { barWords, panned, zoomed } from "../src/views/plan/timeline";

test("scales map ends to ends", () => {
  const x = linear(0, 10, 100, 200);
  assert.equal(x(0), 100);
  assert.equal(x(5), 150);
  const y = logarithmic(1, 1000, 0, 300);
  assert.ok(Math.abs(y(10) - 100) < 1e-9);
  assert.equal(linear(3, 3, 0, 10)(3), 0);
});

test("ticks are round and inside", () => {
  assert.deepEqual(ticks(0, 7.19, 7), [0, 2, 4, 6]);
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(decades(1e-3, 1), [0.001, 0.01, 0.1, 1]);
  assert.deepEqual(logTicks(1, 100, 8), [1, 2, 5, 10, 20, 50, 100]);
  assert.ok(logTicks(1, 1e12, 6).length <= 7);
  assert.ok(logTicks(21, 23).every((t) => t >= 21 && t <= 23));
});

test("a stacked bar leaves out what is nothing and keeps slivers visible", () => {
  const pieces = stack(
    [
      { name: "a", value: 50, fill: "" },
      { name: "none", value: 0, fill: "" },
      { name: "b", value: 0.001, fill: "" },
    ],
    linear(0, 100, 0, 100),
  );
  assert.deepEqual(
    pieces.map((piece) => piece.name),
    ["a", "b"],
  );
  assert.equal(pieces[0]!.width, 49);
  assert.equal(pieces[1]!.width, 1);
});

test("bars below a pixel are joined with their like, and no time is lost", () => {
  const bars = Array.from({ length: 1000 }, (_, i) => ({
    lane: 0,
    kind: i < 500 ? 0 : 1,
    label: `F${i}`,
    start: i,
    end: i + 1,
  }));
  const joined = joinNarrow(bars, linear(0, 1000, 0, 100));
  assert.equal(joined.length, 2);
  assert.equal(
    joined.reduce((sum, bar) => sum + bar.end - bar.start, 0),
    1000,
  );
  assert.equal(joinNarrow(bars.slice(0, 3), linear(0, 3, 0, 300)).length, 3);
});

test("labels move apart", () => {
  const moved = apart([50, 52, 51], 15, 0, 200);
  const sorted = [...moved].sort((a, b) => a - b);
  assert.ok(sorted[1]! - sorted[0]! >= 15 && sorted[2]! - sorted[1]! >= 15);
});

test("a histogram counts everything once", () => {
  assert.deepEqual(histogram([-1, 0, 0.1, 5], -0.4, 0.4, 4), [1, 0, 2, 1]);
});

test("marks are paths", () => {
  for (const shape of ["circle", "square", "triangle", "diamond"] as const)
    assert.match(markPath(shape, 10, 10, 4), /^M/);
});

test("a timeline becomes a trace, moves and zooms", () => {
  const s = (value: number) => ({ value, unit: "s" });
  const timeline = {
    title: "t",
    subtitle: "",
    lanes: [{ name: "stage 0", members: 2 }],
    classes: ["forward"],
    bars: [{ lane: 0, class: 0, label: "F3.1", start: s(1), end: s(1.5), alone: null }],
    marks: [],
    counters: [{ name: "bytes", points: [{ at: s(2), value: 7 }] }],
  } as unknown as Timeline;
  const { traceEvents } = JSON.parse(chromeTrace(timeline)) as { traceEvents: Record<string, unknown>[] };
  assert.deepEqual(
    traceEvents.map((event) => event.ph),
    ["M", "M", "X", "C"],
  );
  assert.equal(traceEvents[2]!.ts, 1e6);
  assert.equal(traceEvents[2]!.dur, 5e5);
  assert.equal(barWords("F3.1", "forward"), "forward, microbatch 3, part 1");
  assert.equal(barWords("send 0.0", "send"), "send, microbatch 0, part 0");
  assert.equal(barWords("Norm", "memory"), "Norm, memory");
  const half = zoomed({ from: 0, span: 1 }, 2, 0.5);
  assert.deepEqual(half, { from: 0.25, span: 0.5 });
  assert.deepEqual(panned(half, 10), { from: 0.5, span: 0.5 });
  assert.deepEqual(zoomed(half, 0.1, 0.5), { from: 0, span: 1 });
});
