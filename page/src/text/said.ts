// What the engine says about options of the command line, in the words that the page has for them.
import { sentence } from "./format";

const fields: Record<string, string> = {
  model: "Model",
  on: "Chip",
  batch: "Batch",
  seq: "Sequence",
  tokens: "Run",
  prompt: "Prompt",
  output: "Answer",
  tpot: "Longest time per token",
  ttft: "Longest time to the first token",
  rate: "Requests per second",
  weights: "Weights",
  kv: "Cache",
  from: "Script",
  set: "Own figures of the chip",
  price: "Own price",
  op: "Operation",
  bytes: "Size",
  kind: "Collective",
  "time-limit": "the time limit of the server",
};
/** "--on is missing" is "Chip is missing"; an option that the page shows by its name has the name alone. */
export const inWords = (text: string): string =>
  text.replace(/--([a-z][a-z0-9-]*)/g, (_, name: string) => fields[name] ?? name);
export const said = (text: string): string => sentence(inWords(text));
/** The field that an error is about: "Batch". */
export const fieldName = (where: string): string => {
  const name = where
    .replace(/^request: /, "")
    .replace(/^--/, "")
    .toLowerCase();
  return fields[name] ?? inWords(where);
};
