import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Refusal, Request } from "../../engine/ask";
import { chipOf, filled, resize } from "../../engine/request";
import { options } from "../../engine/schema";
import { TextField } from "../../parts/fields";
import { ClusterFields, FromScript, ModelField, isConfig } from "../../parts/model";
import { Examples, OptionGroups, Panel, problemAt } from "../../parts/panel";
import { takeConfig, takeModel } from "../../parts/drop";
import { change, go, keepLook } from "../../url";
import type { Query } from "../../url";
import { defaults } from "./defaults";

const examples: readonly { name: string; note: string; query: Query }[] = [
  { name: "70B on 512 B200", note: "15T tokens", query: {} },
  { name: "70B on 4,096 TPU v5p", note: "a slice", query: { on: "tpu-v5p:16x16x16", batch: "4Mi", seq: "4096" } },
  {
    name: "Mixtral 8x7B on 128 H100",
    note: "experts",
    query: { model: "mixtral-8x7b", on: "h100-sxm:128", batch: "1024seq", seq: "4096", tokens: "2T" },
  },
  { name: "70B on 8 H100", note: "does not fit", query: { on: "h100-sxm:8", batch: "64seq", tokens: "" } },
  {
    name: "LoRA of 8B on one H100",
    note: "adapters",
    query: { model: "llama-3-8b", on: "h100-sxm:1", batch: "16seq", lora: "16", tokens: "" },
  },
];
const groups: readonly [string, readonly string[]][] = [
  [
    "Strategy: what is left open is searched",
    [
      "dp",
      "fsdp",
      "tp",
      "pp",
      "cp",
      "ep",
      "zero",
      "micro-batch",
      "schedule",
      "interleave",
      "recompute",
      "offload",
      "sequence-parallel",
    ],
  ],
  ["Formats", ["compute", "params", "grads", "moments", "optimizer", "lora"]],
  ["Software, memory margin, goodput", ["software", "memory-margin", "fusion", "graphs", "mtbf"]],
];
const grouped = groups.flatMap(([, names]) => names);

function Paste(): JSX.Element {
  const [text, setText] = useState("");
  return (
    <details class="more">
      <summary class="btn quiet">Paste a config.json</summary>
      <div class="stackgap">
        <textarea
          class="in mono"
          rows={5}
          aria-label="config.json"
          placeholder={'{"base": "llama-3-8b", "num_hidden_layers": 16}'}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="row">
          <button type="button" class="btn" disabled={!text.trim()} onClick={() => takeModel(text)}>
            Use it
          </button>
          <label class="btn quiet file">
            Open a file
            <input
              type="file"
              accept=".json,application/json"
              class="sr"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file) void takeConfig(file);
              }}
            />
          </label>
        </div>
      </div>
    </details>
  );
}

export function PlanRequest({
  query,
  request,
  refusal,
}: {
  query: Query;
  request: Request<"train">;
  refusal?: Refusal;
}): JSX.Element {
  const at = filled(query, defaults);
  const model = at.model ?? "";
  const on = at.on ?? "";
  const chip = chipOf(on);
  const set = (part: Query): void => change({ ...at, ...part, open: "" });
  const advanced = grouped.filter((name) => query[name]);
  return (
    <Panel
      request={request}
      summary={`${at.from ? "from a script" : isConfig(model) ? "config.json" : model} · ${on} · ${at.batch} × ${at.seq}${at.tokens ? ` · ${at.tokens}` : ""}`}
    >
      {at.from && <FromScript text={at.from} drop={() => change({ from: "", open: "" })} refusal={refusal} />}
      <ModelField
        model={model}
        refusal={refusal}
        onChange={(value) => (isConfig(value) ? takeModel(value) : set({ model: value }))}
      />
      <Paste />
      <ClusterFields on={on} refusal={refusal} onChange={(value) => set({ on: value })} />
      <TextField
        label="Batch"
        side={(at.batch ?? "").endsWith("seq") ? "sequences a step" : "tokens a step"}
        value={at.batch ?? ""}
        onChange={(value) => set({ batch: value })}
        halve={(factor) => resize(at.batch ?? "", factor)}
        problem={problemAt(refusal, "batch")}
        hint="1024seq, or tokens: 4Mi"
      />
      <div class="two">
        <TextField
          label="Sequence"
          value={at.seq ?? ""}
          onChange={(value) => set({ seq: value })}
          problem={problemAt(refusal, "seq")}
        />
        <TextField
          label="Run, tokens"
          value={at.tokens ?? ""}
          onChange={(value) => set({ tokens: value })}
          problem={problemAt(refusal, "tokens")}
          placeholder="none"
        />
      </div>
      <details class="more" open={advanced.length > 0 || Boolean(query.set)}>
        <summary class="btn">Strategy, formats, own figures{advanced.length > 0 && ` (${advanced.length})`}</summary>
        <div class="stackgap">
          <OptionGroups groups={groups} options={options.train} values={query} onChange={set} refusal={refusal} />
          <TextField
            label="Own figures of the chip"
            value={query.set ?? ""}
            onChange={(value) => set({ set: value })}
            placeholder="memory.hbm.bandwidth=4TB/s"
            problem={problemAt(refusal, "set")}
            hint="KEY=VALUE, several with a semicolon"
          />
          <TextField
            label="Own price"
            value={query.price ?? ""}
            onChange={(value) => set({ price: value })}
            placeholder={`${chip}=2.50`}
            problem={problemAt(refusal, "price")}
            hint="chip=USD per hour"
          />
          {advanced.length > 0 && (
            <button
              type="button"
              class="btn"
              onClick={() => set(Object.fromEntries(advanced.map((name) => [name, ""])))}
            >
              Search everything again
            </button>
          )}
        </div>
      </details>
      <Examples
        of={examples.map((one) => {
          const target = { ...defaults, ...one.query };
          return {
            name: one.name,
            shown: (
              <span class="spread">
                {one.name}
                <small>{one.note}</small>
              </span>
            ),
            chosen: ["model", "on", "batch", "seq"].every((key) => (target[key] ?? "") === (at[key] ?? "")),
            choose: () => go({ view: "plan", query: { ...keepLook(query), ...target } }),
          };
        })}
      />
    </Panel>
  );
}
