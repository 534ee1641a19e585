import assert from "node:assert/strict";
import { test } from "node:test";
import {
  devicesOf,
  drawn,
  holds,
  holdsDuring,
  parseMesh,
  parseStep,
  parseTensor,
  partOf,
  shardsOf,
} from "../src/views/sharding/notation";
import { busyAt } from "../src/views/matrix/array";
import type { Run } from "../src/views/matrix/array";

const axes = parseMesh("X=4,Y=2");

test("the notation is read", () => {
  assert.deepEqual(axes, [
    { name: "X", size: 4 },
    { name: "Y", size: 2 },
  ]);
  const tensor = parseTensor("C[I_XY, K] {U_Y}", axes)!;
  assert.deepEqual(tensor.dimensions, [
    { name: "I", axes: ["X", "Y"] },
    { name: "K", axes: [] },
  ]);
  assert.deepEqual(tensor.partial, ["Y"]);
  assert.equal(shardsOf(tensor.dimensions[0], axes), 8);
  const words = parseMesh("dp=4,fsdp=2");
  assert.deepEqual(parseTensor("C[I_dp+fsdp, K]", words)!.dimensions[0], { name: "I", axes: ["dp", "fsdp"] });
  assert.deepEqual(parseTensor("C[I, K] {U_dp+fsdp}", words)!.partial, ["dp", "fsdp"]);
  const step = parseStep("C[I_X, K] = AllReduce_Y(C[I_X, K] {U_Y})", axes)!;
  assert.deepEqual(step.source?.partial, ["Y"]);
  assert.equal(parseStep("C[I_X, K] {U_Y} = A[I_X, J_Y] ·J B[J_Y, K]", axes)?.source, null);
});

test("every part of an array lies on some device, once for each copy", () => {
  const tensor = parseTensor("A[I_X, J]", axes)!;
  const area = devicesOf(axes).reduce((sum, device) => {
    const rows = partOf(tensor.dimensions[0], device, axes);
    return sum + rows.to - rows.from;
  }, 0);
  assert.equal(area, 2); // two copies, over Y
  assert.deepEqual(partOf(parseTensor("A[I_YX, J]", axes)!.dimensions[0], { X: 1, Y: 1 }, axes), {
    from: 0.625,
    to: 0.75,
  }); // Y is major
  assert.equal(holds(parseTensor("C[I, K] {U_X}", axes)!, { X: 0, Y: 0 }, axes, [0, 1])[0]?.sums, "1 of 4");
});

test("hops of a collective are laid onto the array", () => {
  const gather = parseStep("A[I, J] = AllGather_X(A[I_X, J])", axes)! as {
    result: NonNullable<ReturnType<typeof parseTensor>>;
    source: NonNullable<ReturnType<typeof parseTensor>>;
  };
  const axis = axes[0]!;
  const held = holdsDuring(
    gather,
    axis,
    [
      { block: 1, from: [1] },
      { block: 2, from: [2] },
    ],
    [{ block: 1, from: [1] }],
    { X: 1, Y: 0 },
    axes,
    drawn([gather.source]),
  );
  assert.deepEqual(
    held.map((block) => [block.rows.from, block.rows.to, block.fresh]),
    [
      [0.25, 0.5, false],
      [0.5, 0.75, true],
    ],
  );
  const reduce = parseStep("C[I, K_X] = ReduceScatter_X(C[I, K] {U_X})", axes)! as typeof gather;
  const [block] = holdsDuring(reduce, axis, [{ block: 3, from: [0, 1] }], undefined, { X: 0, Y: 0 }, axes, [0, 1]);
  assert.deepEqual([block?.columns.from, block?.columns.to, block?.sums], [0.75, 1, "2 of 4"]);
});

// Counts of the engine: assay systolic 8 16 16 --array 8x8, and 3 10 9 --array 8x8
test("the picture of the array works as often as the engine counts", () => {
  const sum = (run: Run, total: number): { useful: number; padded: number } =>
    Array.from({ length: total }, (_, cycle) => busyAt(run, cycle)).reduce((a, b) => ({
      useful: a.useful + b.useful,
      padded: a.padded + b.padded,
    }));
  assert.deepEqual(sum({ rows: 8, columns: 8, m: 8, k: 16, n: 16, tiles: 4, load: 8, interval: 8 }, 54), {
    useful: 8 * 16 * 16,
    padded: 0,
  });
  assert.deepEqual(sum({ rows: 8, columns: 8, m: 3, k: 10, n: 9, tiles: 4, load: 8, interval: 8 }, 49), {
    useful: 3 * 10 * 9,
    padded: 4 * 3 * 64 - 270,
  });
});
