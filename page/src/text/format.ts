// How every number on the page is written: three figures (four in derivations), a narrow no-break space, the unit.

export const thin = "\u202f";
export const unknown = "–";

let binary = false;
/** GiB instead of GB, for the whole page. */
export const useBinary = (on: boolean): void => {
  binary = on;
};

const group = (digits: string): string => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** `figures` significant figures, thousands by comma, a true minus sign. */
export function sig(x: number | null | undefined, figures = 3): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  if (x === 0) return "0";
  const a = Math.abs(x);
  let power = Math.floor(Math.log10(a));
  if (Math.round(a / 10 ** (power - figures + 1)) >= 10 ** figures) power += 1; // 9.996 is 10.0
  const decimals = figures - 1 - power;
  let text: string;
  if (decimals > 0) {
    const [whole, rest] = a.toFixed(Math.min(decimals, 100)).split(".");
    text = group(whole ?? "0") + (rest ? `.${rest}` : "");
  } else {
    const unit = 10 ** -decimals;
    text = group(String(Math.round(a / unit) * unit));
  }
  return (x < 0 ? "−" : "") + text;
}

type Scale = readonly [from: number, unit: string, factor: number];
const times: readonly Scale[] = [
  [2 * 86400, "days", 86400],
  [2 * 3600, "h", 3600],
  [1, "s", 1],
  [1e-3, "ms", 1e-3],
  [1e-6, "µs", 1e-6],
  [0, "ns", 1e-9],
];
const prefixes: readonly Scale[] = [
  [1e24, "Y", 1e24],
  [1e21, "Z", 1e21],
  [1e18, "E", 1e18],
  [1e15, "P", 1e15],
  [1e12, "T", 1e12],
  [1e9, "G", 1e9],
  [1e6, "M", 1e6],
  [1e3, "k", 1e3],
  [0, "", 1],
];
const decimal: readonly Scale[] = [
  [1e15, "PB", 1e15],
  [1e12, "TB", 1e12],
  [1e9, "GB", 1e9],
  [1e6, "MB", 1e6],
  [1e3, "kB", 1e3],
  [0, "B", 1],
];
const powers: readonly Scale[] = [
  [2 ** 50, "PiB", 2 ** 50],
  [2 ** 40, "TiB", 2 ** 40],
  [2 ** 30, "GiB", 2 ** 30],
  [2 ** 20, "MiB", 2 ** 20],
  [2 ** 10, "KiB", 2 ** 10],
  [0, "B", 1],
];
const last: Scale = [0, "", 1];

// What rounds up to the next unit is written in it: 999.96 ms is 1.00 s.
const pick = (x: number, table: readonly Scale[]): Scale =>
  table.find(([from]) => Math.abs(x) >= from * 0.9995) ?? table[table.length - 1] ?? last;
const scaled = (x: number | null | undefined, table: readonly Scale[], figures?: number): string => {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  if (x === 0) return "0";
  const [, unit, factor] = pick(x, table);
  return sig(x / factor, figures) + (unit ? thin + unit : "");
};
const between = (a: number, b: number, table: readonly Scale[]): string => {
  const [, unit, factor] = pick(b, table);
  return `${sig(a / factor)}–${sig(b / factor)}${unit ? thin + unit : ""}`;
};
const byteTable = (): readonly Scale[] => (binary ? powers : decimal);

export const time = (seconds: number | null | undefined, figures?: number): string => scaled(seconds, times, figures);
export const timeRange = (a: number, b: number): string => between(a, b, times);
export const bytes = (x: number | null | undefined, figures?: number): string => scaled(x, byteTable(), figures);
export const bytesRange = (a: number, b: number): string => between(a, b, byteTable());
export const percent = (x: number | null | undefined, figures = 3): string =>
  x === null || x === undefined || !Number.isFinite(x)
    ? unknown
    : x === 0
      ? `0${thin}%`
      : `${sig(100 * x, figures)}${thin}%`;
/** A share in a column: one decimal for all. */
export const share = (x: number | null | undefined): string => {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  const text = (100 * x).toFixed(1);
  return x > 0 && text === "0.0" ? `<0.1${thin}%` : `${text}${thin}%`;
};
export const int = (x: number | null | undefined): string =>
  x === null || x === undefined || !Number.isFinite(x)
    ? unknown
    : (x < 0 ? "−" : "") + group(String(Math.round(Math.abs(x))));

const billions: readonly Scale[] = [
  [1e12, "T", 1e12],
  [1e9, "B", 1e9],
  [1e6, "M", 1e6],
  [1e3, "k", 1e3],
  [0, "", 1],
];
/** A count of parameters, as the field writes it: 70.6 B. */
export const parameters = (x: number | null | undefined): string => scaled(x, billions);

/** With a prefix: 2.30 ktokens/s, 989 TFLOP/s. */
export function si(x: number | null | undefined, unit = "", figures?: number): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  if (x === 0) return unit ? `0${thin}${unit}` : "0";
  const [, prefix, factor] = pick(x, prefixes);
  return sig(x / factor, figures) + (prefix + unit ? thin + prefix + unit : "");
}
export const siRange = (a: number, b: number, unit = ""): string => {
  const [, prefix, factor] = pick(b, prefixes);
  return `${sig(a / factor)}–${sig(b / factor)}${prefix + unit ? thin + prefix + unit : ""}`;
};

/** A change: its sign is part of it. */
export function signed(x: number | null | undefined): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  if (Math.abs(x) < 5e-4) return `±0${thin}%`;
  return `${x > 0 ? "+" : "−"}${sig(Math.abs(100 * x), Math.abs(x) >= 0.1 ? 3 : 2)}${thin}%`;
}

const money: readonly Scale[] = [
  [1e9, "G", 1e9],
  [1e6, "M", 1e6],
  [1e3, "k", 1e3],
  [0, "", 1],
];
export function usd(x: number | null | undefined): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return unknown;
  if (x < 100 && x >= 0.01) return `$${x.toFixed(2)}`;
  const [, unit, factor] = pick(x, money);
  return `$${sig(x / factor)}${unit ? thin + unit : ""}`;
}
export function usdRange(a: number, b: number): string {
  if (b < 100) return `$${a.toFixed(2)}–${b.toFixed(2)}`;
  const [, unit, factor] = pick(b, money);
  return `$${sig(a / factor)}–${sig(b / factor)}${unit ? thin + unit : ""}`;
}

const hours: readonly Scale[] = [
  [3.6e15, "TWh", 3.6e15],
  [3.6e12, "GWh", 3.6e12],
  [3.6e9, "MWh", 3.6e9],
  [3.6e6, "kWh", 3.6e6],
  [0, "J", 1],
];

/** A quantity of an answer, by its unit. */
export function quantity(x: number | null | undefined, unit: string, figures = 4): string {
  switch (unit) {
    case "s":
      return time(x, figures);
    case "B":
      return bytes(x, figures);
    case "USD":
      return usd(x);
    case "USD/s":
      return x === null || x === undefined ? unknown : `${usd(3600 * x)}/h`;
    case "J":
      return scaled(x, hours, figures);
    case "":
      return Number.isInteger(x) ? int(x) : sig(x, figures);
    case "B/s":
    case "FLOP/s":
    case "FLOP":
    case "FLOP/B":
    case "FLOP/USD":
    case "B/USD":
    case "tokens":
    case "tokens/s":
    case "W":
    case "Hz":
      return si(x, unit, figures);
    default:
      return x === null || x === undefined ? unknown : `${sig(x, figures)}${thin}${unit}`;
  }
}

/**
 * Writers for a column or the parts of a sum: one unit, the same decimals, that of `total`. With `more` decimals what is
 * smaller still has one figure; without, it is less than the last decimal.
 */
export function alike(total: number, unit: string, more = 0): (x: number) => string {
  const table = unit === "s" ? times : unit === "B" ? byteTable() : prefixes;
  const [, name, factor] = pick(total, table);
  const size = Math.abs(total / factor);
  const decimals = (size >= 1000 ? 0 : size >= 30 ? 1 : 2) + more;
  const suffix = unit === "s" || unit === "B" ? name : name + unit;
  return (x) => {
    if (x === 0) return "0";
    const value = x / factor;
    const text =
      Math.abs(value) < 0.5 * 10 ** -decimals
        ? more > 0
          ? sig(value, 1)
          : `${value < 0 ? "−" : ""}<${(10 ** -decimals).toFixed(decimals)}`
        : (value < 0 ? "−" : "") + group(Math.abs(value).toFixed(decimals));
    return text + (suffix ? thin + suffix : "");
  };
}

/** Tick labels of a log axis: 1 ms, 100 kB. */
export const tick = (x: number, unit: string): string =>
  unit === "s"
    ? time(x, 1)
    : unit === "B"
      ? bytes(x, 1)
      : unit === "%"
        ? percent(x, 2)
        : si(x, "", x >= 1 && x < 1000 ? 3 : 2).replace(/\.0+(?=\D|$)/, "");

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** A sentence of the engine as a sentence of the page. */
export const sentence = (text: string): string => {
  const first = capital(text.trim());
  return /[.?!]$/.test(first) ? first : `${first}.`;
};
