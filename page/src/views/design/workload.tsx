// A request of one's own, asked of the designed chip and of the one that it started from.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Answer, Request } from "../../engine/ask";
import { refused, useAsk } from "../../engine/ask";
import { asCommand, fromCommand } from "../../engine/command";
import { v, withArguments } from "../../engine/request";
import { Callout } from "../../parts/basics";
import { Card } from "../../parts/card";
import { TextField } from "../../parts/fields";
import { Scroll } from "../../parts/scroll";
import { copy } from "../../parts/share";
import { capital, percent, sentence, si, signed, time, unknown } from "../../text/format";
import { limitName } from "../words";

type Asked = "train" | "serve";
export interface Chip {
  id: string;
  text: string;
}
/** The chip that other verbs see of a design. */
export const chipOf = (text: string | undefined): Chip | null => {
  const id = /^id = "(.*)"$/m.exec(text ?? "")?.[1];
  return text && id ? { id, text } : null;
};

const names = {
  train: ["Tokens", "Step", "Useful share of the peak"],
  serve: ["Tokens of answers", "Per token", "First token"],
};
interface Figure {
  value: number;
  shown: string;
}
const figure = (value: number, write: (x: number) => string): Figure => ({ value, shown: write(value) });
const tokens = (x: number): string => si(x, "tokens/s");

const axes = ["dp", "fsdp", "tp", "pp", "cp", "ep"];
const planText = (strategy: object | undefined): string => {
  const all = (strategy ?? {}) as Record<string, unknown>;
  const parts = axes.filter((key) => Number(all[key]) > 1).map((key) => `${key} ${String(all[key])}`);
  return parts.length > 0 ? parts.join(", ") : "one chip";
};

function figures(answer: Answer<Asked> | undefined): { rows: Figure[]; limit: string; plan: string } | null {
  if (!answer) return null;
  const r = answer.results;
  const plan = planText(r.strategy);
  if ("step_time" in r)
    return {
      rows: [figure(v(r.tokens_per_second), tokens), figure(v(r.step_time.estimate), time), figure(r.mfu, percent)],
      limit: r.limiter,
      plan,
    };
  return {
    rows: [
      figure(v(r.served?.output_tokens_per_second), tokens),
      figure(v(r.served?.time_per_token), time),
      figure(v(r.first_token?.time), time),
    ],
    limit: r.decode?.limiter ?? "",
    plan,
  };
}

/** The request of a line on a chip; a text where the line is none. */
function requestOn<V extends Asked>(verb: V, line: string, chip: Chip): Request<V> | string {
  if (!line.includes("{chip}")) return "The request names the design: --on {chip}:8";
  const read = fromCommand(line.replaceAll("{chip}", chip.id), [verb]);
  if (typeof read === "string") return read;
  return withArguments(read, { catalogue: JSON.stringify({ [`chips/${chip.id}`]: chip.text }) });
}

export function WorkloadCard<V extends Asked>({
  verb,
  line,
  chip,
  before,
  from,
  design,
  onChange,
}: {
  verb: V;
  line: string;
  /** Null: it cannot be built, or has no network. */
  chip: Chip | null;
  before: Chip | null;
  from: string;
  design: Request<"design">;
  onChange: (line: string) => void;
}): JSX.Element {
  const now = useMemo(() => chip && requestOn(verb, line, chip), [verb, line, chip?.text]);
  const was = useMemo(() => before && requestOn(verb, line, before), [verb, line, before?.text]);
  const asked = useAsk<V>(typeof now === "string" ? null : now);
  const reference = useAsk<V>(typeof was === "string" ? null : was);
  const refusal = asked.reply && refused(asked.reply) ? asked.reply.error : undefined;
  const wrong =
    typeof was === "string" ? was : refusal && `${capital(refusal.what)}${refusal.hint ? `: ${refusal.hint}` : ""}`;
  const answer = chip && !wrong ? (asked.answer as Answer<Asked> | undefined) : undefined;
  const here = figures(answer?.outcome === "ok" ? answer : undefined);
  const old = reference.answer as Answer<Asked> | undefined;
  const there = figures(!wrong && old?.outcome === "ok" ? old : undefined);
  const rows = names[verb].map((name, i) => {
    const [a, b] = [here?.rows[i], there?.rows[i]];
    return {
      name,
      now: a?.shown ?? unknown,
      was: b?.shown ?? unknown,
      by: a && b ? a.value / b.value - 1 : Number.NaN,
    };
  });
  const command = (): string =>
    `${asCommand(withArguments(design, { out: "mine" }))} && ${
      typeof now === "string" || !now ? "" : asCommand(withArguments(now, { catalogue: "mine" }))
    }`;
  return (
    <Card
      title={verb === "train" ? "Training on this chip" : "Serving on this chip"}
      note={answer?.results.cluster}
      end={
        <button
          type="button"
          class="btn quiet"
          disabled={!chip || !!wrong}
          aria-label={`Copy the command that asks this of “${verb}”`}
          onClick={() => void copy(command(), "the command")}
        >
          Command
        </button>
      }
      table={() => [
        ["figure", "this design", from, "change"],
        ...rows.map((row) => [row.name, row.now, row.was, Number.isFinite(row.by) ? row.by : null]),
      ]}
    >
      <TextField
        label="Request"
        side="{chip} is the design"
        value={line}
        onChange={onChange}
        problem={wrong ? { text: sentence(wrong), names: [] } : undefined}
      />
      <div class={asked.busy && chip ? "busy-part" : undefined} aria-busy={asked.busy && !!chip}>
        <Scroll>
          <table class="rows small after">
            <thead>
              <tr>
                <th>
                  <span class="sr">Figure</span>
                </th>
                <th class="n">This design</th>
                <th class="n hide-s">{from}</th>
                <th class="n">Change</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={row.name}>
                  <td>{row.name}</td>
                  <td class="n">{i === 0 ? <b>{row.now}</b> : row.now}</td>
                  <td class="n hide-s">{row.was}</td>
                  <td class="n">{signed(row.by)}</td>
                </tr>
              ))}
              <tr>
                <td>{verb === "train" ? "Limits a step" : "Limits a decode step"}</td>
                <td class="n">{here ? limitName(here.limit) : unknown}</td>
                <td class="n hide-s">{there ? limitName(there.limit) : unknown}</td>
                <td />
              </tr>
              <tr>
                <td>Plan</td>
                <td class="n">{here?.plan ?? unknown}</td>
                <td class="n hide-s">{there?.plan ?? unknown}</td>
                <td />
              </tr>
            </tbody>
          </table>
        </Scroll>
        {answer && answer.outcome !== "ok" && (
          <Callout kind="no">
            <p>{sentence(answer.headline)}</p>
          </Callout>
        )}
      </div>
    </Card>
  );
}
