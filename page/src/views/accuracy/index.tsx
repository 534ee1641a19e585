import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import { asCommand } from "../../engine/command";
import { asQuery, chipOf, v } from "../../engine/request";
import type { Arguments, Verb } from "../../engine/schema";
import { shapes } from "../../draw/svg";
import { AnswerFrame, Head } from "../../parts/answer";
import { Coverage, Errors, Scatter } from "./charts";
import type { Family, Row } from "./charts";
import { Between, Tag } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Segments, Select } from "../../parts/fields";
import { copy } from "../../parts/share";
import { Scroll } from "../../parts/scroll";
import { int, percent, quantity, signed } from "../../text/format";
import { change, write } from "../../url";
import type { Place, Query } from "../../url";

const sets: readonly { value: string; name: string; what: string }[] = [
  { value: "training", name: "Training step", what: "published training steps" },
  { value: "training-memory", name: "Training memory", what: "published memory peaks" },
  { value: "inference-tpot", name: "Time per token", what: "published times per token" },
  { value: "inference-ttft", name: "First token", what: "published times to the first token" },
  { value: "h200-ops", name: "Kernels", what: "kernels that we measured on an H200" },
  { value: "h200-train", name: "H200 steps", what: "training steps that we measured on an H200" },
];
const families: readonly Family[] = [
  { name: "Hopper", chips: /^(h100|h200|h800|h20|gh200)/, shape: shapes[0]!, colour: "s1" },
  { name: "Ampere and before", chips: /^(a100|a10|a6000|v100|l4|l40|rtx|p100)/, shape: shapes[1]!, colour: "s2" },
  { name: "Blackwell", chips: /^(b200|b300|gb200|gb300|b100)/, shape: shapes[2]!, colour: "s3" },
  { name: "TPU", chips: /^tpu/, shape: shapes[3]!, colour: "s4" },
  { name: "Others", chips: /./, shape: "circle", colour: "s6" },
];
const views: Partial<Record<string, string>> = {
  train: "plan",
  serve: "serve",
  roofline: "roofline",
  collective: "network",
};

export function AccuracyView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const set = sets.find((one) => one.value === query.set) ?? sets[0]!;
  const by = query.by || "hardware";
  const request: Request<"validate"> = { verb: "validate", arguments: { set: set.value, by } };
  const asked = useAsk(request);
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, set.value, by],
  );
  return (
    <div class="view wide">
      <AnswerFrame asked={asked} request={request as Request}>
        {(answer) => <AccuracyAnswer answer={answer} set={set} by={by} query={query} />}
      </AnswerFrame>
      {!asked.reply && (
        <p class="muted">Every measurement is asked as a request of its own; a thousand of them take a few seconds.</p>
      )}
    </div>
  );
}

function AccuracyAnswer({
  answer,
  set,
  by,
  query,
}: {
  answer: Answer<"validate">;
  set: (typeof sets)[number];
  by: string;
  query: Query;
}): JSX.Element {
  const r = answer.results;
  const rows = useMemo(
    (): Row[] =>
      (r.cases ?? [])
        .map((one) => ({
          ...one,
          m: v(one.measured),
          p: v(one.predicted),
          family: families.find((family) => family.chips.test(chipOf(String(one.arguments?.on ?? ""))))!,
        }))
        .filter((one) => one.m > 0 && one.p > 0),
    [r],
  );
  const present = families.filter((family) => rows.some((row) => row.family === family));
  const shown = rows.filter((row) => !query.family || row.family.name === query.family);
  const errors = shown.map((row) => Math.abs(row.p / row.m - 1)).sort((a, b) => a - b);
  const at = (share: number): number =>
    errors[Math.min(errors.length - 1, Math.floor(errors.length * share))] ?? Number.NaN;
  const covered = shown.filter((row) => row.covered).length / shown.length;
  const chosen = shown.find((row) => row.id === query.id);
  const choose = (id: string): void => change({ id, set: set.value }, true);
  return (
    <>
      <Head
        sub={
          <span>
            No measurement was seen by the numbers that predict it. The 80 % interval holds {percent(covered)} of them.
          </span>
        }
      >
        Half of {int(shown.length)} {set.what} are predicted within {percent(at(0.5), 2)}, nine in ten within{" "}
        {percent(at(0.9))}.
      </Head>
      <div class="filters">
        <Segments
          label="What is predicted"
          hideLabel
          value={set.value}
          choices={sets}
          onChange={(value) => change({ set: value, id: "", family: "" })}
        />
        {present.length > 1 && (
          <Segments
            label="Hardware"
            hideLabel
            value={query.family ?? ""}
            choices={[{ value: "", name: "All" }, ...present.map((family) => ({ value: family.name }))]}
            onChange={(family) => change({ family, id: "" })}
          />
        )}
      </div>
      <div class="g2 l">
        <Scatter rows={shown} chosen={chosen} choose={choose} present={present} />
        <div class="cards">
          <Chosen row={chosen} query={query} />
          <Coverage results={r} />
          <Errors rows={shown} />
        </div>
      </div>
      <Card
        title="Summaries"
        note={`${int(r.reported)} measurements${r.unanswered ? `; ${int(r.unanswered)} more could not be asked` : ""}`}
        end={
          <Select
            label={<span class="sr">By</span>}
            value={by}
            choices={[
              { value: "hardware", name: "by hardware" },
              { value: "model family", name: "by model family" },
              { value: "source", name: "by source" },
              { value: "regime", name: "by regime" },
              { value: "group", name: "by group" },
            ]}
            onChange={(value) => change({ by: value === "hardware" ? "" : value })}
          />
        }
        table={() => [
          ["group", "n", "median_error", "p90_error", "bias", "within_10", "within_20", "rank_correlation", "covered"],
          ...(r.summary ?? []).map((one) => [
            one.group,
            one.n,
            one.median_ape,
            one.p90_ape,
            one.bias,
            one.within_10,
            one.within_20,
            one.rank_correlation,
            one.covered,
          ]),
        ]}
      >
        <Scroll>
          <table class="rows small">
            <thead>
              <tr>
                <th>Group</th>
                <th class="n">Measurements</th>
                <th class="n">Median error</th>
                <th class="n">90 % within</th>
                <th class="n">Bias</th>
                <th class="n">Within 10 %</th>
                <th class="n">Within 20 %</th>
                <th class="n">Rank correlation</th>
                <th class="n">In the interval</th>
              </tr>
            </thead>
            <tbody>
              {(r.summary ?? []).map((one) => (
                <tr key={one.group}>
                  <td>{one.group}</td>
                  <td class="n">{int(one.n)}</td>
                  <td class="n">{percent(one.median_ape, 2)}</td>
                  <td class="n">{percent(one.p90_ape, 2)}</td>
                  <td class="n">{signed(one.bias)}</td>
                  <td class="n">{percent(one.within_10, 2)}</td>
                  <td class="n">{percent(one.within_20, 2)}</td>
                  <td class="n">{one.rank_correlation === null ? "–" : one.rank_correlation.toFixed(3)}</td>
                  <td class="n">{percent(one.covered, 2)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </Card>
      {(r.unanswered_because?.length ?? 0) > 0 && (
        <Card title="What could not be asked, and why">
          <Scroll>
            <table class="rows small">
              <thead>
                <tr>
                  <th class="n">Rows</th>
                  <th>Reason</th>
                  <th>For example</th>
                </tr>
              </thead>
              <tbody>
                {r.unanswered_because!.map((one) => (
                  <tr key={one.why}>
                    <td class="n">{int(one.rows)}</td>
                    <td>{one.why}</td>
                    <td class="muted mono tiny">{one.first}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </Card>
      )}
    </>
  );
}

function Chosen({ row, query }: { row: Row | undefined; query: Query }): JSX.Element {
  if (!row)
    return (
      <Card title="One measurement">
        <p class="muted">
          Choose a point to see the request behind it, what was measured, by whom, and what the engine says.
        </p>
      </Card>
    );
  const unit = row.measured.unit;
  const request: Request | null =
    row.verb && row.arguments ? { verb: row.verb as Verb, arguments: row.arguments as Arguments } : null;
  const view = views[row.verb ?? ""];
  const look = Object.fromEntries(["theme", "units"].flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  return (
    <Card
      title={row.id}
      end={
        <Tag verdict={row.covered ? "fits" : "no"}>{row.covered ? "inside its interval" : "outside its interval"}</Tag>
      }
    >
      <dl class="pairs">
        <dt>Measured</dt>
        <dd>
          <b>{quantity(row.m, unit)}</b>
        </dd>
        <dt>Predicted</dt>
        <dd>
          <b>{quantity(row.p, unit)}</b> {signed(row.p / row.m - 1)} <Between interval={row.interval} />
        </dd>
        <dt>Source</dt>
        <dd>{row.group}</dd>
        <dt>What</dt>
        <dd>{row.what}</dd>
      </dl>
      {request && (
        <>
          <pre class="code">{asCommand(request)}</pre>
          <div class="row after">
            {view && (
              <a
                class="btn"
                href={write({
                  view,
                  query: {
                    ...look,
                    ...asQuery(view === "roofline" ? { op: row.arguments!.op, on: row.arguments!.on } : row.arguments!),
                  },
                })}
              >
                Open in{" "}
                {view === "plan" ? "Plan" : view === "serve" ? "Serve" : view === "roofline" ? "Roofline" : "Network"}
              </a>
            )}
            <button type="button" class="btn quiet" onClick={() => void copy(asCommand(request), "the command")}>
              Copy command
            </button>
          </div>
        </>
      )}
    </Card>
  );
}
