import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import { asCommand } from "../../engine/command";
import { asQuery, chipOf, v } from "../../engine/request";
import type { Arguments, ValidateResults, Verb } from "../../engine/schema";
import { Axes, Chart, Drawing, Label, Line, Mark, mix, shapes } from "../../draw/svg";
import type { Shape } from "../../draw/svg";
import { clamp, histogram, linear, logTicks, logarithmic } from "../../draw/scale";
import { AnswerFrame, Head } from "../../parts/answer";
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
interface Family {
  name: string;
  chips: RegExp;
  shape: Shape;
  colour: string;
}
const families: readonly Family[] = [
  { name: "Hopper", chips: /^(h100|h200|h800|h20|gh200)/, shape: shapes[0]!, colour: "s1" },
  { name: "Ampere and before", chips: /^(a100|a10|a6000|v100|l4|l40|rtx|p100)/, shape: shapes[1]!, colour: "s2" },
  { name: "Blackwell", chips: /^(b200|b300|gb200|gb300|b100)/, shape: shapes[2]!, colour: "s3" },
  { name: "TPU", chips: /^tpu/, shape: shapes[3]!, colour: "s4" },
  { name: "Others", chips: /./, shape: "circle", colour: "s6" },
];
const views: Partial<Record<string, string>> = { train: "plan", serve: "serve", roofline: "roofline", collective: "network" };

type Case = NonNullable<ValidateResults["cases"]>[number];
interface Row extends Case {
  m: number;
  p: number;
  family: Family;
}

export function AccuracyView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const set = sets.find((one) => one.value === query.set) ?? sets[0]!;
  const by = query.by || "hardware";
  const request: Request<"validate"> = { verb: "validate", arguments: { set: set.value, by } };
  const asked = useAsk(request);
  useEffect(() => share({ request: request as Request, answer: asked.answer as Answer | undefined }), [asked.answer, set.value, by]);
  return (
    <div class="view wide">
      <AnswerFrame asked={asked} request={request as Request}>
        {(answer) => <AccuracyAnswer answer={answer} set={set} by={by} query={query} />}
      </AnswerFrame>
      {!asked.reply && <p class="muted">Every measurement is asked as a request of its own; a thousand of them take a few seconds.</p>}
    </div>
  );
}

function AccuracyAnswer({ answer, set, by, query }: { answer: Answer<"validate">; set: (typeof sets)[number]; by: string; query: Query }): JSX.Element {
  const r = answer.results;
  const rows = useMemo((): Row[] => (r.cases ?? []).map((one) => ({ ...one, m: v(one.measured), p: v(one.predicted), family: families.find((family) => family.chips.test(chipOf(String(one.arguments?.on ?? ""))))! })).filter((one) => one.m > 0 && one.p > 0), [r]);
  const present = families.filter((family) => rows.some((row) => row.family === family));
  const shown = rows.filter((row) => !query.family || row.family.name === query.family);
  const errors = shown.map((row) => Math.abs(row.p / row.m - 1)).sort((a, b) => a - b);
  const at = (share: number): number => errors[Math.min(errors.length - 1, Math.floor(errors.length * share))] ?? Number.NaN;
  const covered = shown.filter((row) => row.covered).length / shown.length;
  const chosen = shown.find((row) => row.id === query.id);
  const choose = (id: string): void => change({ id, set: set.value }, true);
  return (
    <>
      <Head sub={<span>No measurement was seen by the numbers that predict it. The 80 % interval holds {percent(covered)} of them.</span>}>
        Half of {int(shown.length)} {set.what} are predicted within {percent(at(0.5), 2)}, nine in ten within {percent(at(0.9))}.
      </Head>
      <div class="filters">
        <Segments label="What is predicted" hideLabel value={set.value} choices={sets} onChange={(value) => change({ set: value, id: "", family: "" })} />
        {present.length > 1 && <Segments label="Hardware" hideLabel value={query.family ?? ""} choices={[{ value: "", name: "All" }, ...present.map((family) => ({ value: family.name }))]} onChange={(family) => change({ family, id: "" })} />}
      </div>
      <div class="g2 l">
        <Scatter rows={shown} chosen={chosen} choose={choose} present={present} />
        <div class="cards">
          <Chosen row={chosen} query={query} />
          <Coverage results={r} />
          <Errors rows={shown} />
        </div>
      </div>
      <Card title="Summaries" note={`${int(r.reported)} measurements${r.unanswered ? `; ${int(r.unanswered)} more could not be asked` : ""}`} end={<Select label={<span class="sr">By</span>} value={by} choices={[{ value: "hardware", name: "by hardware" }, { value: "model family", name: "by model family" }, { value: "source", name: "by source" }, { value: "regime", name: "by regime" }, { value: "group", name: "by group" }]} onChange={(value) => change({ by: value === "hardware" ? "" : value })} />}
        table={() => [["group", "n", "median_error", "p90_error", "bias", "within_10", "within_20", "rank_correlation", "covered"], ...(r.summary ?? []).map((one) => [one.group, one.n, one.median_ape, one.p90_ape, one.bias, one.within_10, one.within_20, one.rank_correlation, one.covered])]}>
        <Scroll>
          <table class="rows small">
            <thead><tr><th>Group</th><th class="n">Measurements</th><th class="n">Median error</th><th class="n">90 % within</th><th class="n">Bias</th><th class="n">Within 10 %</th><th class="n">Within 20 %</th><th class="n">Rank correlation</th><th class="n">In the interval</th></tr></thead>
            <tbody>{(r.summary ?? []).map((one) => <tr key={one.group}><td>{one.group}</td><td class="n">{int(one.n)}</td><td class="n">{percent(one.median_ape, 2)}</td><td class="n">{percent(one.p90_ape, 2)}</td><td class="n">{signed(one.bias)}</td><td class="n">{percent(one.within_10, 2)}</td><td class="n">{percent(one.within_20, 2)}</td><td class="n">{one.rank_correlation === null ? "–" : one.rank_correlation.toFixed(3)}</td><td class="n">{percent(one.covered, 2)}</td></tr>)}</tbody>
          </table>
        </Scroll>
      </Card>
      {(r.unanswered_because?.length ?? 0) > 0 && (
        <Card title="What could not be asked, and why">
          <Scroll><table class="rows small"><thead><tr><th class="n">Rows</th><th>Reason</th><th>For example</th></tr></thead><tbody>{r.unanswered_because!.map((one) => <tr key={one.why}><td class="n">{int(one.rows)}</td><td>{one.why}</td><td class="muted mono tiny">{one.first}</td></tr>)}</tbody></table></Scroll>
        </Card>
      )}
    </>
  );
}

function Scatter({ rows, chosen, choose, present }: { rows: Row[]; chosen: Row | undefined; choose: (id: string) => void; present: Family[] }): JSX.Element {
  const unit = rows[0]?.measured.unit ?? "s";
  return (
    <Card title="Predicted against measured" note="click a point for its request" drawing table={() => [["id", "group", "measured", "predicted", "low", "high", "inside", "unit"], ...rows.map((row) => [row.id, row.group, row.m, row.p, v(row.interval?.low), v(row.interval?.high), row.covered ? 1 : 0, unit])]}>
      <Chart draw={(width) => {
        if (rows.length === 0) return <p class="muted">Nothing to show.</p>;
        const height = width < 560 ? width * 0.95 : Math.min(600, width * 0.74);
        const frame = { left: 62, right: width - 14, top: 28, bottom: height - 46 };
        const all = rows.flatMap((row) => [row.m, row.p]);
        const [d0, d1] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
        const x = logarithmic(d0, d1, frame.left, frame.right);
        const y = logarithmic(d0, d1, frame.bottom, frame.top);
        const band = (k: number): string => [[d0, d0 * (1 + k)], [d1, d1 * (1 + k)], [d1, d1 / (1 + k)], [d0, d0 / (1 + k)]].map(([a, b]) => `${x(a!).toFixed(1)},${y(b!).toFixed(1)}`).join(" ");
        const marks = logTicks(d0, d1, width < 560 ? 5 : 8);
        return (
          <Drawing width={width} height={height} interactive label={`${rows.length} measurements, predicted against measured`}>
            <Axes frame={frame} x={x} y={y} xTicks={marks} yTicks={marks} xUnit={unit} yUnit={unit} xTitle="measured" yTitle="predicted" upright />
            <clipPath id="inside"><rect x={frame.left} y={frame.top} width={frame.right - frame.left} height={frame.bottom - frame.top} /></clipPath>
            <g clip-path="url(#inside)">
              <polygon points={band(0.2)} fill="var(--muted)" opacity={0.12} />
              <polygon points={band(0.1)} fill="var(--muted)" opacity={0.14} />
              <Line x1={x(d0)} y1={y(d0)} x2={x(d1)} y2={y(d1)} stroke="var(--ink)" width={1} />
            </g>
            {[...rows].sort((a, b) => Number(b.covered) - Number(a.covered)).map((row) => (
              <Mark key={row.id} class="hit" shape={row.family.shape} x={x(row.m)} y={y(row.p)} r={3.6} fill={row.covered ? `var(--${row.family.colour})` : "var(--surface)"} fill-opacity={row.covered ? 0.6 : 1} stroke={row.covered ? "none" : `var(--${row.family.colour})`} stroke-width={1.5} onClick={() => choose(row.id)}><title>{`${row.group}: ${quantity(row.m, unit, 3)} measured, ${quantity(row.p, unit, 3)} predicted`}</title></Mark>
            ))}
            {chosen?.interval && <Line x1={x(chosen.m)} x2={x(chosen.m)} y1={y(v(chosen.interval.low))} y2={y(v(chosen.interval.high))} stroke="var(--ink)" width={2} />}
            {chosen && <Mark shape="circle" x={x(chosen.m)} y={y(chosen.p)} r={9} fill="none" stroke="var(--ink)" stroke-width={2} />}
          </Drawing>
        );
      }} />
      <div class="legend">
        {present.map((family) => <span key={family.name}><svg width="14" height="12" aria-hidden="true"><Mark shape={family.shape} x={7} y={6} r={4} fill={`var(--${family.colour})`} /></svg>{family.name}</span>)}
        <span><svg width="14" height="12" aria-hidden="true"><circle cx="7" cy="6" r="4" fill="var(--surface)" stroke="var(--muted)" stroke-width="1.5" /></svg>hollow: outside its interval</span>
        <span><svg width="16" height="12" aria-hidden="true"><rect width="16" height="12" fill="var(--muted)" opacity=".13" /><rect y="3" width="16" height="6" fill="var(--muted)" opacity=".2" /></svg>±10, ±20 %</span>
      </div>
      <hr class="gap" />
      <Select label="A measurement, by name" value={chosen?.id ?? ""} choices={[{ value: "", name: "none" }, ...rows.slice(0, 2000).map((row) => ({ value: row.id, name: `${row.id}: ${row.group}` }))]} onChange={choose} />
    </Card>
  );
}

function Chosen({ row, query }: { row: Row | undefined; query: Query }): JSX.Element {
  if (!row) return <Card title="One measurement"><p class="muted">Choose a point to see the request behind it, what was measured, by whom, and what the engine says.</p></Card>;
  const unit = row.measured.unit;
  const request: Request | null = row.verb && row.arguments ? { verb: row.verb as Verb, arguments: row.arguments as Arguments } : null;
  const view = views[row.verb ?? ""];
  const look = Object.fromEntries(["theme", "units"].flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  return (
    <Card title={row.id} end={<Tag verdict={row.covered ? "fits" : "no"}>{row.covered ? "inside its interval" : "outside its interval"}</Tag>}>
      <dl class="pairs">
        <dt>Measured</dt><dd><b>{quantity(row.m, unit)}</b></dd>
        <dt>Predicted</dt><dd><b>{quantity(row.p, unit)}</b> {signed(row.p / row.m - 1)} <Between interval={row.interval} /></dd>
        <dt>Source</dt><dd>{row.group}</dd>
        <dt>What</dt><dd>{row.what}</dd>
      </dl>
      {request && (
        <>
          <pre class="code">{asCommand(request)}</pre>
          <div class="row after">
            {view && <a class="btn" href={write({ view, query: { ...look, ...asQuery(view === "roofline" ? { op: row.arguments!.op, on: row.arguments!.on } : row.arguments!) } })}>Open in {view === "plan" ? "Plan" : view === "serve" ? "Serve" : view === "roofline" ? "Roofline" : "Network"}</a>}
            <button type="button" class="btn quiet" onClick={() => void copy(asCommand(request), "the command")}>Copy command</button>
          </div>
        </>
      )}
    </Card>
  );
}

function Coverage({ results }: { results: ValidateResults }): JSX.Element {
  const groups = (results.summary ?? []).filter((one) => one.n >= 4).slice(0, 14);
  return (
    <Card title="Share inside the 80 % interval" note="grey: what chance alone allows" drawing table={() => [["group", "n", "covered"], ...groups.map((one) => [one.group, one.n, one.covered])]}>
      <Chart draw={(width) => {
        const left = Math.min(width * 0.4, 10 + 6.6 * Math.max(6, ...groups.map((one) => one.group.length)));
        const x = linear(0.4, 1, left, width - 40);
        const bottom = 12 + groups.length * 22;
        return (
          <Drawing width={width} height={bottom + 22} label="share of measurements inside the interval, by group">
            {[0.4, 0.6, 0.8, 1].map((t) => <g key={t}><Line x1={x(t)} y1={6} x2={x(t)} y2={bottom} /><Label x={x(t)} y={bottom + 16} role="m" anchor="middle">{percent(t, 2)}</Label></g>)}
            {groups.map((one, i) => {
              const spread = 1.96 * Math.sqrt((0.8 * 0.2) / one.n);
              const y = 16 + i * 22;
              return (
                <g key={one.group}>
                  <Label x={0} y={y + 4} role={one.group === "all" ? "b" : ""}>{one.group.length * 6.6 > left - 6 ? `${one.group.slice(0, Math.floor((left - 14) / 6.6))}…` : one.group}</Label>
                  <Line x1={x(clamp(0.8 - spread, 0.4, 1))} x2={x(clamp(0.8 + spread, 0.4, 1))} y1={y} y2={y} stroke={mix("edge", 40)} width={5} />
                  <Mark shape={one.group === "all" ? "diamond" : "circle"} x={x(clamp(one.covered, 0.4, 1))} y={y} r={5} fill={one.covered >= 0.8 - spread ? "var(--s1)" : "var(--bad)"} />
                  <Label x={width} y={y + 4} role="m" anchor="end">{int(one.n)}</Label>
                </g>
              );
            })}
            <Line x1={x(0.8)} y1={4} x2={x(0.8)} y2={bottom} stroke="var(--ink)" width={1.5} dash="4 3" />
          </Drawing>
        );
      }} />
    </Card>
  );
}

function Errors({ rows }: { rows: Row[] }): JSX.Element {
  const errors = rows.map((row) => row.p / row.m - 1);
  const bins = histogram(errors, -0.4, 0.4, 24);
  const within = errors.filter((error) => Math.abs(error) <= 0.1).length / errors.length;
  return (
    <Card title="Errors" note={`predicted over measured, less one; ${percent(within, 2)} within 10 %`} drawing table={() => [["from", "to", "count"], ...bins.map((count, i) => [(-0.4 + i / 30).toFixed(3), (-0.4 + (i + 1) / 30).toFixed(3), count])]}>
      <Chart draw={(width) => {
        const x = linear(-0.4, 0.4, 4, width - 4);
        const y = linear(0, Math.max(...bins, 1), 118, 14);
        return (
          <Drawing width={width} height={142} label="histogram of errors">
            {bins.map((count, i) => {
              const a = -0.4 + i / 30;
              return <rect key={i} x={x(a) + 0.75} y={y(count)} width={Math.max(0, x(a + 1 / 30) - x(a) - 1.5)} height={118 - y(count)} fill={Math.abs(a + 1 / 60) <= 0.1 ? "var(--s1)" : mix("s1", 42)} />;
            })}
            <Line x1={4} y1={118} x2={width - 4} y2={118} role="ax" />
            <Line x1={x(0)} y1={8} x2={x(0)} y2={118} stroke="var(--ink)" width={1.5} />
            {[-0.4, -0.2, 0, 0.2, 0.4].map((t) => <Label key={t} x={x(t)} y={136} role="m" anchor={t === -0.4 ? "start" : t === 0.4 ? "end" : "middle"}>{t === 0 ? "0" : signed(t)}</Label>)}
          </Drawing>
        );
      }} />
    </Card>
  );
}
