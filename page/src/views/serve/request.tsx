import type { JSX } from "preact";
import type { Refusal, Request } from "../../engine/ask";
import { resize } from "../../engine/request";
import { options } from "../../engine/schema";
import { Slider, TextField } from "../../parts/fields";
import { ClusterFields, FromScript, ModelField } from "../../parts/model";
import { OptionGroups, Panel, problemAt } from "../../parts/panel";
import { int, sig, time } from "../../text/format";
import { change } from "../../url";
import type { Query } from "../../url";
import type { Point } from "./front";

export const defaults: Query = {
  model: "llama-3.1-70b",
  on: "h100-sxm:8",
  prompt: "4096",
  output: "512",
  weights: "fp8",
  kv: "fp8",
  tpot: "30ms",
  ttft: "1s",
  rate: "1.5",
};
const tpots = [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500].map((ms) => ms / 1e3);
const ttfts = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 60];
const rates = [
  0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000,
];
const groups: readonly [string, readonly string[]][] = [
  ["Sharding: what is left open is searched", ["dp", "tp", "pp", "ep", "cache", "weights-2d"]],
  ["Engine", ["software", "compute", "chunk", "prefix-hit", "scheduler", "graphs", "draft", "acceptance"]],
];

/** "30ms", "1.5s" or "2" as seconds. */
export function seconds(text: string | undefined): number {
  const match = /^([\d.]+)\s*(ms|us|µs|s|min)?$/.exec(text ?? "");
  return match ? Number(match[1]) * ({ ms: 1e-3, us: 1e-6, µs: 1e-6, min: 60 }[match[2] ?? "s"] ?? 1) : Number.NaN;
}
const limitText = (x: number): string => (x < 1 ? `${Number((x * 1e3).toPrecision(4))}ms` : `${x}s`);
const nearest = (list: readonly number[], x: number): number =>
  Number.isFinite(x)
    ? list.reduce((best, one, i) => (Math.abs(Math.log(one / x)) < Math.abs(Math.log(list[best]! / x)) ? i : best), 0)
    : list.length;

/** A limit: a slider over usual values, whose last place is none. */
function Limit({
  label,
  name,
  list,
  at,
  set,
  write,
  text,
}: {
  label: string;
  name: string;
  list: readonly number[];
  at: number;
  set: (part: Query, replace: boolean) => void;
  write: (x: number) => string;
  text: (x: number) => string;
}): JSX.Element {
  const place = nearest(list, at);
  return (
    <Slider
      label={label}
      from={0}
      to={list.length}
      value={place}
      output={Number.isFinite(at) ? write(at) : "none"}
      text={Number.isFinite(at) ? write(at) : "none"}
      onChange={(i, done) => set({ [name]: i >= list.length ? "" : text(list[i]!), batch: "" }, !done)}
    />
  );
}

export function ServeRequest({
  at,
  query,
  request,
  refusal,
  points,
  chosen,
  best,
}: {
  at: Query;
  query: Query;
  request: Request<"serve">;
  refusal?: Refusal;
  points: Point[];
  chosen: number | undefined;
  best: boolean;
}): JSX.Element {
  const set = (part: Query, replace = false): void => change({ ...at, ...part, open: "" }, replace);
  const batches = [...new Set(points.map((point) => point.batch))];
  const place =
    chosen === undefined
      ? 0
      : Math.max(
          0,
          batches.findIndex((batch) => batch >= chosen),
        );
  const advanced = groups.flatMap(([, names]) => names).filter((name) => query[name]);
  return (
    <Panel
      request={request}
      summary={`${at.model?.startsWith("{") ? "config.json" : at.model} · ${at.on} · ${at.prompt} + ${at.output} tokens`}
    >
      {at.from && <FromScript text={at.from} drop={() => change({ from: "", open: "" })} refusal={refusal} />}
      <ModelField model={at.model ?? ""} refusal={refusal} onChange={(model) => set({ model })} />
      <ClusterFields on={at.on ?? ""} refusal={refusal} onChange={(on) => set({ on, batch: "" })} />
      <TextField
        label="Prompt, tokens"
        value={at.prompt ?? ""}
        onChange={(prompt) => set({ prompt })}
        halve={(factor) => resize(at.prompt ?? "", factor)}
        problem={problemAt(refusal, "prompt")}
      />
      <TextField
        label="Answer, tokens"
        value={at.output ?? ""}
        onChange={(output) => set({ output })}
        halve={(factor) => resize(at.output ?? "", factor)}
        problem={problemAt(refusal, "output")}
      />
      <div class="two">
        {(["weights", "kv"] as const).map((name) => (
          <TextField
            key={name}
            label={name === "weights" ? "Weights" : "Cache"}
            value={at[name] ?? ""}
            placeholder={options.serve[name]?.standard ?? "as published"}
            list={options.serve[name]?.examples}
            onChange={(value) => set({ [name]: value })}
            problem={problemAt(refusal, name)}
          />
        ))}
      </div>
      <details class="more" open={advanced.length > 0}>
        <summary class="btn">Sharding, engine, speculation{advanced.length > 0 && ` (${advanced.length})`}</summary>
        <div class="stackgap">
          <OptionGroups groups={groups} options={options.serve} values={query} onChange={set} refusal={refusal} />
        </div>
      </details>
      <hr class="rule" />
      <Limit
        label="Longest time per token"
        name="tpot"
        list={tpots}
        at={seconds(at.tpot)}
        set={set}
        write={time}
        text={limitText}
      />
      <Limit
        label="Longest time to the first token"
        name="ttft"
        list={ttfts}
        at={seconds(at.ttft)}
        set={set}
        write={time}
        text={limitText}
      />
      {batches.length > 1 && (
        <Slider
          label="Batch"
          from={0}
          to={batches.length - 1}
          value={place}
          output={`${int(chosen)}${at.batch || !best ? "" : " · best"}`}
          text={`${chosen}`}
          onChange={(i, done) => set({ batch: String(batches[i] ?? "") }, !done)}
        />
      )}
      <Limit
        label="Requests per second"
        name="rate"
        list={rates}
        at={Number(at.rate || Number.NaN)}
        set={(part, replace) => set({ rate: part.rate ?? "" }, replace)}
        write={(x) => sig(x, 2)}
        text={String}
      />
    </Panel>
  );
}
