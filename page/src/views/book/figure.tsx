import type { JSX } from "preact";
import type { Request } from "../../engine/ask";
import { refused, useAsk } from "../../engine/ask";
import { asCommand } from "../../engine/command";
import { asQuery } from "../../engine/request";
import { options } from "../../engine/schema";
import type { Arguments, BookResults, Verb } from "../../engine/schema";
import { Callout } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Segments, Select, Slider } from "../../parts/fields";
import { Pictures } from "../../parts/picture";
import { capital, sentence } from "../../text/format";
import { change, write } from "../../url";
import type { Query } from "../../url";
import { Picture } from "./pictures";

type Figure = NonNullable<BookResults["figures"]>[number];
const home: Partial<Record<string, string>> = {
  train: "plan",
  serve: "serve",
  roofline: "roofline",
  shard: "sharding",
  collective: "network",
  clusters: "network",
  systolic: "matrix",
  profile: "profile",
};
const viewName: Record<string, string> = {
  plan: "Plan",
  serve: "Serve",
  roofline: "Roofline",
  sharding: "Sharding",
  network: "Network",
  matrix: "Matrix unit",
  profile: "Profile",
};

/** Arguments in words, where their names alone say too little. */
const words: Partial<Record<string, string>> = {
  id: "Chip",
  on: "Cluster",
  M: "Rows of X",
  array: "Array",
  expr: "Expression",
  kind: "Collective",
  axes: "Axes",
  kv: "Cache",
  weights: "Weights",
  dtype: "Format",
  prompt: "Tokens of a prompt",
  picks: "Experts of a token",
  picture: "Shown",
  while: "Attention takes",
  "kv-heads": "KV heads",
  "local-layers": "Layers with a window",
  "share-cache": "Layers that share a cache",
  "prefix-memory": "Memory for prefixes",
  page: "Tokens of a page",
};

function Control({
  name,
  values,
  value,
  set,
}: {
  name: string;
  values: string[];
  value: string;
  set: (value: string) => void;
}): JSX.Element {
  const all = values.includes(value) ? values : [value, ...values];
  if (all.length > 2 && all.every((one) => /^\d/.test(one)))
    return (
      <Slider
        label={name}
        output={value}
        from={0}
        to={all.length - 1}
        value={all.indexOf(value)}
        text={value}
        onChange={(i) => set(all[i]!)}
      />
    );
  if (all.join("").length > 40)
    return <Select label={name} value={value} choices={all.map((one) => ({ value: one }))} onChange={set} />;
  return <Segments label={name} value={value} choices={all.map((one) => ({ value: one }))} onChange={set} />;
}

/** The request as a command; a long one, with data in it, opens. */
function Command({ text }: { text: string }): JSX.Element {
  if (text.length < 400) return <p class="mono tiny muted after">{text}</p>;
  return (
    <details class="more after">
      <summary class="btn quiet">The command, with its data</summary>
      <p class="mono tiny muted">{text}</p>
    </details>
  );
}

export function FigureCard({
  figure,
  index,
  query,
  look,
}: {
  figure: Figure;
  index: number;
  query: Query;
  look: Query;
}): JSX.Element {
  const chosen: Record<string, string> = {};
  for (const { argument, values } of figure.controls) {
    const own = figure.arguments[argument];
    const standard = options[figure.verb as Verb]?.[argument]?.standard;
    chosen[argument] = query[`f${index}.${argument}`] ?? String(own ?? standard ?? values[0] ?? "");
  }
  const args: Arguments = { ...(figure.arguments as Arguments), ...chosen };
  const request = { verb: figure.verb as Verb, arguments: args, picture: figure.picture } as Request;
  const asked = useAsk(request);
  const view = home[figure.verb];
  const target: Record<string, unknown> = figure.verb === "clusters" ? { on: args.cluster } : args;
  const { answer, reply } = asked;
  return (
    <Card
      title={figure.title}
      note={answer && !refused(reply!) ? sentence(answer.headline) : undefined}
      drawing
      end={view && <a href={write({ view, query: { ...look, ...asQuery(target) } })}>Open in {viewName[view]}</a>}
    >
      {figure.controls.length > 0 && (
        <div class="controls">
          {figure.controls.map(({ argument, values }) => (
            <Control
              key={argument}
              name={words[argument] ?? capital(argument.replaceAll("-", " "))}
              values={values}
              value={chosen[argument]!}
              set={(value) => change({ [`f${index}.${argument}`]: value }, true)}
            />
          ))}
        </div>
      )}
      <div class={asked.busy && reply ? "busy-part" : ""}>
        {reply && refused(reply) ? (
          <Callout kind="tight">
            <p>
              {sentence(reply.error.what)} {reply.error.hint && sentence(reply.error.hint)}
            </p>
          </Callout>
        ) : answer?.pictures && figure.picture ? (
          <Pictures pictures={answer.pictures} label={`Step of: ${figure.title}`} />
        ) : answer ? (
          <Picture verb={figure.verb} answer={answer} args={args} title={figure.title} />
        ) : (
          <p class="muted">Being asked…</p>
        )}
      </div>
      <Command text={asCommand(request)} />
    </Card>
  );
}
