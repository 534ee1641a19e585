// Model and cluster: the two fields that several views share.
import type { JSX } from "preact";
import { useCatalogue } from "../catalogue";
import type { Refusal } from "../engine/ask";
import { chipOf, clusterOf, resize, shapeOf } from "../engine/request";
import { bytes, int, parameters, si } from "../text/format";
import { Combo, TextField } from "./fields";
import { problemAt } from "./panel";

/** Whether a text is a configuration rather than a name. */
export const isConfig = (model: string): boolean => model.trimStart().startsWith("{");
const configName = (model: string): string => {
  try {
    const config = JSON.parse(model) as Record<string, unknown>;
    return `config.json: ${String(config.base ?? config._name_or_path ?? config.model_type ?? "model")}`;
  } catch {
    return "config.json that cannot be read";
  }
};

export function ModelField({
  model,
  refusal,
  onChange,
}: {
  model: string;
  refusal?: Refusal;
  onChange: (model: string) => void;
}): JSX.Element {
  const catalogue = useCatalogue();
  const known = catalogue?.models.find((one) => one.id === model);
  return (
    <Combo
      label="Model"
      side={known && `${parameters(known.parameters)} parameters`}
      value={model}
      shown={isConfig(model) ? configName(model) : undefined}
      problem={problemAt(refusal, "model")}
      hint={`${catalogue ? `${catalogue.models.length} in the catalogue, ` : ""}or drop a config.json`}
      choices={(catalogue?.models ?? []).map((one) => ({ value: one.id, note: parameters(one.parameters) }))}
      onChange={onChange}
    />
  );
}

export function ClusterFields({
  on,
  refusal,
  onChange,
}: {
  on: string;
  refusal?: Refusal;
  onChange: (on: string) => void;
}): JSX.Element {
  const catalogue = useCatalogue();
  const chip = chipOf(on);
  const shape = shapeOf(on);
  const chosen = catalogue?.chips.find((one) => one.id === chip);
  const slice = shape.includes("x");
  return (
    <>
      <Combo
        label="Chip"
        side={chosen && `${bytes(chosen.memory.value)}, ${si(chosen.peak.value, "FLOP/s")}`}
        value={chip}
        shown={chosen?.name}
        problem={problemAt(refusal, "on")}
        choices={(catalogue?.chips ?? []).map((one) => ({
          value: one.id,
          name: one.name,
          note: bytes(one.memory.value),
        }))}
        onChange={(value) => {
          const torus = value.startsWith("tpu-");
          onChange(clusterOf(value, torus === chip.startsWith("tpu-") ? shape : torus ? "4x4" : "8"));
        }}
      />
      <TextField
        label={slice ? "Slice" : "Chips"}
        side={slice ? `${int(shape.split("x").reduce((a, b) => a * Number(b), 1))} chips` : undefined}
        value={shape}
        placeholder="1"
        onChange={(value) => onChange(clusterOf(chip, value))}
        halve={(factor) => resize(shape, factor)}
        hint={chip.startsWith("tpu-") ? "a shape: 4x4, 16x20x28" : undefined}
      />
    </>
  );
}

/** The script that the request is read from; what is entered in the fields goes before it. */
export function FromScript({
  text,
  drop,
  refusal,
}: {
  text: string;
  drop: () => void;
  refusal?: Refusal;
}): JSX.Element {
  const problem = problemAt(refusal, "from");
  return (
    <div class="field">
      <span class="lab">
        Read from a script
        <button type="button" class="num" onClick={drop}>
          without it
        </button>
      </span>
      <pre class="code short" tabIndex={0} aria-label="The script">
        {text}
      </pre>
      <span class={`hint${problem ? " wrong" : ""}`}>
        {problem ? problem.text : "Fields that are filled in go before what it says."}
      </span>
    </div>
  );
}
