// The notation of sharded arrays, A[I_X, J_Y] {U_Z}: which part of an array each device holds.

export interface Axis {
  name: string;
  size: number;
}
export interface Dimension {
  name: string;
  axes: string[];
}
export interface Tensor {
  text: string;
  name: string;
  dimensions: Dimension[];
  /** Axes over which partial sums are still to be added. */
  partial: string[];
}
export type Coordinates = Record<string, number>;

export function parseMesh(text: string): Axis[] {
  return text.split(",").flatMap((part) => {
    const match = /^\s*(\w+)\s*=\s*(\d+)\s*$/.exec(part);
    return match ? [{ name: match[1]!, size: Number(match[2]) }] : [];
  });
}

/** Splits "XY" or "dp+fsdp" into names of mesh axes, the longest first. */
function split(text: string, axes: readonly Axis[]): string[] {
  const names = axes.map((axis) => axis.name).sort((a, b) => b.length - a.length);
  const found: string[] = [];
  let rest = text.replace(/[,+\s]/g, "");
  while (rest) {
    const next = names.find((name) => rest.startsWith(name));
    if (!next) return found;
    found.push(next);
    rest = rest.slice(next.length);
  }
  return found;
}

export function parseTensor(text: string, axes: readonly Axis[]): Tensor | null {
  const match = /([A-Za-z]\w*)\s*\[([^\]]*)\]\s*(?:\{\s*U_([\w,+\s]+)\})?/.exec(text);
  if (!match) return null;
  const dimensions = match[2]!.split(",").map((part) => {
    const [name = "", sub = ""] = part.trim().split("_");
    return { name, axes: split(sub, axes) };
  });
  return { text: match[0].trim(), name: match[1]!, dimensions, partial: split(match[3] ?? "", axes) };
}

export interface Step {
  /** What it makes. */
  result: Tensor;
  /** What a collective starts from. */
  source: Tensor | null;
}
/** "C[I_X, K] = AllReduce_Y(C[I_X, K] {U_Y})" as its result and source. */
export function parseStep(text: string, axes: readonly Axis[]): Step | null {
  const at = text.indexOf(" = ");
  if (at < 0) return null;
  const result = parseTensor(text.slice(0, at), axes);
  const inside = /\((.*)\)$/.exec(text.slice(at + 3));
  return result && { result, source: inside ? parseTensor(inside[1]!, axes) : null };
}

/** All devices of a mesh in order, the last axis fastest. */
export function devicesOf(axes: readonly Axis[]): Coordinates[] {
  let list: Coordinates[] = [{}];
  for (const axis of axes)
    list = list.flatMap((one) => Array.from({ length: axis.size }, (_, k) => ({ ...one, [axis.name]: k })));
  return list;
}

export interface Range {
  from: number;
  to: number;
}
/** The part of a dimension that a device holds, as shares of it; subscripts are major first. */
export function partOf(dimension: Dimension | undefined, device: Coordinates, axes: readonly Axis[]): Range {
  let from = 0;
  let size = 1;
  for (const name of dimension?.axes ?? []) {
    const axis = axes.find((one) => one.name === name);
    if (!axis) continue;
    size /= axis.size;
    from += (device[name] ?? 0) * size;
  }
  return { from, to: from + size };
}
export const shardsOf = (dimension: Dimension | undefined, axes: readonly Axis[]): number =>
  (dimension?.axes ?? []).reduce((n, name) => n * (axes.find((one) => one.name === name)?.size ?? 1), 1);

export interface Block {
  rows: Range;
  columns: Range;
  /** "2 of 4": how many of the sums to be added are in it. */
  sums?: string;
  fresh?: boolean;
}
/** The two dimensions that are drawn: sharded ones first, in the array's order. */
export function drawn(tensors: readonly Tensor[]): [number, number] {
  const count = Math.max(...tensors.map((tensor) => tensor.dimensions.length));
  const busy = Array.from({ length: count }, (_, i) => i).filter((i) =>
    tensors.some((tensor) => (tensor.dimensions[i]?.axes.length ?? 0) > 0),
  );
  const rest = Array.from({ length: count }, (_, i) => i).filter((i) => !busy.includes(i));
  const [a = 0, b = count > 1 ? 1 : 0] = [...busy, ...rest].slice(0, 2).sort((x, y) => x - y);
  return [a, b];
}

const addends = (tensor: Tensor, axes: readonly Axis[]): number =>
  tensor.partial.reduce((n, name) => n * (axes.find((one) => one.name === name)?.size ?? 1), 1);

/** What a device holds of an array. */
export function holds(tensor: Tensor, device: Coordinates, axes: readonly Axis[], dims: [number, number]): Block[] {
  const all = addends(tensor, axes);
  const rows = partOf(tensor.dimensions[dims[0]], device, axes);
  const columns = dims[1] === dims[0] ? { from: 0, to: 1 } : partOf(tensor.dimensions[dims[1]], device, axes);
  return [{ rows, columns, ...(all > 1 ? { sums: `1 of ${all}` } : {}) }];
}

interface Held {
  block: number;
  from: number[];
}
const within = (range: Range, index: number, count: number): Range => {
  const size = (range.to - range.from) / count;
  return { from: range.from + index * size, to: range.from + (index + 1) * size };
};

/**
 * What a device holds during a collective over one axis: blocks of the simulation laid onto the array. A gather moves the
 * shards of the dimension that loses the axis, a reduction the parts of the one that gets it, an exchange both.
 */
export function holdsDuring(
  step: { result: Tensor; source: Tensor },
  axis: Axis,
  blocks: readonly Held[],
  before: readonly Held[] | undefined,
  device: Coordinates,
  axes: readonly Axis[],
  dims: [number, number],
): Block[] {
  const { source, result } = step;
  const loses = source.dimensions.findIndex(
    (dimension, i) => dimension.axes.includes(axis.name) && !(result.dimensions[i]?.axes.includes(axis.name) ?? false),
  );
  const gains = result.dimensions.findIndex(
    (dimension, i) => dimension.axes.includes(axis.name) && !(source.dimensions[i]?.axes.includes(axis.name) ?? false),
  );
  const reduces = source.partial.includes(axis.name);
  const key = (one: Held): string => `${one.block}/${one.from.join(",")}`;
  const had = new Set((before ?? blocks).map(key));
  return blocks.map((held) => {
    const range = (dim: number): Range => {
      const here = { ...device };
      if (dim === loses) here[axis.name] = gains >= 0 ? held.from[0]! : held.block;
      const base = partOf(source.dimensions[dim], here, axes);
      if (dim === gains || (reduces && gains < 0 && dim === dims[0])) return within(base, held.block, axis.size);
      return base;
    };
    return {
      rows: range(dims[0]),
      columns: dims[1] === dims[0] ? { from: 0, to: 1 } : range(dims[1]),
      ...(reduces && held.from.length < axis.size ? { sums: `${held.from.length} of ${axis.size}` } : {}),
      fresh: !had.has(key(held)),
    };
  });
}
