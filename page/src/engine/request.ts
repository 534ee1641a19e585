// From the address to a request, and sizes that are halved and doubled.
import type { Query } from "../url";
import { options } from "./schema";
import type { Arguments, Quantity, Verb } from "./schema";
import type { Request } from "./ask";

const several = new Set(["set", "price"]);

/** What the address says; an address that names none of a view's own keys means its defaults. */
export const filled = (query: Query, defaults: Query): Query =>
  query.from || Object.keys(defaults).some((key) => key in query) ? query : { ...defaults, ...query };

/** The arguments of a verb among these keys, and the script that the others are read from. Empty values are left open. */
export function requestOf<V extends Verb>(verb: V, all: Query): Request<V> {
  const args: Arguments = {};
  if (all.from && (verb === "train" || verb === "serve")) args.from = all.from;
  for (const name of Object.keys(options[verb])) {
    const value = all[name];
    if (value === undefined || value === "") continue;
    const kind = options[verb][name]?.kind;
    args[name] =
      kind === "flag"
        ? value !== "false"
        : several.has(name)
          ? value
              .split(/[\n;]+/)
              .map((one) => one.trim())
              .filter(Boolean)
          : value;
  }
  return { verb, arguments: args };
}
export const withArguments = <V extends Verb>(request: Request<V>, more: Arguments): Request<V> => ({
  verb: request.verb,
  arguments: { ...request.arguments, ...more },
});

/** Arguments of an alternative as keys of the address. */
export const asQuery = (args: Record<string, unknown>): Query =>
  Object.fromEntries(
    Object.entries(args)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([key, value]) => [key, Array.isArray(value) ? value.join(";") : String(value)]),
  );

/** The number of a quantity; NaN where the engine says it is not finite. */
export const v = (quantity: Quantity | null | undefined): number => quantity?.value ?? Number.NaN;

/** "1024seq" times two is "2048seq"; "16x16" is doubled along its shortest side, "1Mi" halved is "512Ki". */
export function resize(text: string, factor: number): string | null {
  if (/^\d+(x\d+)+$/.test(text)) {
    const sides = text.split("x").map(Number);
    const at = factor > 1 ? sides.indexOf(Math.min(...sides)) : sides.indexOf(Math.max(...sides));
    const side = (sides[at] ?? 0) * factor;
    if (!Number.isInteger(side) || side < 1) return null;
    sides[at] = side;
    return sides.join("x");
  }
  const match = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/.exec(text);
  if (!match) return null;
  const size = Number(match[1]) * factor;
  const unit = match[2] ?? "";
  if (Number.isInteger(size) && size >= 1) return `${size}${unit}`;
  const smaller: Record<string, [string, number]> = {
    Gi: ["Mi", 1024],
    Mi: ["Ki", 1024],
    Ki: ["", 1024],
    T: ["G", 1000],
    G: ["M", 1000],
    M: ["k", 1000],
    k: ["", 1000],
    TB: ["GB", 1000],
    GB: ["MB", 1000],
    MB: ["kB", 1000],
    kB: ["B", 1000],
    TiB: ["GiB", 1024],
    GiB: ["MiB", 1024],
    MiB: ["KiB", 1024],
    KiB: ["B", 1024],
  };
  const next = smaller[unit];
  return next && Number.isInteger(size * next[1]) ? `${size * next[1]}${next[0]}` : null;
}

export const chipOf = (cluster: string): string => cluster.split(":")[0] ?? cluster;
export const shapeOf = (cluster: string): string => cluster.split(":").slice(1).join(":");
export const clusterOf = (chip: string, shape: string): string => (shape ? `${chip}:${shape}` : chip);
/** The name in a headline: H100, TPU v5p. */
export const shortChip = (id: string): string =>
  id.startsWith("tpu-") ? `TPU ${id.slice(4)}` : (id.split("-")[0] ?? id).toUpperCase();
