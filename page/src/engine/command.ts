// A request as other front ends would ask it: on a command line, or from Python.
import { options } from "./schema";
import type { Request } from "./ask";
import type { Verb } from "./schema";

const quote = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const python = (value: unknown): string =>
  value === true
    ? "True"
    : value === false
      ? "False"
      : typeof value === "number"
        ? String(value)
        : Array.isArray(value)
          ? `[${value.map(python).join(", ")}]`
          : JSON.stringify(value);

const given = (request: Request): [string, unknown][] =>
  Object.entries(request.arguments).filter(([, value]) => value !== "" && value !== null && value !== undefined);

export function asCommand(request: Request): string {
  const first = positionals(request.verb);
  const words = ["assay", request.verb];
  const all = given(request);
  for (const name of first) {
    const value = all.find(([key]) => key === name)?.[1];
    if (value !== undefined) for (const one of Array.isArray(value) ? value : [value]) words.push(quote(String(one)));
  }
  for (const [key, value] of all) {
    if (first.includes(key)) continue;
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === true) words.push(`--${key}`);
      else if (one === false) words.push(`--${key}=no`);
      else words.push(`--${key}`, quote(String(one)));
    }
  }
  return words.join(" ");
}

export function asPython(request: Request): string {
  const first = positionals(request.verb);
  const all = given(request);
  const parts = first.flatMap((name) => all.filter(([key]) => key === name).map(([, value]) => python(value)));
  for (const [key, value] of all) if (!first.includes(key)) parts.push(`${key.replaceAll("-", "_")}=${python(value)}`);
  return `assay.${request.verb}(${parts.join(", ")})`;
}

// Positional arguments are those that the schema gives no placeholder.
const positionals = (verb: Verb): string[] =>
  Object.entries(options[verb])
    .filter(([, option]) => !option.placeholder && option.kind !== "flag")
    .map(([name]) => name);
