import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Answer, Request } from "../../engine/ask";
import { refused, useAsk } from "../../engine/ask";
import { asCommand } from "../../engine/command";
import { asQuery, v } from "../../engine/request";
import type {
  Arguments,
  BookResults,
  ChipsResults,
  ClustersResults,
  CollectiveResults,
  ModelsResults,
  Quantity,
  RooflineResults,
  ScalingResults,
  ServeResults,
  ShardResults,
  TrainResults,
  Verb,
} from "../../engine/schema";
import { Lines } from "../../draw/lines";
import type { Series } from "../../draw/lines";
import { Callout, Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Segments, Select, Slider } from "../../parts/fields";
import { bytes, sentence, si, time } from "../../text/format";
import { change, write } from "../../url";
import type { Query } from "../../url";
import { MatrixActivity } from "../matrix";
import { HopsCard } from "../network/hops";
import { TopologyCard } from "../network/topology";
import { TimelineCard } from "../plan/timeline";
import { TimeCard } from "../plan/time";
import { Grid } from "../sharding/grid";
import { devicesOf, drawn, holds, parseMesh, parseTensor, shardsOf } from "../sharding/notation";

type Figure = NonNullable<BookResults["figures"]>[number];
const home: Partial<Record<string, string>> = {
  train: "plan",
  serve: "serve",
  roofline: "roofline",
  shard: "sharding",
  collective: "network",
  clusters: "network",
  systolic: "matrix",
};
const viewName: Record<string, string> = {
  plan: "Plan",
  serve: "Serve",
  roofline: "Roofline",
  sharding: "Sharding",
  network: "Network",
  matrix: "Matrix unit",
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
  if (all.join("").length > 48)
    return <Select label={name} value={value} choices={all.map((one) => ({ value: one }))} onChange={set} />;
  return <Segments label={name} value={value} choices={all.map((one) => ({ value: one }))} onChange={set} />;
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
    chosen[argument] = query[`f${index}.${argument}`] ?? String(own ?? values[0] ?? "");
  }
  const args: Arguments = { ...(figure.arguments as Arguments), ...chosen };
  const request = { verb: figure.verb as Verb, arguments: args } as Request;
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
              name={argument}
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
        ) : answer ? (
          <Picture verb={figure.verb} answer={answer} args={args} title={figure.title} />
        ) : (
          <p class="muted">Being asked…</p>
        )}
      </div>
      <p class="mono tiny muted after">{asCommand(request)}</p>
    </Card>
  );
}

function Picture({
  verb,
  answer,
  args,
  title,
}: {
  verb: string;
  answer: Answer;
  args: Arguments;
  title: string;
}): JSX.Element {
  const r = answer.results as unknown;
  switch (verb) {
    case "roofline":
      return <RooflinePicture results={r as RooflineResults} letter={String(args.vary ?? "").split("=")[0] ?? ""} />;
    case "collective":
      return <CollectivePicture results={r as CollectiveResults} rate={title.includes("bandwidth against")} />;
    case "serve":
      return <ServePicture results={r as ServeResults} picture={String(args.picture ?? "")} />;
    case "scaling":
      return <ScalingPicture results={r as ScalingResults} times={args.picture === "time"} />;
    case "models":
      return <ModelsPicture results={r as ModelsResults} />;
    case "shard":
      return <ShardPicture results={r as ShardResults} />;
    case "chips":
      return <ChipPicture results={r as ChipsResults} />;
    case "clusters":
      return <TopologyCard results={r as ClustersResults} />;
    case "systolic":
      return <MatrixActivity answer={answer as unknown as Answer<"systolic">} />;
    case "train":
      return <TrainPicture results={r as TrainResults} />;
    default:
      return <p>{sentence(answer.headline)}</p>;
  }
}

function RooflinePicture({ results, letter }: { results: RooflineResults; letter: string }): JSX.Element {
  const sweep = results.sweep ?? [];
  if (sweep.length > 1) {
    const size = (one: (typeof sweep)[number]): number => Number((one as unknown as Record<string, number>)[letter]);
    return (
      <>
        <Lines
          label="FLOP/s against the size"
          x={{
            title: `${letter}${results.critical_size?.whole ? `; arithmetic limits from ${results.critical_size.whole}` : ""}`,
            log: true,
          }}
          y={{ title: "FLOP/s", log: true }}
          rule={{ at: v(results.peak), name: `peak ${si(v(results.peak), "FLOP/s")}` }}
          series={[
            {
              name: "ideal",
              colour: "var(--edge)",
              points: sweep.map((one) => [size(one), v(one.flops) / v(one.time.lower)] as const),
            },
            {
              name: "estimate",
              colour: "var(--s1)",
              points: sweep.map((one) => [size(one), v(one.flops) / v(one.time.estimate)] as const),
            },
          ]}
        />
      </>
    );
  }
  const from = 1;
  const to = Math.max(v(results.critical_intensity) * 10, v(results.intensity) * 4);
  const steps = Array.from({ length: 40 }, (_, i) => from * (to / from) ** (i / 39));
  return (
    <Lines
      label="roofline"
      x={{ title: `arithmetic intensity, FLOP/B; the operation has ${si(v(results.intensity), "FLOP/B")}`, log: true }}
      y={{ title: "FLOP/s", log: true }}
      series={[
        ...results.levels
          .filter((level) => v(level.bandwidth) > 0)
          .slice(0, 3)
          .map((level, i) => ({
            name: level.name,
            colour: ["var(--s1)", "var(--s3)", "var(--s2)"][i]!,
            points: steps.map((x) => [x, Math.min(v(results.peak), x * v(level.bandwidth))] as const),
          })),
        {
          name: "estimate",
          colour: "var(--ink)",
          points: [[v(results.intensity), v(results.flops) / v(results.time.estimate)]],
        },
      ]}
    />
  );
}

function CollectivePicture({ results, rate }: { results: CollectiveResults; rate: boolean }): JSX.Element {
  if (results.blocks && results.blocks.length > 1)
    return <HopsCard blocks={results.blocks} kind={results.collective} algorithm={results.algorithm} />;
  const sweep = results.sweep ?? [];
  if (sweep.length > 1) {
    const series = (name: string, colour: string, time: (one: (typeof sweep)[number]) => number): Series => ({
      name,
      colour,
      points: sweep.map((one) => [v(one.bytes), rate ? v(one.bytes) / time(one) : time(one)] as const),
    });
    return (
      <Lines
        label={`${rate ? "bandwidth" : "time"} against bytes`}
        x={{ title: "bytes of the array", unit: "B", log: true }}
        y={{ title: rate ? "bytes of the array over the time, B/s" : "time", unit: rate ? "" : "s", log: true }}
        series={[
          series("ideal", "var(--edge)", (one) => v(one.lower)),
          series("estimate", "var(--s2)", (one) => v(one.time)),
        ]}
      />
    );
  }
  return (
    <p>
      {time(v(results.time.estimate))} with {results.algorithm}, {bytes(v(results.bytes_per_link))} over the busiest
      link.
    </p>
  );
}

function ServePicture({ results, picture }: { results: ServeResults; picture: string }): JSX.Element {
  const sweep = (results as unknown as { sweep?: Record<string, Quantity | number>[] }).sweep ?? [];
  const q = (one: Record<string, Quantity | number>, key: string): number => v(one[key] as Quantity | undefined);
  if (picture === "step" && sweep.length > 1) {
    return (
      <Lines
        label="parts of a decode step against the batch"
        x={{ title: "batch", log: true }}
        y={{ title: "time", unit: "s", log: true }}
        series={[
          {
            name: "step",
            colour: "var(--ink)",
            points: sweep.map((one) => [Number(one.batch), q(one, "step_time")] as const),
          },
          {
            name: "memory",
            colour: "var(--s3)",
            points: sweep.map((one) => [Number(one.batch), q(one, "memory_time")] as const),
          },
          {
            name: "arithmetic",
            colour: "var(--s1)",
            points: sweep.map((one) => [Number(one.batch), q(one, "compute_time")] as const),
          },
          {
            name: "network",
            colour: "var(--s2)",
            points: sweep.map((one) => [Number(one.batch), q(one, "network_time")] as const),
          },
        ]}
      />
    );
  }
  const front = results.pareto ?? [];
  if (picture === "cost" && front.some((one) => one.cost))
    return (
      <Lines
        label="cost against time per token"
        x={{ title: "time per token", unit: "s", log: true }}
        y={{ title: "USD a million tokens", log: true }}
        series={[
          { name: "cost", colour: "var(--s1)", points: front.map((one) => [v(one.latency), v(one.cost)] as const) },
        ]}
      />
    );
  return (
    <Lines
      label="latency against throughput"
      x={{ title: "time per token", unit: "s", log: true }}
      y={{ title: "tokens/s a chip", log: true }}
      series={[
        {
          name: "front",
          colour: "var(--s1)",
          points: front.map((one) => [v(one.latency), v(one.throughput_per_chip)] as const),
        },
      ]}
    />
  );
}

function ScalingPicture({ results, times }: { results: ScalingResults; times: boolean }): JSX.Element {
  const sweep = (results as unknown as { sweep?: Record<string, Quantity | number>[] }).sweep ?? [];
  if (sweep.length > 1) {
    const at = (one: Record<string, Quantity | number>): number => v(one.batch as Quantity);
    const timed = (key: string) => sweep.map((one) => [at(one), v(one[key] as Quantity)] as const);
    if (times) {
      return (
        <Lines
          label="arithmetic and communication of a layer against the batch"
          x={{ title: "tokens of a batch", log: true }}
          y={{ title: "time of a layer", unit: "s", log: true }}
          series={[
            { name: "arithmetic", colour: "var(--s1)", points: timed("compute_time") },
            { name: "network", colour: "var(--s2)", points: timed("communication_time") },
          ]}
        />
      );
    }
    return (
      <Lines
        label="arithmetic over communication against the batch"
        x={{ title: "tokens of a batch", log: true }}
        y={{ title: "arithmetic over communication", log: true }}
        rule={{ at: 1, name: "above: arithmetic limits" }}
        series={[
          { name: "FSDP", colour: "var(--s1)", points: sweep.map((one) => [at(one), Number(one.fsdp_ratio)] as const) },
          {
            name: "with tensor",
            colour: "var(--s2)",
            points: sweep.map((one) => [at(one), Number(one.mixed_ratio)] as const),
          },
        ]}
      />
    );
  }
  const rows: [string, string][] = [];
  if (results.data_parallel)
    rows.push(["Data parallelism: tokens of a chip, at least", si(v(results.data_parallel.min_tokens_per_chip))]);
  if (results.fsdp)
    rows.push(
      ["Fully sharded: tokens of a chip, at least", si(v(results.fsdp.min_tokens_per_chip))],
      ["Fully sharded: tokens of a batch, at least", si(v(results.fsdp.min_batch))],
    );
  const tensor = results.tensor_parallel as unknown as { max_ways?: number; power_of_two_ways?: number } | undefined;
  if (tensor?.max_ways) rows.push(["Tensor parallelism: ways, at most", tensor.max_ways.toFixed(1)]);
  return (
    <dl class="figures">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function ModelsPicture({ results }: { results: ModelsResults }): JSX.Element {
  const sweep = (results as unknown as { sweep?: { sequence: number; attention_share: number }[] }).sweep ?? [];
  return (
    <Lines
      label="attention's share of the work against the context"
      x={{ title: "tokens of a sequence", log: true }}
      y={{ title: "attention's share of the forward pass", unit: "%" }}
      series={[
        {
          name: "attention",
          colour: "var(--s1)",
          points: sweep.map((one) => [one.sequence, one.attention_share] as const),
        },
      ]}
    />
  );
}

function ShardPicture({ results }: { results: ShardResults }): JSX.Element {
  const axes = parseMesh(results.mesh);
  const tensor = parseTensor(results.tensors[0]?.tensor ?? "", axes);
  const devices = devicesOf(axes);
  return (
    <>
      {tensor && (
        <Grid
          axes={axes}
          devices={devices}
          frame={{
            title: tensor.text,
            step: -1,
            names: [tensor.dimensions[0]?.name ?? "", tensor.dimensions[1]?.name ?? ""],
            rows: Math.max(2, shardsOf(tensor.dimensions[drawn([tensor])[0]], axes)),
            columns: Math.max(2, shardsOf(tensor.dimensions[drawn([tensor])[1]], axes)),
            blocks: devices.map((device) => holds(tensor, device, axes, drawn([tensor]))),
          }}
        />
      )}
      {(results.steps?.length ?? 0) > 0 && (
        <ol class="plan-steps">
          {results.steps!.map((step) => (
            <li key={step.text} class="mono tiny">
              {step.text}
              {step.collective && (
                <span class="muted">
                  {" "}
                  {bytes(v(step.bytes))}
                  {step.time ? `, ${time(v(step.time))}` : ""}
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function ChipPicture({ results }: { results: ChipsResults }): JSX.Element {
  const peaks = Object.entries(results.peak ?? {});
  const rates = Object.entries(results.memory ?? {})
    .filter(([, level]) => level.bandwidth)
    .map(([name, level]) => [name, level.bandwidth!] as const);
  const most = (list: (readonly [string, Quantity])[]): number => Math.max(...list.map(([, one]) => v(one)));
  const table = (title: string, list: (readonly [string, Quantity])[], unit: string, fill: string): JSX.Element => (
    <table class="rows small">
      <caption>{title}</caption>
      <tbody>
        {list.map(([name, one]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="wide">
              <Track value={v(one)} most={most(list)} fill={fill} />
            </td>
            <td class="n">{si(v(one), unit)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
  return (
    <>
      {peaks.length > 0 && table("Arithmetic", peaks, "FLOP/s", "var(--s1)")}
      {rates.length > 0 && table("Memory", rates, "B/s", "var(--s3)")}
    </>
  );
}

function TrainPicture({ results }: { results: TrainResults }): JSX.Element {
  const timeline = useMemo(() => results.timeline, [results]);
  return timeline ? <TimelineCard timeline={timeline} /> : <TimeCard results={results} />;
}
