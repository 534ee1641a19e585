// A request as other front ends would ask it: on a command line, or from Python; and a command line as a request.
import { options } from "./schema";
import type { Request } from "./ask";
import type { Arguments, Verb } from "./schema";

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

/** The command in one line, or with an option a line where one is long: a shell takes both. */
export const asLines = (request: Request): string => {
  const line = asCommand(request);
  return line.length <= 60 ? line : asCommand(request, " \\\n  ");
};

export function asCommand(request: Request, between = " "): string {
  const first = positionals(request.verb);
  const words = ["assay", request.verb];
  const chosen: string[] = [];
  const all = given(request);
  for (const name of first) {
    const value = all.find(([key]) => key === name)?.[1];
    if (value !== undefined) for (const one of Array.isArray(value) ? value : [value]) words.push(quote(String(one)));
  }
  for (const [key, value] of all) {
    if (first.includes(key)) continue;
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === true) chosen.push(`--${key}`);
      else if (one === false) chosen.push(`--${key}=no`);
      else chosen.push(`--${key} ${quote(String(one))}`);
    }
  }
  return [words.join(" "), ...chosen].join(between);
}

export function asPython(request: Request): string {
  const first = positionals(request.verb);
  const all = given(request);
  const typed = ([key, value]: [string, unknown]): string => python(numeric(request.verb, key, value));
  const parts = first.flatMap((name) => all.filter(([key]) => key === name).map(typed));
  for (const [key, value] of all) if (!first.includes(key)) parts.push(`${keyword(key)}=${typed([key, value])}`);
  return `import assay\n\nanswer = assay.${request.verb}(${parts.join(", ")})\nprint(answer)\n`;
}

/** A count or a number that is written in plain digits is a number of the program. */
function numeric(verb: Verb, key: string, value: unknown): unknown {
  const kind = options[verb][key]?.kind;
  const counts = kind === "count" || kind === "number" || kind === "share";
  return counts && typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}
/** A name that Python keeps for itself has an underscore behind it. */
const keyword = (key: string): string => (key === "from" ? "from_" : key.replaceAll("-", "_"));

// Positional arguments are those that the schema gives no placeholder.
const positionals = (verb: Verb): string[] =>
  Object.entries(options[verb])
    .filter(([, option]) => !option.placeholder && option.kind !== "flag")
    .map(([name]) => name);

/** Words as a shell splits them: quotes hold blanks together. */
const words = (line: string): string[] =>
  [...line.matchAll(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, (_, one?: string, two?: string) => one ?? two ?? ""),
  );
/** A command line of one of these verbs as a request, or what is wrong with it. */
export function fromCommand<V extends Verb>(line: string, verbs: readonly V[]): Request<V> | string {
  const [name, ...rest] = words(line.trim().replace(/^assay\s+/, ""));
  const verb = verbs.find((one) => one === name);
  if (!verb) return `A request begins with ${verbs.join(" or ")}`;
  const args: Arguments = {};
  const first = [...positionals(verb)];
  const put = (key: string, value: string | boolean): void => {
    const before = args[key];
    args[key] = before === undefined ? value : [...(Array.isArray(before) ? before : [String(before)]), String(value)];
  };
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!;
    const option = /^--([^=]+)(?:=([^]*))?$/.exec(word);
    if (!option) {
      const key = first.shift();
      if (!key) return `“${word}” is neither an option nor the value of one`;
      put(key, word);
      continue;
    }
    const key = option[1]!;
    const next = rest[i + 1];
    if (option[2] !== undefined) put(key, option[2]);
    else if (options[verb][key]?.kind === "flag" || next === undefined || next.startsWith("--")) put(key, true);
    else {
      put(key, next);
      i += 1;
    }
  }
  return { verb, arguments: args };
}
