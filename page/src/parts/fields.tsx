// The fields of a request. What they offer comes from the schema and the catalogue.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Option } from "../engine/schema";

export interface Problem {
  text: string;
  names: string[];
}
interface Common {
  label: ComponentChildren;
  side?: ComponentChildren;
  hint?: ComponentChildren;
  problem?: Problem;
  value: string;
  onChange: (value: string) => void;
}
function Wrong({
  id,
  problem,
  onChange,
}: {
  id: string;
  problem: Problem;
  onChange: (value: string) => void;
}): JSX.Element {
  return (
    <span class="hint wrong" id={id}>
      {problem.text}
      {problem.names.length > 0 && (
        <>
          {" "}
          Nearest:{" "}
          {problem.names.map((name, i) => (
            <>
              {i > 0 && ", "}
              <button type="button" class="num" onClick={() => onChange(name)}>
                {name}
              </button>
            </>
          ))}
        </>
      )}
    </span>
  );
}

/** A text field. What is typed is asked after a short pause, or at once with Enter. */
export function TextField({
  label,
  side,
  hint,
  problem,
  value,
  onChange,
  placeholder,
  halve,
  list,
}: Common & {
  placeholder?: string;
  halve?: (factor: number) => string | null;
  list?: readonly string[];
}): JSX.Element {
  const id = useId();
  const [draft, setDraft] = useState(value);
  const timer = useRef(0);
  useEffect(() => setDraft(value), [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const commit = (text: string): void => {
    window.clearTimeout(timer.current);
    if (text !== value) onChange(text.trim());
  };
  const half = halve?.(0.5) ?? null;
  const double = halve?.(2) ?? null;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {side && <span>{side}</span>}
      </label>
      <div class="join">
        <input
          class={`in${problem ? " bad" : ""}`}
          id={id}
          value={draft}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          list={list ? `${id}-list` : undefined}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-wrong` : undefined}
          onInput={(event) => {
            const text = event.currentTarget.value;
            setDraft(text);
            window.clearTimeout(timer.current);
            timer.current = window.setTimeout(() => commit(text), 350);
          }}
          onBlur={(event) => commit(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              event.preventDefault();
              commit(event.currentTarget.value);
            }
          }}
        />
        {list && (
          <datalist id={`${id}-list`}>
            {list.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        )}
        {halve && (
          <button
            type="button"
            class="btn step"
            disabled={half === null}
            aria-label={`÷2 ${typeof label === "string" ? label : ""}`}
            onClick={() => half && onChange(half)}
          >
            ÷2
          </button>
        )}
        {halve && (
          <button
            type="button"
            class="btn step"
            disabled={double === null}
            aria-label={`×2 ${typeof label === "string" ? label : ""}`}
            onClick={() => double && onChange(double)}
          >
            ×2
          </button>
        )}
      </div>
      {problem ? (
        <Wrong id={`${id}-wrong`} problem={problem} onChange={onChange} />
      ) : (
        hint && <span class="hint">{hint}</span>
      )}
    </div>
  );
}

export interface Choice {
  value: string;
  name?: string;
  note?: string;
}
const score = (choice: Choice, words: string[]): number => {
  const text = `${choice.value} ${choice.name ?? ""}`.toLowerCase();
  let total = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return -1;
    total += at === 0 ? 0 : 1 + at / 100;
  }
  return total;
};
/** Finds by words in any order: "70b llama". */
export function search(choices: readonly Choice[], text: string, most = 40): Choice[] {
  const words = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return choices
    .map((choice) => ({ choice, rank: score(choice, words) }))
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => a.rank - b.rank || a.choice.value.length - b.choice.value.length)
    .slice(0, most)
    .map(({ choice }) => choice);
}

/** A field that searches a list, by the pattern of an editable combobox. */
export function Combo({
  label,
  side,
  hint,
  problem,
  value,
  onChange,
  choices,
  shown,
}: Common & { choices: readonly Choice[]; shown?: string }): JSX.Element {
  const id = useId();
  const [draft, setDraft] = useState<string | null>(null);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const open = draft !== null;
  const found = open ? search(choices, draft) : [];
  const close = (): void => {
    setDraft(null);
    setActive(-1);
  };
  const take = (text: string): void => {
    close();
    if (text && text !== value) onChange(text);
  };
  useEffect(() => {
    if (active >= 0) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <div
      class="field combo"
      onFocusOut={(event) => {
        if (open && !event.currentTarget.contains(event.relatedTarget as globalThis.Node | null)) take(draft.trim());
      }}
    >
      <label for={id}>
        {label}
        {side && <span>{side}</span>}
      </label>
      <div class="around">
        <input
          ref={input}
          class={`in${problem ? " bad" : ""}`}
          id={id}
          role="combobox"
          aria-expanded={open}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={open && active >= 0 ? `${id}-${active}` : undefined}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-wrong` : undefined}
          autocomplete="off"
          spellcheck={false}
          value={draft ?? shown ?? value}
          onFocus={(event) => event.currentTarget.select()}
          onClick={() => !open && setDraft("")}
          onInput={(event) => {
            setDraft(event.currentTarget.value);
            setActive(event.currentTarget.value ? 0 : -1);
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown" || event.key === "ArrowUp") {
              event.preventDefault();
              if (!open) setDraft("");
              else
                setActive((active + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length));
            } else if (event.key === "Enter") {
              event.preventDefault();
              if (open) take(found[active]?.value ?? draft.trim());
            } else if (event.key === "Escape" && open) {
              event.stopPropagation();
              close();
            }
          }}
        />
        <ul
          class="options"
          id={`${id}-list`}
          role="listbox"
          aria-label={typeof label === "string" ? label : "Choices"}
          hidden={!open || found.length === 0}
        >
          {found.map((choice, i) => (
            <li
              key={choice.value}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === active}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => {
                take(choice.value);
                input.current?.focus();
              }}
            >
              <span>{choice.name ?? choice.value}</span>
              {choice.note && <small>{choice.note}</small>}
            </li>
          ))}
        </ul>
      </div>
      {problem ? (
        <Wrong id={`${id}-wrong`} problem={problem} onChange={onChange} />
      ) : (
        hint && <span class="hint">{hint}</span>
      )}
    </div>
  );
}

export function Select({
  label,
  side,
  hint,
  problem,
  value,
  onChange,
  choices,
}: Common & { choices: readonly Choice[] }): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        {label}
        {side && <span>{side}</span>}
      </label>
      <select
        class={`in${problem ? " bad" : ""}`}
        id={id}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {choices.map((one) => (
          <option key={one.value} value={one.value}>
            {one.name ?? one.value}
          </option>
        ))}
      </select>
      {problem ? <span class="hint wrong">{problem.text}</span> : hint && <span class="hint">{hint}</span>}
    </div>
  );
}

export function Segments({
  label,
  value,
  onChange,
  choices,
  hideLabel = false,
  keep = false,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  choices: readonly Choice[];
  hideLabel?: boolean;
  keep?: boolean;
}): JSX.Element {
  const id = useId();
  const group = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const all = group.current;
    const chosen = all?.querySelector<HTMLElement>("[aria-pressed=true]");
    if (all && chosen) all.scrollLeft = chosen.offsetLeft - (all.clientWidth - chosen.offsetWidth) / 2;
  }, [value]);
  return (
    <div class={`field${keep ? " keep" : ""}`}>
      <span class={hideLabel ? "sr" : "lab"} id={id}>
        {label}
      </span>
      <div class="seg" role="group" aria-labelledby={id} ref={group}>
        {choices.map((one) => (
          <button type="button" key={one.value} aria-pressed={one.value === value} onClick={() => onChange(one.value)}>
            {one.name ?? one.value}
          </button>
        ))}
      </div>
    </div>
  );
}

/** A slider over a list of values or a range of numbers; it stays in reach when the request is folded away. */
export function Slider({
  label,
  output,
  hint,
  value,
  from,
  to,
  step = 1,
  onChange,
  text,
}: {
  label: string;
  output: ComponentChildren;
  hint?: string;
  value: number;
  from: number;
  to: number;
  step?: number;
  onChange: (value: number, done: boolean) => void;
  text?: string;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field keep">
      <label for={id}>
        {label}
        <output for={id}>{output}</output>
      </label>
      <input
        type="range"
        id={id}
        min={from}
        max={to}
        step={step}
        value={value}
        aria-valuetext={text}
        onInput={(event) => onChange(Number(event.currentTarget.value), false)}
        onChange={(event) => onChange(Number(event.currentTarget.value), true)}
      />
      {hint && <span class="hint">{hint}</span>}
    </div>
  );
}

/** A field made from what the schema says about an option. */
export function OptionField({
  name,
  option,
  value,
  onChange,
  problem,
}: {
  name: string;
  option: Option;
  value: string;
  onChange: (value: string) => void;
  problem?: Problem;
}): JSX.Element {
  const label = (
    <span class="mono" title={option.help}>
      {name}
    </span>
  );
  if (option.kind === "flag") {
    return (
      <Select
        label={label}
        value={value}
        problem={problem}
        onChange={onChange}
        choices={[
          { value: "", name: "default" },
          { value: "true", name: "yes" },
          { value: "false", name: "no" },
        ]}
      />
    );
  }
  if (option.choices?.length)
    return (
      <Select
        label={label}
        value={value}
        problem={problem}
        onChange={onChange}
        choices={[
          { value: "", name: option.standard ?? "open" },
          ...option.choices.filter((one) => one !== option.standard).map((one) => ({ value: one })),
        ]}
      />
    );
  return (
    <TextField
      label={label}
      value={value}
      problem={problem}
      onChange={onChange}
      placeholder={option.standard ?? option.placeholder?.toLowerCase()}
      list={option.examples}
    />
  );
}
