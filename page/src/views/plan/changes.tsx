// What would help: plans next to this one, and the same question with one thing changed.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Answer, Request } from "../../engine/ask";
import { ask, refused } from "../../engine/ask";
import { chipOf, clusterOf, resize, shapeOf, v, withArguments } from "../../engine/request";
import type { Arguments, Interval, TrainResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { Between, Gain, Num, Tag } from "../../parts/basics";
import type { Verdict } from "../../parts/basics";
import { Scroll } from "../../parts/scroll";
import { bytes, signed, time } from "../../text/format";
import { change as goTo } from "../../url";
import type { Query } from "../../url";

export interface Change {
  name: string;
  flags: string;
  query: Query;
  step: number;
  interval?: Interval;
  /** Change of tokens per second and chip. */
  gain: number;
  memory: number;
  verdict: Verdict;
  why?: string;
}
const flagsOf = (args: Arguments): string =>
  Object.entries(args)
    .map(([key, value]) => `--${key} ${String(value)}`)
    .join(" ");
const gainOf = (results: TrainResults, base: TrainResults): number =>
  v(results.tokens_per_second_per_chip) / v(base.tokens_per_second_per_chip) - 1;

function fromAnswer(name: string, args: Arguments, results: TrainResults, base: TrainResults): Change {
  return {
    name,
    flags: flagsOf(args),
    query: Object.fromEntries(Object.entries(args).map(([key, value]) => [key, String(value)])),
    step: v(results.step_time.estimate),
    interval: results.step_time.interval,
    gain: gainOf(results, base),
    memory: v(results.memory.total),
    verdict: results.memory.verdict,
  };
}

/** The changes that are tried; where nothing fits, those that need less memory. */
function tries(request: Request<"train">, results: TrainResults): [string, Arguments][] {
  const args = request.arguments;
  const on = String(args.on ?? "");
  const list: [string, Arguments][] = [];
  const bigger = (factor: number): Arguments | null => {
    let shape: string | null = shapeOf(on);
    for (let k = 1; k < factor && shape; k *= 2) shape = resize(shape, 2);
    return shape ? { on: clusterOf(chipOf(on), shape) } : null;
  };
  const fits = results.memory.verdict === "fits";
  if (!args.compute) list.push(["Products in fp8", { compute: "fp8" }]);
  if (!args.software) list.push(["Plans of any software", { software: "any" }]);
  const batch = String(args.batch ?? "");
  const double = resize(batch, 2);
  const half = resize(batch, 0.5);
  if (fits && double) list.push(["Batch twice as large", { batch: double }]);
  if (half) list.push(["Batch half as large", { batch: half }]);
  for (const factor of fits ? [2] : [2, 4, 8, 16]) {
    const more = bigger(factor);
    if (more) list.push([`${factor}× the chips`, more]);
  }
  if (fits && shapeOf(on) && resize(shapeOf(on), 0.5))
    list.push(["Half the chips", { on: clusterOf(chipOf(on), resize(shapeOf(on), 0.5)!) }]);
  return list;
}

/** The best first. What is recommended is known when all were tried. */
export interface Changes {
  list: readonly Change[];
  tried: number;
  done: boolean;
}
const none: Changes = { list: [], tried: 0, done: false };

/** Asks one change after the other, behind the answer itself; a new answer starts over. */
export function useChanges(request: Request<"train">, answer: Answer<"train"> | undefined): Changes {
  const [changes, set] = useState<Changes>(none);
  useEffect(() => {
    set(none);
    if (!answer) return;
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      const base = answer.results;
      const add = (tried: number, found: readonly Change[]): void =>
        set((before) => ({
          list: [...before.list, ...found].sort((a, b) => b.gain - a.gain),
          tried: before.tried + tried,
          done: false,
        }));
      const improved = await ask(withArguments(request, { improve: true }), abort.signal);
      if (!refused(improved)) {
        const found = (improved.results.changes ?? []).map((one): Change => ({
          name: one.change
            .replace(/^--/, "")
            .replaceAll(" --", ", ")
            .replace(/(^|, )([\w-]+) /g, "$1$2 "),
          flags: one.change,
          query: Object.fromEntries(
            [...one.change.matchAll(/--([\w-]+)(?: ([^-][^ ]*))?/g)].map((match) => [match[1]!, match[2] ?? "true"]),
          ),
          step: v(one.step_time),
          interval: one.interval,
          gain: one.faster_by,
          memory: v(one.memory?.total),
          verdict: one.memory?.verdict ?? "fits",
          why: one.why,
        }));
        add(found.length, found);
      }
      for (const [name, args] of tries(request, base)) {
        const reply = await ask(withArguments(request, args), abort.signal);
        if (refused(reply) || !reply.results.step_time) {
          add(1, []);
          continue;
        }
        const one = fromAnswer(name, args, reply.results, base);
        add(1, [one]);
        if (base.memory.verdict !== "fits" && one.verdict === "fits" && name.endsWith("chips")) break;
      }
      set((before) => ({ ...before, done: true }));
    };
    const timer = window.setTimeout(() => void run().catch(() => undefined), 250);
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [answer]);
  return changes;
}

export const apply = (one: Change): void => goTo({ ...one.query, open: "" });

export function ChangesCard({ changes: { list: changes, tried, done } }: { changes: Changes }): JSX.Element {
  const most = Math.max(0.01, ...changes.map((one) => one.gain));
  const least = Math.min(-0.001, ...changes.map((one) => one.gain));
  const memory = changes.every((one) => one.verdict === "fits") ? "n hide-s" : "n";
  return (
    <Card
      title="What would change it"
      note={`${done ? `${tried} tried` : "trying"}, one at a time, the rest searched again; tokens/s of a chip`}
      table={() => [
        ["change", "flags", "step_s", "gain", "memory_bytes", "verdict"],
        ...changes.map((one) => [one.name, one.flags, one.step, one.gain, one.memory, one.verdict]),
      ]}
    >
      {changes.length === 0 ? (
        <p class="muted">Being asked…</p>
      ) : (
        <Scroll>
          <table class="rows small changes">
            <thead>
              <tr>
                <th>Change</th>
                <th class="hide-s">
                  <span class="sr">Picture</span>
                </th>
                <th class="n">Gain</th>
                <th class="n">Step</th>
                <th class={memory}>Memory</th>
                <th>
                  <span class="sr">Apply</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {changes.map((one) => (
                <tr key={one.flags}>
                  <td>
                    {one.name}
                    {one.name !== one.flags.replace(/^--/, "").replaceAll(" --", ", ") && (
                      <>
                        <br />
                        <span class="mono muted tiny">{one.flags}</span>
                      </>
                    )}
                  </td>
                  <td class="hide-s wide">
                    <Gain value={one.gain} least={least} most={most} />
                  </td>
                  <td class="n">{signed(one.gain)}</td>
                  <td class="n">
                    <Num
                      of={{
                        name: `step time with ${one.flags}`,
                        value: one.step,
                        unit: "s",
                        interval: one.interval,
                        note: one.why,
                        formula: "the same request with this change, everything else searched again",
                      }}
                    >
                      {time(one.step)}
                    </Num>
                    <br />
                    <Between interval={one.interval} share={false} />
                  </td>
                  <td class={memory}>
                    <Tag verdict={one.verdict}>{bytes(one.memory)}</Tag>
                  </td>
                  <td class="n">
                    <button type="button" class="btn mini" aria-label={`Apply ${one.flags}`} onClick={() => apply(one)}>
                      Apply
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Card>
  );
}
