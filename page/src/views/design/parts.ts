// What of a design can be changed: the engine's file is read into paths, and what differs is written as --set KEY=VALUE.

export type Values = ReadonlyMap<string, string>;
/** A part with the values that its slider goes through, and what follows from each. */
export interface Control {
  path: string;
  label: string;
  list: readonly string[];
  value: string;
  shown: string;
  /** Other parts that a value of this one brings with it. */
  also?: (value: string) => Changes;
}
/** New values; empty: the part is left out. */
export type Changes = Readonly<Record<string, string>>;

/** "die.0.cores" is "144": from TOML as the engine writes it, one value a line. */
export function valuesOf(file: string): Values {
  const out = new Map<string, string>();
  const lists = new Map<string, number>();
  let at = "";
  for (const line of file.split("\n")) {
    const header = /^(\[\[?)([^\]]+)\]/.exec(line);
    if (header) {
      const [first = "", ...rest] = header[2]!.split(".");
      if (header[1] === "[[") lists.set(first, (lists.get(first) ?? -1) + 1);
      at = [first, ...(lists.has(first) ? [lists.get(first)] : []), ...rest].join(".") + ".";
      continue;
    }
    const pair = /^([\w-]+) = (".*"|[\w.+-]+)$/.exec(line);
    if (pair) out.set(at + pair[1], pair[2]!.startsWith('"') ? (JSON.parse(pair[2]!) as string) : pair[2]!);
  }
  return out;
}

export const readSets = (text: string): Values =>
  new Map(
    text
      .split(";")
      .filter((one) => one.includes("="))
      .map((one) => [one.slice(0, one.indexOf("=")).trim(), one.slice(one.indexOf("=") + 1).trim()]),
  );
/** The parts that differ after a change; what is as it was is not named. */
export function setsAfter(base: Values, sets: Values, changes: Changes): string {
  const all = new Map([...sets, ...Object.entries(changes)]);
  return [...all]
    .filter(([path, value]) => value !== (base.get(path) ?? ""))
    .map(([path, value]) => `${path}=${value}`)
    .join(";");
}
export const merged = (base: Values, sets: Values): Values =>
  new Map([...base, ...sets].filter(([path]) => sets.get(path) !== ""));

const amount = (text: string): [number, string] => {
  const match = /^([\d.]+) ?(.*)$/.exec(text);
  return match ? [Number(match[1]), match[2] ?? ""] : [Number.NaN, text];
};
/** The place on a slider that is nearest to a value. */
export function placeOf(list: readonly string[], value: string): number {
  const exact = list.indexOf(value);
  if (exact >= 0) return exact;
  const [x, unit] = amount(value);
  const far = list.map((one) => (amount(one)[1] === unit ? Math.abs(amount(one)[0] - x) : Infinity));
  return Math.max(0, far.indexOf(Math.min(...far)));
}
const counts = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
const plain = (x: number): string => String(Number(x.toPrecision(6)));
const times = (text: string, factors: readonly number[]): string[] => {
  const [x, unit] = amount(text);
  return factors.map((factor) => `${plain(x * factor)} ${unit}`.trim());
};
const shares = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4];

const dieCount = (values: Values): number =>
  Array.from({ length: 16 }, (_, i) => i).filter((i) => values.has(`die.${i}.node`)).length;
const number = (values: Values, path: string, otherwise = 0): number => Number(values.get(path) ?? otherwise);
const stacksOf = (values: Values): number =>
  Array.from({ length: dieCount(values) }, (_, i) => i).reduce(
    (sum, i) => sum + number(values, `die.${i}.count`, 1) * number(values, `die.${i}.stacks`),
    0,
  );

/** The stacks that are on after a change of what the dies have PHYs for: no more than those, all where all were. */
function stacksAfter(base: Values, now: Values, changes: Changes): Changes {
  const before = stacksOf(now);
  const after = stacksOf(merged(now, new Map(Object.entries(changes))));
  const on = number(now, "memory.stacks_on", before);
  const next = on === before ? after : Math.min(on, after);
  const open = next === after && !base.has("memory.stacks_on");
  return after > 0 ? { ...changes, "memory.stacks_on": open ? "" : String(next) } : changes;
}

function clock(now: Values): Control {
  const value = now.get("clock") ?? "1 GHz";
  const list = Array.from({ length: 251 }, (_, i) => `${plain(0.5 + i / 100)} GHz`);
  return { path: "clock", label: "Clock", list, value, shown: value };
}
const noLimit = "";
function power(now: Values): Control {
  const value = now.get("power") ?? noLimit;
  const list = [...Array.from({ length: 77 }, (_, i) => `${100 + 25 * i} W`), noLimit];
  return { path: "power", label: "Power limit", list, value, shown: value || "none" };
}
function stacksOn(base: Values, now: Values): Control[] {
  const made = stacksOf(now);
  if (made === 0) return [];
  const value = String(number(now, "memory.stacks_on", made));
  return [
    {
      path: "memory.stacks_on",
      label: "Memory stacks on",
      list: counts(1, made),
      value,
      shown: `${value} of ${made}`,
      also: (next): Changes =>
        next === String(made) && !base.has("memory.stacks_on") ? { "memory.stacks_on": "" } : {},
    },
  ];
}
/** Another kind of memory comes at its own capacity and bandwidth. */
export const memoryOf = (base: Values, kind: string): Changes => {
  const own = kind === base.get("memory.kind");
  const of = (key: string): string => (own ? (base.get(key) ?? "") : "");
  return {
    "memory.kind": kind,
    "memory.capacity": of("memory.capacity"),
    "memory.bandwidth": of("memory.bandwidth"),
  };
};

function coresOn(base: Values, now: Values, die: string): Control {
  const made = number(now, `${die}.cores`);
  const value = String(number(now, `${die}.cores_on`, made));
  return {
    path: `${die}.cores_on`,
    label: "Cores on",
    list: counts(1, made),
    value,
    shown: `${value} of ${made}`,
    also: (next): Changes => (next === String(made) && !base.has(`${die}.cores_on`) ? { [`${die}.cores_on`]: "" } : {}),
  };
}
function cores(base: Values, now: Values, die: string): Control {
  const made = number(now, `${die}.cores`);
  const spare = made - number(now, `${die}.cores_on`, made);
  return {
    path: `${die}.cores`,
    label: "Cores made",
    list: counts(1, Math.max(8, Math.round(2.5 * number(base, `${die}.cores`)))),
    value: String(made),
    shown: String(made),
    also: (next) => ({
      [`${die}.cores_on`]: spare === 0 && !base.has(`${die}.cores_on`) ? "" : String(Math.max(1, Number(next) - spare)),
    }),
  };
}

/** The parts of one kind of die. */
function dieControls(base: Values, now: Values, die: string): Control[] {
  const out: Control[] = [];
  const add = (key: string, label: string, list: readonly string[], also?: Control["also"]): void => {
    const value = now.get(`${die}.${key}`) ?? "1";
    out.push({ path: `${die}.${key}`, label, list, value, shown: value, also });
  };
  const has = (key: string): boolean => base.has(`${die}.${key}`);
  const of = (key: string): string => base.get(`${die}.${key}`) ?? "1";
  add("count", "Dies like this", counts(1, Math.max(4, 2 * Number(of("count")))), (next) => ({
    ...stacksAfter(base, now, { [`${die}.count`]: next }),
    ...(next === "1" && !has("count") ? { [`${die}.count`]: "" } : {}),
  }));
  if (has("cores")) {
    out.push(cores(base, now, die));
    add("matrix_units", "Matrix units of a core", counts(1, Math.max(8, 2 * Number(of("matrix_units")))));
    add("multiply_adds", "Multiply-adds of a unit", times(of("multiply_adds"), [0.125, 0.25, 0.5, 1, 2, 4, 8]));
  }
  if (has("local")) add("local", "Memory of a core", times(of("local"), shares));
  if (has("cache")) add("cache", "Shared cache", times(of("cache"), shares));
  if (has("scratchpad")) add("scratchpad", "Scratchpad", times(of("scratchpad"), shares));
  if (has("stacks"))
    add("stacks", "Memory interfaces", counts(1, 16), (next) => stacksAfter(base, now, { [`${die}.stacks`]: next }));
  for (const path of base.keys())
    if (path.startsWith(`${die}.links.`)) {
      const key = path.slice(die.length + 1);
      add(key, `Links: ${key.slice(6)}`, counts(1, Math.max(16, 2 * Number(of(key)))));
    }
  return out;
}

export interface Die {
  path: string;
  node: string;
  controls: Control[];
}
export interface Controls {
  /** What is dragged most, which stays in reach on narrow screens. */
  first: Control[];
  power: Control;
  memory: string;
  dies: Die[];
}
export function controlsOf(base: Values, sets: Values): Controls {
  const now = merged(base, sets);
  const dies = Array.from({ length: dieCount(base) }, (_, i) => `die.${i}`);
  const first = dies.filter((die) => base.has(`${die}.cores`)).slice(0, 1);
  return {
    first: [...first.map((die) => coresOn(base, now, die)), clock(now), ...stacksOn(base, now)],
    power: power(now),
    memory: now.get("memory.kind") ?? "",
    dies: dies.map((path) => ({
      path,
      node: now.get(`${path}.node`) ?? "",
      controls: dieControls(base, now, path),
    })),
  };
}
