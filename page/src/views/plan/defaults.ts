import type { Query } from "../../url";

export const defaults: Query = { model: "llama-3-70b", on: "b200:512", batch: "1024seq", seq: "8192", tokens: "15T" };
