// The parts of a design, each with a slider; what cannot be built is said above them.
import type { JSX } from "preact";
import type { Refusal, Request } from "../../engine/ask";
import { Icon } from "../../parts/basics";
import type { Verdict } from "../../parts/basics";
import { Select, Slider } from "../../parts/fields";
import { Panel } from "../../parts/panel";
import type { DesignResults } from "../../engine/schema";
import { sentence } from "../../text/format";
import { controlsOf, memoryOf, placeOf } from "./parts";
import type { Changes, Control, Values } from "./parts";

type Change = (changes: Changes, done: boolean) => void;

/** A slider with a step to either side. */
function Dial({ control, change }: { control: Control; change: Change }): JSX.Element {
  const { path, label, list, value, shown, also } = control;
  const at = placeOf(list, value);
  const to = (i: number, done: boolean): void => change({ [path]: list[i]!, ...also?.(list[i]!) }, done);
  const step = (by: number, sign: string): JSX.Element => (
    <button
      type="button"
      class="btn"
      disabled={list[at + by] === undefined}
      aria-label={`${by < 0 ? "Less" : "More"}: ${label}`}
      onClick={() => to(at + by, true)}
    >
      {sign}
    </button>
  );
  return (
    <div class="dial keep">
      <Slider
        label={label}
        output={shown}
        text={shown}
        from={0}
        to={list.length - 1}
        value={at}
        onChange={(i, done) => to(i, done)}
      />
      {step(-1, "−")}
      {step(1, "+")}
    </div>
  );
}

const Status = ({ verdict, words }: { verdict: Verdict; words: string }): JSX.Element => (
  <div class="can keep" role="status">
    <span class={`v-${verdict}`}>
      <Icon verdict={verdict} />
    </span>
    <span>{words}</span>
  </div>
);

export function DesignPanel({
  known,
  file,
  base,
  sets,
  technology,
  verdict,
  words,
  refusal,
  request,
  choose,
  change,
}: {
  known: readonly string[];
  file: string;
  base: Values;
  sets: Values;
  technology: DesignResults["technology"];
  verdict: Verdict;
  words: string;
  refusal?: Refusal;
  request: Request<"design">;
  choose: (file: string) => void;
  change: Change;
}): JSX.Element {
  const { first, power, memory, dies } = controlsOf(base, sets);
  const names = (all: readonly string[] | undefined, now: string): { value: string }[] =>
    (all ?? [now]).map((value) => ({ value }));
  const dial = (control: Control): JSX.Element => <Dial key={control.path} control={control} change={change} />;
  return (
    <Panel request={request as Request} summary={`${file}${sets.size > 0 ? `, ${sets.size} parts differ` : ""}`}>
      <Select
        label="Start from"
        value={file}
        choices={names([...new Set([file, ...known])].sort(), file)}
        onChange={choose}
        problem={refusal?.error.where === "FILE" ? { text: sentence(refusal.error.what), names: [] } : undefined}
      />
      <Status verdict={verdict} words={words} />
      {base.size > 0 && first.map(dial)}
      <fieldset class="dials" hidden={base.size === 0}>
        <legend>Package</legend>
        {memory && (
          <Select
            label="Memory"
            value={memory}
            choices={names(technology?.memories, memory)}
            onChange={(kind) => change(memoryOf(base, kind), true)}
          />
        )}
        {dial(power)}
      </fieldset>
      {dies.map((die, i) => (
        <fieldset class="dials" key={die.path}>
          <legend>{dies.length > 1 ? `Die ${i + 1}` : "Die"}</legend>
          <Select
            label="Process"
            value={die.node}
            choices={names(technology?.nodes, die.node)}
            onChange={(node) => change({ [`${die.path}.node`]: node }, true)}
          />
          {die.controls.map(dial)}
        </fieldset>
      ))}
    </Panel>
  );
}
