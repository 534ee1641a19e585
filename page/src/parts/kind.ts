// What a file is, by what is in it.
export type Kind = "profile" | "model" | "script" | "requests" | "unknown";

const startOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** What a file is, by its first bytes; names are not asked. */
export function kindOf(start: Uint8Array): Kind {
  if ((start[0] === 0x1f && start[1] === 0x8b) || start.includes(0)) return "profile"; // packed, protocol buffers, SQLite
  const text = startOf(start).trimStart();
  if (/^(HloModule|module\b|#loc|#\w+ = )|\b(stablehlo|sdy)\./.test(text)) return "profile";
  if (/"traceEvents"|"schemaVersion"/.test(text)) return "profile";
  const line = text.slice(0, text.indexOf("\n") < 0 ? undefined : text.indexOf("\n"));
  const first = parsed(line);
  const request = /timestamp|input_length|prompt|tokens|hash_ids/i;
  if (isObject(first) && text.includes("\n{"))
    return Object.keys(first).some((key) => request.test(key)) ? "requests" : "unknown";
  if (text.startsWith("{"))
    return /"(model_type|architectures|base|hidden_size|d_model|n_embd)"/.test(text) ? "model" : "unknown";
  if (line.includes(",") && request.test(line) && !/[={]/.test(line)) return "requests";
  if (/^#!|\b(torchrun|srun|python3?|vllm|sglang|accelerate|deepspeed)\b|^\[[\w.]+\]\s*$|^\w[\w.-]*\s*[:=]/m.test(text))
    return "script";
  return "unknown";
}
