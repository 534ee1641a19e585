import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import { chipOf, filled, requestOf, shortChip, v, withArguments } from "../../engine/request";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import type { Interval, Quantity } from "../../engine/schema";
import { Between, Callout, Extrapolates, Fact, Num, Plan, verdictWord } from "../../parts/basics";
import type { Node } from "../../parts/basics";
import { Derived } from "../../parts/derivation";
import { bytes, int, percent, quantity, sentence, si, sig, signed, time } from "../../text/format";
import { change, keepLook } from "../../url";
import type { Place, Query } from "../../url";
import { Strip } from "../bars";
import { limitName, limitWords } from "../words";
import { AlternativesCard } from "./alternatives";
import { ChangesCard, apply, useChanges } from "./changes";
import type { Changes } from "./changes";
import { CompareCard } from "./compare";
import { PinButton, chosenArguments, strategyText } from "./pins";
import { Details } from "../details";
import { MemoryCard } from "./memory";
import { defaults } from "./defaults";
import { PlanRequest } from "./request";
import { SizesCard } from "./sizes";
import { LimitsCard, TimeCard } from "./time";
import { TimelineCard } from "./timeline";

export function PlanView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const request = requestOf("train", filled(query, defaults));
  const asked = useAsk(request);
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const fix = (name: string): void => {
    const where = refusalOf(asked)?.error.where.replace(/^--/, "").toLowerCase() ?? "";
    const on = String(request.arguments.on ?? "");
    if (where === "model") change({ ...filled(query, defaults), model: name });
    else if (where === "on")
      change({
        ...filled(query, defaults),
        on: on.includes(":") && !name.includes(":") ? `${name}:${on.split(":").slice(1).join(":")}` : name,
      });
  };
  return (
    <div class="view">
      <PlanRequest query={query} request={request} refusal={refusalOf(asked)} />
      <AnswerFrame asked={asked} request={request as Request} fix={fix}>
        {(answer) => (
          <PlanAnswer answer={answer} request={request} query={query} current={!asked.busy && !refusalOf(asked)} />
        )}
      </AnswerFrame>
    </div>
  );
}

function PlanAnswer({
  answer,
  request,
  query,
  current,
}: {
  answer: Answer<"train">;
  request: Request<"train">;
  query: Query;
  current: boolean;
}): JSX.Element {
  const r = answer.results;
  // what takes longer is asked behind the answer, and only for the request it belongs to
  const settled = current ? request : null;
  const timeline = useAsk(settled && withArguments(settled, { timeline: true }), true);
  const sensitivity = useAsk(settled && withArguments(settled, { sensitivity: true }), true);
  const changes = useChanges(request, current ? answer : undefined);
  const nodes = useMemo(
    (): Node[] =>
      r.step_time
        ? [
            { name: "step time", value: v(r.step_time.estimate), unit: "s", interval: r.step_time.interval },
            { name: "memory", value: v(r.memory.total), unit: "B", interval: r.memory_interval },
            ...(r.training_time
              ? [
                  {
                    name: "training time",
                    value: v(r.training_time.estimate),
                    unit: "s",
                    interval: r.training_time.interval,
                  },
                ]
              : []),
            ...(r.cost
              ? [
                  {
                    name: "cost",
                    value: v(r.cost),
                    unit: "USD",
                    interval: scaled(r.step_time.interval, v(r.step_time.estimate), r.cost),
                  },
                ]
              : []),
          ]
        : [],
    [r],
  );
  if (!r.step_time) return <Head>{sentence(answer.headline)}</Head>; // several clusters: the engine's own sentence
  return (
    <Derived request={settled as Request | null} extra={nodes}>
      <PlanHead answer={answer} changes={changes} request={request} query={query} />
      <CompareCard query={query} />
      {r.sizes && r.sizes.length > 1 && <SizesCard sizes={r.sizes} look={keepLook(query)} />}
      <div class="g2">
        <MemoryCard results={r} />
        <TimeCard results={r} />
      </div>
      <TimelineCard timeline={timeline.answer?.results.timeline} />
      <div class="g2">
        <ChangesCard changes={changes} />
        <LimitsCard results={r} more={sensitivity.busy ? undefined : sensitivity.answer?.results} />
      </div>
      <AlternativesCard results={r} base={request.arguments} query={query} />
      <Details answer={answer} request={request} query={query} />
    </Derived>
  );
}

function PlanHead({
  answer,
  changes,
  request,
  query,
}: {
  answer: Answer<"train">;
  changes: Changes;
  request: Request<"train">;
  query: Query;
}): JSX.Element {
  const r = answer.results;
  const { memory, step_time: step } = r;
  const verdict = memory.verdict;
  const interval = step.interval;
  const estimate = v(step.estimate);
  const chip = shortChip(chipOf(r.cluster));
  const next = r.limits?.find((limit) => limit.distance > 1);
  const tried = changes.done ? changes.list : [];
  const roomy = tried.find((one) => one.verdict === "fits");
  const better = tried.find((one) => one.gain > 0.004 && one.verdict === "fits");
  const best = verdict === "fits" ? better : roomy;
  const over = v(memory.total) - v(memory.capacity);
  const stepNum = <Num of="step time">{time(estimate)}</Num>;
  const applyRoomy = roomy && (
    <button type="button" class="btn" onClick={() => apply(roomy)}>
      Apply <span class="mono">{roomy.flags}</span>
    </button>
  );
  return (
    <>
      <Head
        sub={
          <>
            <span>{r.search ? `Best of ${si(r.search.considered)} plans:` : "The plan:"}</span>
            <Plan strategy={strategyText(r)} />
            <Extrapolates interval={interval} />
            <PinButton query={query} args={chosenArguments(r, request.arguments)} name={strategyText(r)} words />
          </>
        }
      >
        {verdict === "no" ? (
          <>
            It does not fit: <Num of="memory">{bytes(v(memory.total))}</Num> a chip, and one {chip} has{" "}
            {bytes(v(memory.capacity))}.
          </>
        ) : (
          <>
            {stepNum} per step on {int(r.chips)} {chip}. {verdict === "fits" ? "It fits" : "It may not fit"}, and{" "}
            {limitWords(r.limiter)} limits it.
          </>
        )}
      </Head>
      {verdict === "tight" && (
        <Callout kind="tight" actions={applyRoomy}>
          <p>
            <b>
              {bytes(v(memory.total))} is estimated, but runs like this one peaked at up to{" "}
              {bytes(v(r.memory_interval?.high))}
            </b>
            , and a chip has {bytes(v(memory.capacity))}.
            {roomy && ` ${roomy.name} leaves room, for ${time(roomy.step)} per step.`}
          </p>
        </Callout>
      )}
      {verdict === "no" && (
        <Callout kind="no" actions={applyRoomy}>
          <p>
            <b>
              {bytes(over)} too much{memory.reason ? `: ${memory.reason}` : ""}.
            </b>{" "}
            {roomy
              ? `${roomy.name}: ${bytes(roomy.memory)} a chip and ${time(roomy.step)} per step.`
              : changes.done
                ? "None of the changes below fits."
                : ""}
          </p>
        </Callout>
      )}
      <div class="facts">
        <Fact question="Does it fit?" big={verdictWord[verdict]} verdict={verdict}>
          <p>
            <b>
              <Num of="memory">{bytes(v(memory.total))}</Num>
            </b>{" "}
            of {bytes(v(memory.capacity))} a chip
          </p>
          <p>
            <Between interval={r.memory_interval} />
          </p>
        </Fact>
        <Fact
          question={verdict === "no" ? "How fast would it be?" : "How fast is it?"}
          big={
            <>
              {stepNum}
              <small> per step</small>
            </>
          }
        >
          <p>
            <Between interval={interval} />
          </p>
          {interval && (
            <Strip low={v(interval.low)} high={v(interval.high)} estimate={estimate} ideal={v(step.lower)} />
          )}
        </Fact>
        <Fact question="What limits it?" big={limitName(r.limiter)}>
          <p>
            <Num of="mfu">{percent(r.mfu)}</Num> of the peak (MFU)
          </p>
          {next && (
            <p>
              next: {limitName(next.limit).toLowerCase()}, <b>{sig(next.distance, 2)}×</b> away
            </p>
          )}
        </Fact>
        <Fact
          question="What should I change?"
          big={changes.done ? (best?.name ?? "Nothing nearby") : "Trying changes"}
          waits={!changes.done}
        >
          {changes.done && best ? (
            <>
              <p>
                <b>{time(best.step)}</b>
                {Number.isFinite(best.gain) ? `, ${signed(best.gain)} tokens/s a chip` : " per step"}
              </p>
              <p>
                <button type="button" class="btn one-line" title={best.flags} onClick={() => apply(best)}>
                  Apply <span class="mono tiny">{best.flags}</span>
                </button>
              </p>
            </>
          ) : (
            <p>
              {changes.done
                ? `None of ${int(changes.tried)} changes is faster and fits`
                : `${int(changes.tried)} of ${int(changes.of)} are tried`}
            </p>
          )}
        </Fact>
        {verdict !== "no" && (
          <div class="totals">
            {r.training_time && (
              <span>
                {String(answer.inputs.tokens ?? "")} tokens:{" "}
                <b>
                  <Num of="training time">{time(v(r.training_time.estimate))}</Num>
                </b>{" "}
                <Between interval={r.training_time.interval} share={false} />
              </span>
            )}
            {r.cost && (
              <span>
                Cost{" "}
                <b>
                  <Num of="cost">{quantity(v(r.cost), "USD")}</Num>
                </b>{" "}
                <Between interval={scaled(interval, estimate, r.cost)} share={false} />
              </span>
            )}
            <span>
              Throughput{" "}
              <b>
                <Num of="tokens per second per chip">{si(v(r.tokens_per_second_per_chip), "tokens/s")}</Num>
              </b>{" "}
              a chip
            </span>
            {r.energy && (
              <span>
                Energy{" "}
                <b>
                  <Num of="energy">{quantity(v(r.energy), "J", 3)}</Num>
                </b>
              </span>
            )}
          </div>
        )}
      </div>
    </>
  );
}
/** The interval of the step, of what grows with it. */
const scaled = (interval: Interval | undefined, step: number, of: Quantity): Interval | undefined =>
  interval && {
    ...interval,
    low: { value: (v(interval.low) / step) * v(of), unit: of.unit },
    high: { value: (v(interval.high) / step) * v(of), unit: of.unit },
  };
