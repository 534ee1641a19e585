// What would help: plans next to this one, and the same question with one thing changed.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Answer, Request } from "../../engine/ask";
import { ask, refused } from "../../engine/ask";
import { asQuery, chipOf, clusterOf, resize, shapeOf, v, withArguments } from "../../engine/request";
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

/** The changes that are tried beside those of the answer. */
function tries(request: Request<"train">, results: TrainResults): [string, Arguments][] {
  const args = request.arguments;
  const on = String(args.on ?? "");
  const list: [string, Arguments][] = [];
  const fits = results.memory.verdict === "fits";
  if (!args.compute) list.push(["Products in fp8", { compute: "fp8" }]);
  if (!args.software) list.push(["Plans of any software", { software: "any" }]);
  const batch = String(args.batch ?? "");
  const double = resize(batch, 2);
  const half = resize(batch, 0.5);
  if (fits && double) list.push(["Batch twice as large", { batch: double }]);
  if (half) list.push(["Batch half as large", { batch: half }]);
  const more = fits || !results.ways_out ? resize(shapeOf(on), 2) : null;
  if (more) list.push(["2× the chips", { on: clusterOf(chipOf(on), more) }]);
  if (fits && shapeOf(on) && resize(shapeOf(on), 0.5))
    list.push(["Half the chips", { on: clusterOf(chipOf(on), resize(shapeOf(on), 0.5)!) }]);
  return list;
}

/** The best first. What is recommended is known when all were tried. */
export interface Changes {
  list: readonly Change[];
  tried: number;
  of: number;
  done: boolean;
}
const none: Changes = { list: [], tried: 0, of: 0, done: false };
/** Requests under way at a time: the answer to what the reader does next finds a free worker. */
const atOnce = 3;

/** Where the plan does not fit, the answer itself says what would. */
const waysOut = (base: TrainResults): Change[] =>
  (base.ways_out ?? []).map((one) => ({
    name: one.change
      .replace(/^--on [^:]+:(\S+)$/, "$1 chips")
      .replace(/^--lora (\d+)$/, "Adapters of rank $1")
      .replace(/^--/, "")
      .replaceAll(" --", ", "),
    flags: one.change,
    query: asQuery(one.arguments),
    step: v(one.step_time),
    interval: one.interval,
    gain: Number.NaN, // against a plan that cannot run
    memory: v(one.memory.total),
    verdict: one.memory.verdict,
  }));
const improvements = (improved: TrainResults): Change[] =>
  (improved.changes ?? []).map((one) => ({
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

/** Asks all changes behind the answer itself; they are shown together once all have come. A new answer starts over. */
export function useChanges(request: Request<"train">, answer: Answer<"train"> | undefined): Changes {
  const [changes, set] = useState<Changes>(none);
  useEffect(() => {
    if (!answer) return;
    set(none);
    const abort = new AbortController();
    const base = answer.results;
    const found: Change[] = waysOut(base);
    const jobs: (() => Promise<void>)[] = [
      async () => {
        const improved = await ask(withArguments(request, { improve: true }), abort.signal, true);
        if (!refused(improved)) found.push(...improvements(improved.results));
      },
      ...tries(request, base).map(([name, args]) => async () => {
        const reply = await ask(withArguments(request, args), abort.signal, true);
        if (!refused(reply) && reply.results.step_time) found.push(fromAnswer(name, args, reply.results, base));
      }),
    ];
    const all = jobs.length;
    const run = async (): Promise<void> => {
      set({ ...none, of: all });
      const worker = async (): Promise<void> => {
        for (let job = jobs.shift(); job; job = jobs.shift()) {
          await job();
          set((before) => ({ ...before, tried: before.tried + 1 }));
        }
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      const known = new Set<string>();
      const list = found
        .sort((a, b) => (b.gain || -1) - (a.gain || -1))
        .filter((one) => !known.has(one.flags) && known.add(one.flags));
      set({ list, tried: all, of: all, done: true });
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

export function ChangesCard({ changes: { list: changes, tried, of, done } }: { changes: Changes }): JSX.Element {
  const gains = changes.map((one) => one.gain).filter(Number.isFinite);
  const most = Math.max(0.01, ...gains);
  const least = Math.min(-0.001, ...gains);
  const memory = changes.every((one) => one.verdict === "fits") ? "n hide-s" : "n";
  return (
    <Card
      title="What would change it"
      note={`${done ? `${tried} tried` : `${tried} of ${of} tried`}, each alone, the rest searched again; tokens/s of a chip`}
      table={() => [
        ["change", "flags", "step_s", "gain", "memory_bytes", "verdict"],
        ...changes.map((one) => [one.name, one.flags, one.step, one.gain, one.memory, one.verdict]),
      ]}
    >
      {changes.length === 0 ? (
        <p class="muted">{done ? "No change of one choice is faster." : "Being asked…"}</p>
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
                    {Number.isFinite(one.gain) && <Gain value={one.gain} least={least} most={most} />}
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
