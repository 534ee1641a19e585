// The request on the left: its fields, its command, and on narrow screens one line that opens them.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Refusal, Request } from "../engine/ask";
import { asLines, asPython } from "../engine/command";
import type { Option } from "../engine/schema";
import type { Query } from "../url";
import { said } from "../text/said";
import { OptionField } from "./fields";
import type { Problem } from "./fields";
import { copy } from "./share";

export type Example = { name: string; shown?: ComponentChildren; chosen: boolean; choose: () => void };

/** Requests to start from, below the fields. */
export const Examples = ({ of }: { of: readonly Example[] }): JSX.Element => (
  <>
    <hr class="rule" />
    <div class="field">
      <span class="lab">Examples</span>
      <div class="list">
        {of.map(({ name, shown, chosen, choose }) => (
          <button type="button" key={name} aria-pressed={chosen} onClick={choose}>
            {shown ?? name}
          </button>
        ))}
      </div>
    </div>
  </>
);

export function Panel({
  summary,
  children,
  request,
}: {
  summary: string;
  children: ComponentChildren;
  request: Request | null;
}): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <form class={`ask${open ? " open" : ""}`} aria-label="Request" onSubmit={(event) => event.preventDefault()}>
      <button type="button" class="ask-sum" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span>{summary}</span>
        <b>{open ? "Done" : "Edit"}</b>
      </button>
      {children}
      {request && (
        <div class="cmd">
          <code>{asLines(request)}</code>
          <div>
            <button type="button" class="btn quiet" onClick={() => void copy(asLines(request), "the command")}>
              Copy command
            </button>
            <button type="button" class="btn quiet" onClick={() => void copy(asPython(request), "the Python program")}>
              Python
            </button>
          </div>
        </div>
      )}
    </form>
  );
}

const strip = (where: string): string =>
  where
    .replace(/^request: /, "")
    .replace(/^--/, "")
    .toLowerCase();
/** The part of an error that belongs to one field: the engine says where, and which names are near. */
export function problemAt(refusal: Refusal | undefined, field: string): Problem | undefined {
  if (!refusal) return undefined;
  const fault = [refusal.error, ...(refusal.error.also ?? [])].find(
    (one) => strip(one.where) === field.toLowerCase() || new RegExp(`--${field}\\b`).test(one.what),
  );
  if (!fault) return undefined;
  return { text: said(fault.what), names: nearest(fault.hint) };
}
export function nearest(hint: string): string[] {
  const match = /^did you mean (.*)\?$/.exec(hint);
  return match?.[1]
    ? match[1]
        .split(/, | or /)
        .map((name) => name.trim())
        .filter((name) => !name.startsWith("--"))
    : [];
}

/** Options of a verb under headings; one that the verb does not have is left out. */
export const OptionGroups = ({
  groups,
  options,
  values,
  onChange,
  refusal,
}: {
  groups: readonly [string, readonly string[]][];
  options: Record<string, Option>;
  values: Query;
  onChange: (values: Query) => void;
  refusal: Parameters<typeof problemAt>[0];
}): JSX.Element => (
  <>
    {groups.map(([title, names]) => (
      <fieldset key={title}>
        <legend>{title}</legend>
        <div class="two">
          {names.map(
            (name) =>
              options[name] && (
                <OptionField
                  key={name}
                  name={name}
                  option={options[name]}
                  value={values[name] ?? ""}
                  onChange={(value) => onChange({ [name]: value })}
                  problem={problemAt(refusal, name)}
                />
              ),
          )}
        </div>
      </fieldset>
    ))}
  </>
);
