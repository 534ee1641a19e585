// A chip from its parts: what it takes in area, power and money, and what a workload reaches on it, while parts are dragged.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { refused, useAsk } from "../../engine/ask";
import { requestOf, v, withArguments } from "../../engine/request";
import type { DesignResults, Range } from "../../engine/schema";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import { Fact, Num } from "../../parts/basics";
import type { Verdict } from "../../parts/basics";
import { Card, NotesCard } from "../../parts/card";
import { Derived } from "../../parts/derivation";
import { bytes, int, percent, sentence, si, siRange, sig, signed, unknown, usd, usdRange } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { PartList, StackedBar } from "../bars";
import { DiesCard } from "./dies";
import { DesignPanel } from "./panel";
import { readSets, setsAfter, valuesOf } from "./parts";
import { area, words } from "./words";
import { WorkloadCard, chipOf } from "./workload";
import type { Chip } from "./workload";

const defaults: Query = {
  file: "h100",
  train: "train llama-3-8b --on {chip}:64 --batch 1Mi --seq 8192",
  serve: "serve llama-3-8b --on {chip}:8 --prompt 2048 --output 256",
};

/** Whether it can be built, in the engine's words. */
function status(answer: Answer<"design"> | undefined): { verdict: Verdict; words: string } {
  if (!answer) return { verdict: "fits", words: "" };
  if (answer.outcome !== "ok") return { verdict: "no", words: sentence(words(answer.headline)) };
  const large = answer.notes?.find((note) => note.includes("reticle"));
  if (large) return { verdict: "tight", words: `Can be built, perhaps: ${words(large)}.` };
  return {
    verdict: "fits",
    words: `Can be built: the largest die is ${percent(answer.results.area?.of_reticle)} of the reticle.`,
  };
}

export function DesignView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const given = { ...defaults, ...place.query };
  const file = given.file!;
  const request = requestOf("design", { file, set: given.set ?? "" });
  const asked = useAsk(withArguments(request, { explain: "all" }));
  const first = useAsk({ verb: "design", arguments: { file, explain: "all" } });
  const known = useAsk({ verb: "design", arguments: {} });
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const refusal = refusalOf(asked);
  const before = first.reply && !refused(first.reply) ? first.reply : undefined;
  const base = useMemo(() => valuesOf(before?.results.file ?? ""), [before?.results.file]);
  const sets = useMemo(() => readSets(given.set ?? ""), [given.set]);
  const choose = (id: string): void => change({ file: id === defaults.file ? "" : id, set: "", open: "" });
  const own = (key: string, line: string): void => change({ [key]: line === defaults[key] ? "" : line });
  const said = refusal ? { verdict: "no" as const, words: sentence(words(refusal.error.what)) } : status(asked.answer);
  return (
    <div class="view">
      <DesignPanel
        known={[...new Set(known.answer?.results.powers?.map((one) => one.chip) ?? [])]}
        file={file}
        base={base}
        sets={sets}
        technology={before?.results.technology}
        verdict={said.verdict}
        words={said.words}
        refusal={refusal}
        request={request}
        choose={choose}
        change={(changes, done) => change({ set: setsAfter(base, sets, changes) }, !done)}
      />
      <AnswerFrame asked={asked} request={request as Request} fix={choose}>
        {(answer) => (
          <DesignAnswer
            answer={answer}
            before={before}
            from={file}
            differs={sets.size}
            reset={() => change({ set: "" })}
            workloads={(chip, old) => (
              <>
                {(["train", "serve"] as const).map((verb) => (
                  <WorkloadCard
                    key={verb}
                    verb={verb}
                    line={given[verb]!}
                    chip={chip}
                    before={old}
                    from={file}
                    design={request}
                    onChange={(line) => own(verb, line)}
                  />
                ))}
              </>
            )}
          />
        )}
      </AnswerFrame>
    </div>
  );
}

function DesignAnswer({
  answer,
  before,
  from,
  differs,
  reset,
  workloads,
}: {
  answer: Answer<"design">;
  before: Answer<"design"> | undefined;
  from: string;
  differs: number;
  reset: () => void;
  workloads: (chip: Chip | null, before: Chip | null) => ComponentChildren;
}): JSX.Element {
  const r = answer.results;
  const built = answer.outcome === "ok";
  const made = chipOf(r.chip);
  return (
    <Derived trees={answer.derivation}>
      <div class="steady">
        <Head
          sub={
            <>
              <span>
                {differs === 0
                  ? `${from}, predicted from its parts`
                  : `${differs} ${differs === 1 ? "part differs" : "parts differ"} from ${from}`}
              </span>
              <button type="button" class="btn mini" disabled={differs === 0} onClick={reset}>
                Back to {from}
              </button>
            </>
          }
        >
          {built ? (
            <>
              {si(v(r.peak), "FLOP/s")} from <Num of="area">{area(v(r.area?.total.estimate))}</Num> for{" "}
              <Num of="cost">{usd(v(r.cost?.total.estimate))}</Num>.
            </>
          ) : (
            "It cannot be built."
          )}
        </Head>
      </div>
      <Facts results={r} before={before?.results} from={from} />
      <div class="g2">{workloads(built ? made : null, chipOf(before?.results.chip))}</div>
      {!made && (
        <p class="muted">This design names no base: a chip whose network and hosts requests could be asked on.</p>
      )}
      <div class="g2">
        <DiesCard dies={r.area?.dies ?? []} before={before?.results.area?.dies ?? []} />
        <Sums results={r} />
      </div>
      <NotesCard answer={answer} />
    </Derived>
  );
}

function Facts({
  results: r,
  before,
  from,
}: {
  results: DesignResults;
  before: DesignResults | undefined;
  from: string;
}): JSX.Element {
  const of = (range: Range | undefined): number => v(range?.estimate);
  const draws = (one: DesignResults | undefined): number =>
    Math.min(of(one?.power?.total), one?.power?.limit ? v(one.power.limit) : Infinity);
  const { area: silicon, power, cost, owning } = r;
  const fact = (
    question: string,
    tree: string,
    value: (of: DesignResults | undefined) => number,
    write: (x: number) => string,
    under: string,
  ): JSX.Element => {
    const by = value(r) / value(before) - 1;
    return (
      <Fact question={question} big={<Num of={tree}>{write(value(r))}</Num>}>
        <p>
          <b>{Math.abs(by) < 5e-4 || !Number.isFinite(by) ? `as ${from}` : `${signed(by)} on ${from}`}</b>
        </p>
        <p>{under}</p>
      </Fact>
    );
  };
  const ends = (range: Range | undefined): [number, number] => [v(range?.lower), v(range?.upper)];
  const [least, most] = ends(silicon?.total);
  const free = `${siRange(...ends(power?.total), "W")} at full load`;
  const limited = `its limit; without it ${si(of(power?.total), "W")}`;
  return (
    <div class="facts">
      {fact("How large is it?", "area", (one) => of(one?.area?.total), area, `${sig(least)}–${area(most)} by sources`)}
      {fact("What does it draw?", "power", draws, (x) => si(x, "W"), draws(r) < of(power?.total) ? limited : free)}
      {fact(
        "What does it take to make?",
        "cost",
        (one) => of(one?.cost?.total),
        usd,
        `${usdRange(...ends(cost?.total))} by sources`,
      )}
      {fact(
        "What does it cost to own?",
        "owning",
        (one) => v(one?.owning?.per_hour),
        (x) => (owning ? `${usd(x)}/h` : unknown),
        owning ? `${si(v(owning.power), "W")} from the grid` : "it has no base whose servers it could have",
      )}
      <div class="totals">
        <span>
          Peak in 16 bits <b>{si(v(r.peak), "FLOP/s")}</b>
        </span>
        <span>
          Clock <b>{si(v(r.clock), "Hz")}</b>
        </span>
        {r.memory && (
          <span>
            {r.memory.stacks} × {r.memory.kind} <b>{bytes(v(r.memory.capacity))}</b> at{" "}
            <b>{si(v(r.memory.bandwidth), "B/s")}</b>
          </span>
        )}
        {r.link_bandwidth && (
          <span>
            Links, one way <b>{si(v(r.link_bandwidth), "B/s")}</b>
          </span>
        )}
      </div>
    </div>
  );
}

/** What power and cost consist of. */
function Sums({ results: { power, cost, owning } }: { results: DesignResults }): JSX.Element {
  const sum = (
    title: string,
    total: number,
    write: (x: number) => string,
    parts: readonly [string, number, string][],
    limit?: number,
  ): JSX.Element => {
    const list = parts.map(([name, value, fill]) => ({ name, value: value || 0, fill: `var(--${fill})` }));
    return (
      <div>
        <h3 class="spread small">
          {title} <b>{write(total)}</b>
        </h3>
        <StackedBar
          parts={list}
          total={list.reduce((all, part) => all + part.value, 0)}
          limit={limit ? { at: limit, label: `limit ${write(limit)}`, hard: true } : undefined}
          label={`${title}: ${write(total)}`}
        />
        <PartList parts={list} write={write} node={() => undefined} />
      </div>
    );
  };
  const watts = (x: number): string => si(x, "W");
  return (
    <Card title="What power and cost consist of" name="power-and-cost">
      <div class="stackgap">
        {power &&
          sum(
            "Power at full load, at the clock of the design",
            v(power.total.estimate),
            watts,
            [
              ["Arithmetic", v(power.arithmetic), "s1"],
              ["Memory", v(power.memory), "s3"],
              ["Links", v(power.links), "s2"],
              ["Leakage", v(power.leakage), "s4"],
            ],
            power.limit ? v(power.limit) : undefined,
          )}
        {cost &&
          sum("Making one", v(cost.total.estimate), usd, [
            ["Dies", v(cost.dies), "s1"],
            ["Memory", v(cost.memory), "s3"],
            ["Package", v(cost.package), "s6"],
            ["Test", v(cost.test), "s7"],
            ["Masks and design", v(cost.masks_and_design), "s4"],
          ])}
        {owning &&
          sum(`Owning one for an hour, among ${int(owning.chips)}`, v(owning.per_hour), usd, [
            ["Chip", v(owning.chip), "s1"],
            ["Server", v(owning.server), "s6"],
            ["Network", v(owning.network), "s2"],
            ["Building", v(owning.building), "s7"],
            ["Energy", v(owning.energy), "s4"],
          ])}
      </div>
    </Card>
  );
}
