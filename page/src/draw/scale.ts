// Scales, ticks and layout of charts: pure, so that they are tested without a browser.

export type Scale = (x: number) => number;
export const linear = (from: number, to: number, start: number, end: number): Scale => {
  const slope = to === from ? 0 : (end - start) / (to - from);
  return (x) => start + (x - from) * slope;
};
export const logarithmic = (from: number, to: number, start: number, end: number): Scale => {
  const span = Math.log(to / from);
  return (x) => start + (span === 0 ? 0 : (Math.log(Math.max(x, Number.MIN_VALUE) / from) / span) * (end - start));
};
export const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));

/** Round steps between `from` and `to`, about `count` of them. */
export function ticks(from: number, to: number, count = 5): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((k) => k * power >= rough * 0.999) ?? 10) * power;
  const list: number[] = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++)
    list.push(Number((k * step).toPrecision(12)));
  return list;
}

/** Powers of ten between two values, with what lies between them if `between` says so (1, 2, 5). */
export function decades(from: number, to: number, between: readonly number[] = [1]): number[] {
  const list: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
    for (const k of between) {
      const x = Number((k * 10 ** power).toPrecision(6));
      if (x >= from * 0.999 && x <= to * 1.001) list.push(x);
    }
  }
  return list;
}

/** Log ticks: decades, finer ones where few decades are seen, fewer where many are. */
export function logTicks(from: number, to: number, most = 8): number[] {
  for (const between of [[1, 2, 5], [1, 3], [1]]) {
    const list = decades(from, to, between);
    if (list.length <= most && list.length >= 2) return list;
  }
  const all = decades(from, to);
  if (all.length < 2)
    return decades(from, to, [1, 2, 3, 4, 5, 6, 7, 8, 9]).filter(
      (_, i, list) => i % Math.ceil(list.length / most) === 0,
    );
  return all.filter((_, i) => i % Math.ceil(all.length / most) === 0);
}

export interface Part {
  name: string;
  value: number;
  fill: string;
}
export interface Piece extends Part {
  x: number;
  width: number;
}
/** Parts of a stacked bar side by side; each is at least a pixel wide, with a pixel between them. */
export function stack(parts: readonly Part[], x: Scale): Piece[] {
  let at = 0;
  return parts
    .filter((part) => part.value > 0)
    .map((part) => {
      const start = x(at);
      at += part.value;
      return { ...part, x: start, width: Math.max(1, x(at) - start - 1) };
    });
}

export interface Bar {
  lane: number;
  kind: number;
  label: string;
  start: number;
  end: number;
}
/** Bars narrower than a pixel are joined with neighbours of their lane and kind, so that a long step stays drawable. */
export function joinNarrow(bars: readonly Bar[], x: Scale, most = 2000): Bar[] {
  const list: Bar[] = [];
  const open = new Map<number, Bar>();
  for (const bar of [...bars].sort((a, b) => a.lane - b.lane || a.start - b.start)) {
    const last = open.get(bar.lane);
    const near = last !== undefined && x(bar.start) - x(last.end) < 0.5;
    if (
      last &&
      near &&
      last.kind === bar.kind &&
      (x(bar.end) - x(bar.start) < 1 || (bars.length > most && x(bar.end) - x(bar.start) < 3))
    ) {
      last.end = bar.end;
      last.label = last.label.endsWith(" …") ? last.label : `${last.label} …`;
    } else {
      const copy = { ...bar };
      list.push(copy);
      open.set(bar.lane, copy);
    }
  }
  return list;
}

/** Labels at these heights, moved apart so that none overlap. */
export function apart(heights: readonly number[], gap: number, top: number, bottom: number): number[] {
  const order = heights.map((y, i) => ({ y, i })).sort((a, b) => a.y - b.y);
  for (let k = 1; k < order.length; k++) order[k]!.y = Math.max(order[k]!.y, order[k - 1]!.y + gap);
  const over = order.length ? order[order.length - 1]!.y - bottom : 0;
  if (over > 0) order.forEach((one) => (one.y -= over));
  for (let k = order.length - 2; k >= 0; k--) order[k]!.y = Math.min(order[k]!.y, order[k + 1]!.y - gap);
  const result: number[] = new Array(heights.length).fill(0);
  for (const { y, i } of order) result[i] = Math.max(top, y);
  return result;
}

export function histogram(values: readonly number[], from: number, to: number, bins: number): number[] {
  const counts: number[] = new Array(bins).fill(0);
  for (const value of values) {
    const bin = clamp(Math.floor(((value - from) / (to - from)) * bins), 0, bins - 1);
    counts[bin]! += 1;
  }
  return counts;
}
