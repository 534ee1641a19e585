import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Asked, Request } from "../../engine/ask";
import { refused, useAsk, useAskAbout } from "../../engine/ask";
import { chipOf, filled, requestOf, resize, shortChip, v, withArguments } from "../../engine/request";
import type { Arguments, Interval, Quantity, ServeResults } from "../../engine/schema";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import { Between, Callout, Extrapolates, Fact, Num, Plan, Track, verdictWord } from "../../parts/basics";
import type { Node } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Derived } from "../../parts/derivation";
import { useTrace } from "../../parts/drop";
import { alike, bytes, int, sentence, si, siRange, time, usd } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { PartList, StackedBar } from "../bars";
import { Details } from "../details";
import { limitFill, limitName, limitWords, serveMemory } from "../words";
import { FrontCard, meets } from "./front";
import type { Curve, Limits, Point } from "./front";
import { HelpsCard } from "./helps";
import { LoadCard } from "./load";
import type { Trace } from "./load";
import { ServeRequest, defaults, seconds } from "./request";

const pointsOf = (results: ServeResults | undefined): Point[] =>
  (results?.pareto ?? []).map((p) => ({
    batch: p.batch,
    latency: v(p.latency),
    throughput: v(p.throughput_per_chip),
    first: v(p.ttft),
    strategy: p.strategy,
    limiter: p.limiter,
    cost: p.cost ? v(p.cost) : null,
    interval: p.interval,
  }));
/** The plan of an answer as options. */
function planOf(results: ServeResults): Arguments | null {
  if (!results.batch || !results.served) return null;
  const { dp, tp, pp, ep } = results.strategy as Record<string, unknown>;
  return { dp: String(dp), tp: String(tp), pp: String(pp), ep: String(ep), batch: String(results.batch) };
}
const strategyText = (results: ServeResults): string => {
  const s = results.strategy as Record<string, unknown>;
  const parts = ["dp", "tp", "pp", "ep"].filter((key) => Number(s[key]) > 1).map((key) => `${key} ${String(s[key])}`);
  return parts.length ? parts.join(", ") : "one chip";
};
const without = (request: Request<"serve">, names: readonly string[]): Request<"serve"> => ({
  verb: "serve",
  arguments: Object.fromEntries(Object.entries(request.arguments).filter(([key]) => !names.includes(key))),
});

export function ServeView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const at = filled(query, defaults);
  const request = requestOf("serve", at);
  const limits: Limits = { tpot: seconds(at.tpot), ttft: seconds(at.ttft) };
  const open = without(request, ["tpot", "ttft", "rate", "simulate", "batch"]);
  const front = useAsk(open);
  const points = useMemo(() => pointsOf(front.answer?.results), [front.answer]);
  // Where nothing meets the limits the engine looks at larger clusters, too, which takes seconds: the front says it at once.
  const possible = points.some((point) => meets(point, limits));
  const ready = front.answer !== undefined && !front.busy;
  const plan = at.batch
    ? without(request, ["tpot", "ttft", "rate", "simulate"])
    : possible
      ? without(request, ["rate", "simulate"])
      : withArguments(open, { batch: 1 });
  const asked = useAsk(ready ? plan : null);
  // The plan of the headline under load, not the one that would be chosen for this load.
  const fixed = !asked.busy && asked.answer ? planOf(asked.answer.results) : null;
  const underLoad =
    ready && at.rate && fixed ? withArguments(without(request, possible ? [] : ["tpot", "ttft"]), fixed) : null;
  const trace = useTrace();
  const traces = useMemo(() => (trace ? [trace] : []), [trace]);
  const atRandom = useAsk(underLoad && !trace ? withArguments(underLoad, { simulate: 2000 }) : null, true);
  const traced = useAskAbout(
    underLoad && trace ? withArguments(without(underLoad, ["prompt", "output"]), { requests: trace.name }) : null,
    traces,
  );
  const loaded = trace ? traced : atRandom;
  const prompt = String(request.arguments.prompt ?? "1024");
  const contexts = [resize(prompt, 4), resize(prompt, 0.25)].filter((one): one is string => one !== null);
  const longer = useAsk(ready && contexts[0] ? withArguments(open, { prompt: contexts[0] }) : null, true);
  const shorter = useAsk(ready && contexts[1] ? withArguments(open, { prompt: contexts[1] }) : null, true);
  const others: Curve[] = [
    [contexts[0], longer],
    [contexts[1], shorter],
  ].flatMap(([name, reply]) =>
    name && (reply as Asked<"serve">).answer
      ? [{ name: `${String(name)} tokens`, points: pointsOf((reply as Asked<"serve">).answer?.results) }]
      : [],
  );
  const frontWrong = refusalOf(front);
  const shown: Asked<"serve"> = frontWrong ? front : { ...asked, busy: asked.busy || front.busy };
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const load = loaded.reply && !refused(loaded.reply) ? loaded.reply.results : undefined;
  return (
    <div class="view">
      <ServeRequest
        at={at}
        query={query}
        request={request}
        refusal={refusalOf(shown)}
        points={points}
        chosen={asked.answer?.results.batch}
        best={possible}
      />
      <AnswerFrame
        asked={shown}
        request={request as Request}
        fix={(name) => {
          const where = refusalOf(shown)?.error.where.toLowerCase() ?? "";
          change({
            ...at,
            ...(where === "model" ? { model: name } : { on: `${name}:${(at.on ?? "").split(":").slice(1).join(":")}` }),
          });
        }}
      >
        {(answer) => (
          <ServeAnswer
            answer={answer}
            request={request}
            query={query}
            at={at}
            front={points}
            others={others}
            limits={limits}
            possible={possible}
            load={at.rate ? load : undefined}
            trace={trace ? { name: trace.name, wrong: refusalOf(traced)?.error.what } : null}
            plan={asked.busy ? null : plan}
          />
        )}
      </AnswerFrame>
    </div>
  );
}

interface Shown {
  answer: Answer<"serve">;
  request: Request<"serve">;
  query: Query;
  at: Query;
  front: Point[];
  others: Curve[];
  limits: Limits;
  possible: boolean;
  load: ServeResults | undefined;
  /** The log of requests that arrive, and why it cannot be read. */
  trace: Trace | null;
  /** The request that is answered, once its answer is current. */
  plan: Request<"serve"> | null;
}
const scaled = (interval: Interval | undefined, base: number, x: number): Interval | undefined =>
  interval && {
    ...interval,
    low: { value: (v(interval.low) / base) * x, unit: interval.low.unit },
    high: { value: (v(interval.high) / base) * x, unit: interval.high.unit },
  };

function ServeAnswer({
  answer,
  request,
  query,
  at,
  front,
  others,
  limits,
  possible,
  load,
  trace,
  plan,
}: Shown): JSX.Element {
  const r = answer.results;
  const memory = r.memory as unknown as Record<string, Quantity | undefined> & {
    verdict: "fits" | "tight" | "no";
    max_batch: number;
  };
  const fits = memory.verdict !== "no" && r.served !== undefined && r.decode !== undefined && r.prefill !== undefined;
  const nodes = useMemo(
    (): Node[] =>
      r.prefill
        ? [{ name: "prefill", value: v(r.prefill.time.estimate), unit: "s", interval: r.prefill.time.interval }]
        : [],
    [r],
  );
  const parts = serveMemory.map(({ key, name, fill }) => ({ name, fill, value: v(memory[key]) || 0 }));
  const memoryCard = (
    <Card
      title="Memory of a chip"
      note={fits ? `batch ${int(r.batch)}; at most ${int(memory.max_batch)} fit` : verdictWord[memory.verdict]}
      drawing
      table={() => [
        ["part", "bytes"],
        ...parts.map((part) => [part.name, part.value]),
        ["total", v(memory.total)],
        ["capacity", v(memory.capacity)],
      ]}
    >
      <StackedBar
        parts={parts}
        total={v(memory.total)}
        limit={{ at: v(memory.capacity), label: `${bytes(v(memory.capacity))} a chip`, hard: true }}
        label={`memory: ${bytes(v(memory.total))} of ${bytes(v(memory.capacity))}, ${verdictWord[memory.verdict]}`}
      />
      <PartList parts={parts} write={alike(v(memory.total), "B")} node={(part) => part.name.toLowerCase()} />
    </Card>
  );
  if (!fits) {
    return (
      <Derived request={plan as Request | null} extra={nodes}>
        <Head>
          It does not fit: <Num of="memory">{bytes(v(memory.total))}</Num> a chip, and one{" "}
          {shortChip(chipOf(r.cluster ?? ""))} has {bytes(v(memory.capacity))}.
        </Head>
        <Callout kind="no">
          <p>{sentence(answer.headline)}</p>
        </Callout>
        {memoryCard}
        <Details answer={answer} request={request} query={query} />
      </Derived>
    );
  }
  const served = r.served!;
  const decode = r.decode!;
  const prefill = r.prefill!;
  const latency = v(served.time_per_token);
  const first = v(prefill.time.estimate);
  const perChip = v(served.output_tokens_per_second_per_chip);
  const tokenInterval = scaled(decode.step_time.interval, v(decode.step_time.estimate), latency);
  const chosen: Point = {
    batch: r.batch ?? 1,
    latency,
    throughput: perChip,
    first,
    strategy: strategyText(r),
    limiter: served.limiter,
    cost: null,
    interval: tokenInterval,
  };
  const good = meets(chosen, limits);
  const limited = Number.isFinite(limits.tpot) || Number.isFinite(limits.ttft);
  const reaches = tokenInterval && v(tokenInterval.high) > limits.tpot;
  const tokenNode: Node = {
    name: "time per token",
    value: latency,
    unit: "s",
    interval: tokenInterval,
    formula: "the mean over decode steps and the steps that also take in prompts",
    from: [
      { name: "decode step", value: v(decode.step_time.estimate), unit: "s" },
      { name: "step with a prompt", value: v(served.mixed_step_time?.estimate), unit: "s" },
      { name: "share of steps with a prompt", value: served.share_of_steps ?? Number.NaN, unit: "" },
    ],
  };
  const bestFirst = Math.min(...front.map((p) => p.first));
  const bestToken = Math.min(...front.map((p) => p.latency));
  const cost = served.cost_per_million_output_tokens;
  return (
    <Derived request={plan as Request | null} extra={nodes}>
      <Head
        sub={
          <>
            <span>Serving with</span>
            <Plan strategy={chosen.strategy} />
            <Extrapolates interval={decode.step_time.interval} />
          </>
        }
      >
        {possible || at.batch ? (
          <>
            <Num of="output tokens per second">{si(v(served.output_tokens_per_second), "tokens/s")}</Num> at{" "}
            <Num of={tokenNode}>{time(latency)}</Num> per token with batch{"\u00a0"}
            {int(chosen.batch)}
            {!limited
              ? ". "
              : good
                ? reaches
                  ? ". It meets the limits narrowly; "
                  : ". It meets the limits; "
                : latency > limits.tpot
                  ? ". Too slow per token; "
                  : ". The first token comes too late; "}
            {decode.limiter === prefill.limiter
              ? `${limited ? limitWords(decode.limiter) : limitName(decode.limiter)} limits decoding and prompts.`
              : `${limited ? limitWords(decode.limiter) : limitName(decode.limiter)} limits decoding, ${limitWords(prefill.limiter)} prompts.`}
          </>
        ) : (
          <>Nothing meets the limits on {r.cluster}.</>
        )}
      </Head>
      {!possible && (
        <Callout
          kind="no"
          actions={
            <button
              type="button"
              class="btn"
              onClick={() =>
                change({
                  ...at,
                  ...(bestToken > limits.tpot ? { tpot: `${Math.ceil(bestToken * 1050)}ms` } : {}),
                  ...(bestFirst > limits.ttft ? { ttft: `${Math.ceil(bestFirst * 1050)}ms` } : {}),
                  batch: "",
                })
              }
            >
              Allow what is possible
            </button>
          }
        >
          <p>
            <b>
              The fastest prefill takes {time(bestFirst)}, the fastest token {time(bestToken)}.
            </b>{" "}
            Allow that, shorten the prompt or take more chips. Shown is batch 1.
          </p>
        </Callout>
      )}
      <div class="facts five">
        <Fact
          question={limited ? "Meets the limits?" : "Does it fit?"}
          big={!limited ? verdictWord[memory.verdict] : good ? (reaches ? "Narrowly" : "Yes") : "No"}
          verdict={!limited ? memory.verdict : good ? (reaches ? "tight" : "fits") : "no"}
        >
          <p>
            {!limited
              ? `${bytes(v(memory.total))} of ${bytes(v(memory.capacity))} a chip`
              : !good
                ? latency > limits.tpot
                  ? `a token takes ${time(latency)}, limit ${time(limits.tpot)}`
                  : `the first token takes ${time(first)}, limit ${time(limits.ttft)}`
                : reaches
                  ? `unloaded; the interval reaches past ${time(limits.tpot)}`
                  : "unloaded, with its 80 % interval"}
          </p>
        </Fact>
        <Fact question="Time per token" big={<Num of={tokenNode}>{time(latency)}</Num>}>
          <p>
            <Between interval={tokenInterval} />
          </p>
        </Fact>
        <Fact question="Time to the first token" big={<Num of="prefill">{time(first)}</Num>}>
          <p>
            <Between interval={prefill.time.interval} />
          </p>
        </Fact>
        <Fact
          question="Tokens per second"
          big={
            <>
              <Num of="output tokens per second per chip">{si(perChip)}</Num>
              <small> a chip</small>
            </>
          }
        >
          <p class="iv">
            {tokenInterval
              ? `${siRange((perChip * latency) / v(tokenInterval.high), (perChip * latency) / v(tokenInterval.low))} · 80 %`
              : "ideal hardware only"}
          </p>
        </Fact>
        <Fact
          question="A million answer tokens"
          big={cost ? <Num of="cost per million output tokens">{usd(v(cost))}</Num> : "–"}
        >
          <p>
            {cost
              ? `${usd(v(served.cost_per_million_tokens))} with prompt tokens counted`
              : "no price of this chip is known"}
          </p>
        </Fact>
      </div>
      <FrontCard front={front.length > 0 ? front : [chosen]} others={others} limits={limits} chosen={chosen} at={at} />
      <div class="g2">
        {memoryCard}
        <LoadCard
          load={load?.load}
          trace={trace}
          limits={limits}
          strategy={load ? strategyText(load) : ""}
          batch={load?.load?.most_sequences ?? 0}
        />
      </div>
      {(r.helps?.length ?? 0) > 0 && <HelpsCard helps={r.helps!} at={at} />}
      <StepsCard results={r} />
      <Details answer={answer} request={request} query={query} />
    </Derived>
  );
}

function StepsCard({ results }: { results: ServeResults }): JSX.Element {
  const phases = [
    ["Step that only decodes", results.decode!.step_time, results.decode!],
    ["Prompt alone", results.prefill!.time, results.prefill!],
  ] as const;
  return (
    <Card
      title="How far is a step from its limits?"
      note="what arithmetic, memory and network would take alone at full rate; they overlap, so they are no parts of a sum"
      table={() => [
        ["phase", "estimate_s", "kernels_at_their_rooflines_s", "arithmetic_s", "memory_s", "network_s"],
        ...phases.map(([name, range, phase]) => [
          name,
          v(range.estimate),
          v(phase.kernels_at_their_rooflines),
          v(phase.compute_time),
          v(phase.memory_time),
          v(phase.network_time),
        ]),
      ]}
    >
      <div class="g2 flat">
        {phases.map(([name, range, phase]) => {
          const write = alike(v(range.estimate), "s");
          const rows: [string, string, number][] = [
            ["Kernels at their limits", "", v(phase.kernels_at_their_rooflines)],
            ["Arithmetic", "compute", v(phase.compute_time)],
            ["Memory traffic", "memory", v(phase.memory_time)],
            ["Network", "network", v(phase.network_time)],
          ];
          return (
            <table class="rows small" key={name}>
              <caption>
                {name}: {time(v(range.estimate))}; {limitWords(phase.limiter)} limits it
              </caption>
              <tbody>
                <tr>
                  <td>Estimate</td>
                  <td class="wide">
                    <Track value={v(range.estimate)} most={v(range.estimate)} fill="var(--edge)" />
                  </td>
                  <td class="n">{write(v(range.estimate))}</td>
                </tr>
                {rows
                  .filter(([, , x]) => x > 0)
                  .map(([row, key, x]) => (
                    <tr key={key}>
                      <td>{row}</td>
                      <td class="wide">
                        <Track value={x} most={v(range.estimate)} fill={key ? limitFill(key) : "var(--edge)"} />
                      </td>
                      <td class="n">{write(x)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          );
        })}
      </div>
    </Card>
  );
}
