// Writes src/engine/schema.ts: the types of answers and the options of requests, from `assay schema`.
// `--check` compares instead, so that a schema that moved on fails the tests.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const target = new URL("../src/engine/schema.ts", import.meta.url);
const assay = process.env.ASSAY ?? "../build/release/assay";
const verbs = [
  "train",
  "serve",
  "scaling",
  "roofline",
  "shard",
  "layer",
  "collective",
  "clusters",
  "systolic",
  "validate",
  "book",
  "profile",
  "models",
  "chips",
  "transfer",
  "design",
  "run",
];
// Options that the page sets itself or that make no sense on a page.
const hidden = new Set([
  "format",
  "output",
  "all",
  "explain",
  "color",
  "quiet",
  "config",
  "catalogue",
  "help",
  "list",
  "timeline",
  "emit",
  "launcher",
  "from",
  "improve",
  "sensitivity",
  "pareto",
  "fit",
  "data",
  "requests",
]);

const schema = JSON.parse(execFileSync(assay, ["schema"], { maxBuffer: 1 << 26 }).toString());
const name = (key) =>
  key
    .split(/[^a-z0-9]/i)
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join("");
const key = (text) => (/^[a-z_]\w*$/i.test(text) ? text : JSON.stringify(text));

function type(node, indent) {
  if (node.$ref) return name(node.$ref.replace("#/$defs/", ""));
  const any = node.anyOf ?? node.oneOf;
  if (any) return any.map((one) => type(one, indent)).join(" | ");
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (Array.isArray(node.type)) return node.type.map((one) => type({ ...node, type: one }, indent)).join(" | ");
  switch (node.type) {
    case "string":
      return "string";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      const items = node.items ? type(node.items, indent) : "unknown";
      return /[ |]/.test(items) && !items.startsWith("{") ? `(${items})[]` : `${items}[]`;
    }
  }
  if (!node.properties) {
    const values = node.additionalProperties;
    return `Record<string, ${values && values !== true ? type(values, indent) : "unknown"}>`;
  }
  const required = new Set(node.required ?? []);
  const lines = Object.entries(node.properties).map(
    ([k, v]) => `${indent}  ${key(k)}${required.has(k) ? "" : "?"}: ${type(v, indent + "  ")};`,
  );
  return `{\n${lines.join("\n")}\n${indent}}`;
}

let text = "// Written by tools/types.mjs from `assay schema`; do not edit.\n\n";
for (const shared of ["quantity", "interval", "range", "derivation", "fault"])
  text += `export interface ${name(shared)} ${type(schema.$defs[shared], "")}\n`;
text += "export type Arguments = Record<string, string | number | boolean | null | string[]>;\n";
for (const verb of verbs)
  text += `export interface ${name(verb)}Results ${type(schema.$defs[`${verb}.answer`].properties.results, "")}\n`;
text += `export interface Results {\n${verbs.map((verb) => `  ${verb}: ${name(verb)}Results;`).join("\n")}\n}\nexport type Verb = keyof Results;\n`;
text +=
  "export interface Option {\n  help: string;\n  kind: string;\n  unit?: string;\n  choices?: string[];\n  examples?: string[];\n  standard?: string;\n  placeholder?: string;\n}\n";
const options = {};
for (const verb of verbs) {
  const list = {};
  for (const [option, node] of Object.entries(schema.$defs[`${verb}.request`].properties.arguments.properties)) {
    if (hidden.has(option) && !(verb === "serve" && option === "output")) continue;
    list[option] = {
      help: node.description ?? "",
      kind: node.kind ?? "text",
      unit: node.unit,
      choices: node.enum?.filter((one) => one !== null).map(String),
      examples: node.examples,
      standard: node.default === undefined ? undefined : String(node.default),
      placeholder: node.placeholder,
    };
  }
  options[verb] = list;
}
text += `export const options: Record<Verb, Record<string, Option>> = ${`{\n${Object.entries(options)
  .map(
    ([verb, list]) =>
      `  ${verb}: {\n${Object.entries(list)
        .map(([name, option]) => `    ${JSON.stringify(name)}: ${JSON.stringify(option)},`)
        .join("\n")}\n  },`,
  )
  .join("\n")}\n}`};\n`;

// Programs that run a plan, and what starts them.
const named = (verb, option) =>
  schema.$defs[`${verb}.request`].properties.arguments.properties[option].names.map(({ id, name, software }) => ({
    value: id,
    name,
    software,
  }));
const list = (items) => `[\n${items.map((one) => `    ${JSON.stringify(one)},`).join("\n")}\n  ]`;
text += `export interface Program {\n  value: string;\n  name: string;\n  software?: string;\n}\n`;
text += `export const programs: Record<"train" | "serve", readonly Program[]> = {\n${["train", "serve"]
  .map((verb) => `  ${verb}: ${list(named(verb, "emit"))},`)
  .join("\n")}\n};\n`;
text += `export const launchers: readonly Program[] = ${list(named("train", "launcher"))};\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("page/src/engine/schema.ts is not what `assay schema` says: run `make page`");
    process.exit(1);
  }
} else writeFileSync(target, text);
