import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, refused } from "../../engine/ask";
import { asQuery, v } from "../../engine/request";
import type { Arguments, Interval, TrainResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { Between, Num, Plan, Tag } from "../../parts/basics";
import type { Verdict } from "../../parts/basics";
import { Scroll } from "../../parts/scroll";
import { bytes, percent, quantity, si, signed, thin, time, usd } from "../../text/format";
import { change, go, keepLook, write } from "../../url";
import type { Query } from "../../url";

const most = 4;
/** Pinned plans are requests in the address, so that a link compares the same plans elsewhere. */
const pinsOf = (query: Query): string[] => (query.pin ? query.pin.split("|").filter(Boolean) : []);
const pinText = (args: Record<string, unknown>): string =>
  Object.entries(args)
    .filter(([, value]) => value !== null && value !== "")
    .map(([key, value]) => `${key}~${encodeURIComponent(String(value))}`)
    .sort()
    .join("!");
const argumentsOf = (pin: string): Arguments =>
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
const chosenArguments = (results: TrainResults, base: Arguments): Arguments => {
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

interface Row {
  strategy: string;
  step: number;
  interval?: Interval;
  slower: number | null;
  why: string;
  memory: number;
  verdict: Verdict;
  args: Arguments;
}
export function AlternativesCard({
  results,
  base,
  query,
}: {
  results: TrainResults;
  base: Arguments;
  query: Query;
}): JSX.Element {
  const rows: Row[] = [
    {
      strategy: strategyText(results),
      step: v(results.step_time.estimate),
      interval: results.step_time.interval,
      slower: null,
      why: "this plan",
      memory: v(results.memory.total),
      verdict: results.memory.verdict,
      args: chosenArguments(results, base),
    },
    ...(results.alternatives ?? []).map((one): Row => ({
      strategy: one.strategy,
      step: v(one.step_time),
      interval: one.interval,
      slower: one.slower_by,
      why: one.why ?? "",
      memory: v(one.memory?.total),
      verdict: one.memory?.verdict ?? "fits",
      args: one.arguments as Arguments,
    })),
  ];
  const pins = pinsOf(query);
  return (
    <Card
      title="Alternatives"
      note="pin up to four to compare side by side"
      table={() => [
        ["plan", "step_s", "low_s", "high_s", "slower_by", "because_of", "memory_bytes", "verdict"],
        ...rows.map((row) => [
          row.strategy,
          row.step,
          v(row.interval?.low),
          v(row.interval?.high),
          row.slower,
          row.why,
          row.memory,
          row.verdict,
        ]),
      ]}
    >
      <table class="rows stack">
        <thead>
          <tr>
            <th>
              <span class="sr">Pin</span>
            </th>
            <th>Plan</th>
            <th class="n">Step, 80{thin}% interval</th>
            <th class="n">Slower by</th>
            <th>Because of</th>
            <th class="n">Memory</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => {
            const pin = pinText(row.args);
            const on = pins.includes(pin);
            return (
              <tr key={row.strategy} class={i === 0 ? "on" : ""}>
                <td>
                  <button
                    type="button"
                    class="pin"
                    aria-pressed={on}
                    aria-label={`${on ? "Unpin" : "Pin"} ${row.strategy}`}
                    onClick={() => togglePin(query, pin)}
                  >
                    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
                      <path
                        d={on ? "M2 6.5 5 9.5 10 3" : "M6 2v8M2 6h8"}
                        fill="none"
                        stroke="currentColor"
                        stroke-width="1.8"
                      />
                    </svg>
                  </button>
                </td>
                <td>
                  {i === 0 ? (
                    <Plan strategy={row.strategy} />
                  ) : (
                    <a
                      class="quietlink"
                      href={write({ view: "plan", query: { ...keepLook(query), ...asQuery(row.args) } })}
                      title="Open this plan alone"
                    >
                      <Plan strategy={row.strategy} />
                    </a>
                  )}
                </td>
                <td class="n">
                  <Num
                    of={
                      i === 0
                        ? "step time"
                        : { name: "step time", value: row.step, unit: "s", interval: row.interval, note: row.strategy }
                    }
                  >
                    {time(row.step)}
                  </Num>{" "}
                  <Between interval={row.interval} share={false} />
                </td>
                <td class="n">{row.slower === null ? "–" : percent(row.slower, 2)}</td>
                <td class="muted">{row.why}</td>
                <td class="n">
                  <Tag verdict={row.verdict}>{bytes(row.memory)}</Tag>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Card>
  );
}

interface Pinned {
  pin: string;
  args: Arguments;
  results?: TrainResults;
  wrong?: string;
}
function usePinned(pins: string[]): Pinned[] {
  const [known, set] = useState<Record<string, Pinned>>({});
  const key = pins.join("|");
  useEffect(() => {
    const abort = new AbortController();
    for (const pin of pins) {
      const args = argumentsOf(pin);
      ask({ verb: "train", arguments: args }, abort.signal).then(
        (reply) =>
          set((before) => ({
            ...before,
            [pin]: refused(reply) ? { pin, args, wrong: reply.error.what } : { pin, args, results: reply.results },
          })),
        () => undefined,
      );
    }
    return () => abort.abort();
  }, [key]);
  return pins.map((pin) => known[pin] ?? { pin, args: argumentsOf(pin) });
}

/** Pinned plans side by side, with differences from the first. */
export function CompareCard({ query }: { query: Query }): JSX.Element | null {
  const pins = pinsOf(query);
  const plans = usePinned(pins);
  if (plans.length === 0) return null;
  const first = plans[0]?.results;
  const rows: {
    name: string;
    cell: (r: TrainResults) => JSX.Element | string;
    number?: (r: TrainResults) => number;
  }[] = [
    { name: "Model", cell: (r) => r.model },
    { name: "Cluster", cell: (r) => r.cluster },
    { name: "Plan", cell: (r) => <Plan strategy={strategyText(r)} /> },
    {
      name: "Step",
      cell: (r) => (
        <>
          <b>{time(v(r.step_time.estimate))}</b> <Between interval={r.step_time.interval} share={false} />
        </>
      ),
      number: (r) => v(r.step_time.estimate),
    },
    {
      name: "Tokens/s of a chip",
      cell: (r) => si(v(r.tokens_per_second_per_chip)),
      number: (r) => v(r.tokens_per_second_per_chip),
    },
    { name: "MFU", cell: (r) => percent(r.mfu), number: (r) => r.mfu },
    {
      name: "Memory",
      cell: (r) => (
        <>
          <Tag verdict={r.memory.verdict}>{bytes(v(r.memory.total))}</Tag> of {bytes(v(r.memory.capacity))}
        </>
      ),
      number: (r) => v(r.memory.total),
    },
    {
      name: "Run",
      cell: (r) => (r.training_time ? time(v(r.training_time.estimate)) : "–"),
      number: (r) => v(r.training_time?.estimate),
    },
    { name: "Cost", cell: (r) => (r.cost ? usd(v(r.cost)) : "–"), number: (r) => v(r.cost) },
    { name: "Energy", cell: (r) => (r.energy ? quantity(v(r.energy), "J", 3) : "–"), number: (r) => v(r.energy) },
  ];
  const said = rows.filter(
    (row) =>
      plans.some((plan) => !plan.results) || plans.some((plan) => plan.results && row.cell(plan.results) !== "–"),
  );
  return (
    <Card
      title="Compare"
      note={plans.length > 1 ? "differences from the first" : "pin another plan, also of another cluster"}
      end={
        <button type="button" class="btn quiet" onClick={() => change({ pin: "" }, true)}>
          Clear
        </button>
      }
    >
      <Scroll>
        <table class="rows compare">
          <tbody>
            {said.map((row) => (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                {plans.map((plan, i) => {
                  const delta =
                    i > 0 && row.number && first && plan.results
                      ? row.number(plan.results) / row.number(first) - 1
                      : Number.NaN;
                  return (
                    <td key={plan.pin}>
                      {plan.results ? (
                        row.cell(plan.results)
                      ) : plan.wrong && row.name === "Model" ? (
                        <span class="wrong">{plan.wrong}</span>
                      ) : (
                        "…"
                      )}
                      {Number.isFinite(delta) && <span class="muted"> {signed(delta)}</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
            <tr>
              <th scope="row">
                <span class="sr">Actions</span>
              </th>
              {plans.map((plan) => (
                <td key={plan.pin}>
                  <div class="row">
                    <button
                      type="button"
                      class="btn"
                      onClick={() => go({ view: "plan", query: { ...keepLook(query), ...asQuery(plan.args) } })}
                    >
                      Open
                    </button>
                    <button
                      type="button"
                      class="btn quiet"
                      onClick={() => change({ pin: pins.filter((one) => one !== plan.pin).join("|") }, true)}
                    >
                      Unpin
                    </button>
                  </div>
                </td>
              ))}
            </tr>
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
