// Plans that are pinned for a comparison: requests in the address, so that a link compares the same plans elsewhere.
import type { JSX } from "preact";
import type { Arguments, TrainResults } from "../../engine/schema";
import { change } from "../../url";
import type { Query } from "../../url";

const most = 4;
export const pinsOf = (query: Query): string[] => (query.pin ? query.pin.split("|").filter(Boolean) : []);
const pinText = (args: Record<string, unknown>): string =>
  Object.entries(args)
    .filter(([, value]) => value !== null && value !== "")
    .map(([key, value]) => `${key}~${encodeURIComponent(String(value))}`)
    .sort()
    .join("!");
export const argumentsOf = (pin: string): Arguments =>
  Object.fromEntries(
    pin
      .split("!")
      .map((part) => part.split("~"))
      .map(([key, value]) => [key!, decodeURIComponent(value ?? "")]),
  );
const togglePin = (query: Query, pin: string): void => {
  const pins = pinsOf(query);
  change(
    { pin: (pins.includes(pin) ? pins.filter((one) => one !== pin) : [...pins, pin].slice(-most)).join("|") },
    true,
  );
};

/** The strategy of an answer as the engine writes those of alternatives. */
export function strategyText(results: TrainResults): string {
  const s = results.strategy;
  const parts: string[] = [];
  for (const key of ["dp", "fsdp", "tp", "cp", "pp", "ep"] as const) if (s[key] > 1) parts.push(`${key} ${s[key]}`);
  if (s.zero > 0) parts.push(`zero ${s.zero}`);
  if (s.sequence_parallel) parts.push("sequence-parallel");
  parts.push(`micro-batch ${s.micro_batch}`);
  if (s.pp > 1 && s.schedule !== "none") parts.push(s.interleave > 1 ? `${s.schedule} x${s.interleave}` : s.schedule);
  if (s.recompute !== "none") parts.push(`recompute ${s.recompute}`);
  if (s.offload !== "none") parts.push(`offload ${s.offload}`);
  return parts.join(", ");
}
export const chosenArguments = (results: TrainResults, base: Arguments): Arguments => {
  const s = results.strategy;
  const args: Arguments = { ...base };
  for (const key of ["dp", "fsdp", "tp", "pp", "cp", "ep", "zero"] as const) args[key] = String(s[key]);
  args["micro-batch"] = String(s.micro_batch);
  args.recompute = s.recompute;
  args.offload = s.offload;
  if (s.pp > 1 && s.schedule !== "none") args.schedule = s.schedule;
  if (s.interleave > 1) args.interleave = String(s.interleave);
  if (s.tp > 1) args.residual = s.sequence_parallel ? "sequence" : "replicated";
  return args;
};

/** Pins a plan or takes it off: a mark in tables, with words beside a headline. */
export function PinButton({
  query,
  args,
  name,
  words = false,
}: {
  query: Query;
  args: Arguments;
  name: string;
  words?: boolean;
}): JSX.Element {
  const pin = pinText(args);
  const on = pinsOf(query).includes(pin);
  return (
    <button
      type="button"
      class={words ? "btn mini pinned" : "pin"}
      aria-pressed={on}
      aria-label={words ? undefined : `${on ? "Unpin" : "Pin"} ${name}`}
      onClick={() => togglePin(query, pin)}
    >
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        <path d={on ? "M2 6.5 5 9.5 10 3" : "M6 2v8M2 6h8"} fill="none" stroke="currentColor" stroke-width="1.8" />
      </svg>
      {words && (on ? "Pinned" : "Pin to compare")}
    </button>
  );
}
