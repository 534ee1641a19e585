import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Answer } from "../../engine/ask";
import { v } from "../../engine/request";
import type {
  Arguments,
  ChipsResults,
  ClustersResults,
  CollectiveResults,
  LayerResults,
  ModelsResults,
  Quantity,
  RooflineResults,
  RunResults,
  ScalingResults,
  ServeResults,
  ShardResults,
  TrainResults,
  TransferResults,
} from "../../engine/schema";
import { Lines } from "../../draw/lines";
import type { Series } from "../../draw/lines";
import { Figures, Tag, Track } from "../../parts/basics";
import { Scroll } from "../../parts/scroll";
import { bytes, int, percent, quantity, sentence, si, time } from "../../text/format";
import { MatrixActivity } from "../matrix";
import { HopsCard } from "../network/hops";
import { TopologyCard } from "../network/topology";
import { TimelineCard } from "../plan/timeline";
import { TimeCard } from "../plan/time";
import { Grid } from "../sharding/grid";
import { devicesOf, drawn, holds, parseMesh, parseTensor, shardsOf } from "../sharding/notation";

export function Picture({
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
      return (
        <RooflinePicture
          results={r as RooflineResults}
          letter={String(args.vary ?? "").split("=")[0] ?? ""}
          growth={title.includes("grows")}
        />
      );
    case "collective":
      return <CollectivePicture results={r as CollectiveResults} rate={title.includes("bandwidth against")} />;
    case "serve":
      return <ServePicture results={r as ServeResults} picture={String(args.picture ?? "")} />;
    case "scaling":
      return <ScalingPicture results={r as ScalingResults} times={args.picture === "time"} />;
    case "models":
      return <ModelsPicture results={r as ModelsResults} intensity={title.includes("intensity")} />;
    case "shard":
      return <ShardPicture results={r as ShardResults} />;
    case "layer":
      return <LayerPicture results={r as LayerResults} letter={String(args.vary ?? "").split("=")[0] ?? ""} />;
    case "chips":
      return <ChipPicture results={r as ChipsResults} />;
    case "clusters":
      return <TopologyCard results={r as ClustersResults} />;
    case "systolic":
      return <MatrixActivity answer={answer as unknown as Answer<"systolic">} />;
    case "transfer":
      return <TransferPicture results={r as TransferResults} />;
    case "run":
      return <RunPicture results={r as RunResults} />;
    case "train":
      return <TrainPicture results={r as TrainResults} />;
    default:
      return <p>{sentence(answer.headline)}</p>;
  }
}

function RooflinePicture({
  results,
  letter,
  growth,
}: {
  results: RooflineResults;
  letter: string;
  growth: boolean;
}): JSX.Element {
  const sweep = results.sweep ?? [];
  if (sweep.length > 1) {
    const size = (one: (typeof sweep)[number]): number => Number((one as unknown as Record<string, number>)[letter]);
    if (growth) {
      const first = sweep[0]!;
      return (
        <Lines
          label="work and data against the size"
          x={{ title: `${letter}; both as multiples of those of the first size`, log: true }}
          y={{ title: "times as much", log: true }}
          series={[
            {
              name: "FLOP",
              colour: "var(--s1)",
              points: sweep.map((one) => [size(one), v(one.flops) / v(first.flops)] as const),
            },
            {
              name: "bytes",
              colour: "var(--s3)",
              points: sweep.map((one) => [size(one), v(one.bytes) / v(first.bytes)] as const),
            },
          ]}
        />
      );
    }
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
  if (sweep.length > 1 && sweep[0]!.share !== undefined)
    return (
      <Lines
        label="share of the devices that get a token"
        x={{ title: "devices", log: true }}
        y={{ title: "share of the devices that get a token", unit: "%" }}
        series={[
          {
            name: "on average",
            colour: "var(--s1)",
            points: sweep.map((one) => [one.chips ?? 0, one.share ?? 0] as const),
          },
          {
            name: "picks over devices",
            colour: "var(--s2)",
            points: sweep.map((one) => [one.chips ?? 0, one.approximate_share ?? 0] as const),
          },
        ]}
      />
    );
  if (sweep.length > 1 && sweep[0]!.sharded_by !== undefined)
    return (
      <Lines
        label="time against the devices that shard the array further"
        x={{ title: "devices that shard the array further", log: true }}
        y={{ title: "time", unit: "s", log: true }}
        series={[
          {
            name: "ideal",
            colour: "var(--edge)",
            points: sweep.map((one) => [one.sharded_by!, v(one.lower)] as const),
          },
          {
            name: "estimate",
            colour: "var(--s2)",
            points: sweep.map((one) => [one.sharded_by!, v(one.time)] as const),
          },
        ]}
      />
    );
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
            name: "weights",
            colour: "var(--s3)",
            points: sweep.map((one) => [Number(one.batch), q(one, "memory_time") - q(one, "cache_time")] as const),
          },
          {
            name: "cache",
            colour: "var(--s5)",
            points: sweep.map((one) => [Number(one.batch), q(one, "cache_time")] as const),
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
  const lengths = results.speculation?.lengths ?? [];
  if (picture === "drafts" && lengths.length > 1)
    return (
      <Lines
        label="time against the length of drafts"
        x={{ title: `drafted tokens; ${results.speculation!.draft_length} are best` }}
        y={{ title: "time", unit: "s", from: 0 }}
        rule={{ at: v(results.decode?.step_time.estimate), name: "a step without drafts" }}
        series={[
          {
            name: "per token",
            colour: "var(--s1)",
            points: lengths.map((one) => [one.draft_length, v(one.time_per_token)] as const),
          },
          {
            name: "of a loop",
            colour: "var(--s2)",
            points: lengths.map((one) => [one.draft_length, v(one.loop_time)] as const),
          },
        ]}
      />
    );
  const cached = results.cache_by_length ?? [];
  if (picture === "cache" && cached.length > 1)
    return (
      <>
        <Lines
          label="cache of a sequence against its length"
          x={{ title: "tokens of a sequence", log: true }}
          y={{ title: "cache of a sequence", unit: "B", log: true }}
          series={[
            {
              name: "as published",
              colour: "var(--edge)",
              points: cached.map((one) => [one.tokens, v(one.as_published)] as const),
            },
            { name: "as asked", colour: "var(--s5)", points: cached.map((one) => [one.tokens, v(one.cache)] as const) },
          ]}
        />
        <Figures
          rows={[
            ["Sequences that fit", int(results.memory?.max_batch)],
            ["Output", si(v(results.served?.output_tokens_per_second), "tokens/s")],
          ]}
        />
      </>
    );
  if (results.prefix_cache) return <PrefixPicture cache={results.prefix_cache} />;
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

/** What a cache of prefixes hits, by its memory. */
function PrefixPicture({ cache }: { cache: NonNullable<ServeResults["prefix_cache"]> }): JSX.Element {
  return (
    <>
      <Lines
        label="share of the tokens that are cached, against the memory"
        x={{ title: "memory for prefixes", unit: "B", log: true }}
        y={{ title: "share of the prompts that is cached", unit: "%", from: 0 }}
        series={[
          {
            name: "cached",
            colour: "var(--s5)",
            points: cache.sizes.map((one) => [v(one.memory), one.hit_share] as const),
          },
        ]}
      />
      <Figures
        rows={[
          ["Tokens of all prompts", int(v(cache.prompt_tokens))],
          ["Tokens that were cached", `${int(v(cache.hit_tokens))}, ${percent(cache.hit_share)}`],
          ["Arithmetic saved", si(v(cache.saved_flops), "FLOP")],
          ["Blocks that were evicted", int(cache.evicted_blocks)],
        ]}
      />
    </>
  );
}

/** A layer over one of its sizes, or over the chips that split its weights. */
function LayerPicture({ results, letter }: { results: LayerResults; letter: string }): JSX.Element {
  const splits = results.splits ?? [];
  if (splits.length > 0) {
    const series = (name: string, colour: string, key: "one_direction" | "two_directions"): Series => ({
      name,
      colour,
      points: splits.flatMap((one) => (one[key] ? [[one.chips, v(one[key] ?? undefined)] as const] : [])),
    });
    return (
      <Lines
        label="time of a layer against the chips that split its weights"
        x={{ title: "chips", log: true }}
        y={{ title: "time of a layer, ideal hardware", unit: "s", log: true }}
        series={[
          series("one direction", "var(--s1)", "one_direction"),
          series("two directions", "var(--s2)", "two_directions"),
        ]}
      />
    );
  }
  const sweep = results.sweep ?? [];
  const size = (one: (typeof sweep)[number]): number => Number((one as unknown as Record<string, number>)[letter]);
  const series = (name: string, colour: string, value: (one: (typeof sweep)[number]) => number): Series => ({
    name,
    colour,
    points: sweep.map((one) => [size(one), value(one)] as const),
  });
  const from = results.critical_size ? `; arithmetic limits from ${int(results.critical_size.value)}` : "";
  return (
    <>
      <Lines
        label={`time of a layer against ${letter}`}
        x={{ title: `${letter}${from}`, log: true }}
        y={{ title: "time of a layer", unit: "s", log: true }}
        series={[
          series("estimate", "var(--ink)", (one) => v(one.time.estimate)),
          series("arithmetic", "var(--s1)", (one) => v(one.compute_time)),
          series("memory", "var(--s3)", (one) => v(one.memory_time)),
          series("network", "var(--s2)", (one) => v(one.collective_time)),
        ]}
      />
      <Lines
        label={`tokens a second against ${letter}`}
        x={{ title: letter, log: true }}
        y={{ title: "tokens/s of a layer", log: true }}
        series={[series("tokens/s", "var(--s1)", (one) => v(one.tokens_per_second))]}
      />
    </>
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
  if (results.walk)
    return (
      <ol class="walk">
        {results.walk.map((one) => (
          <li key={one.test}>
            <Tag verdict={one.holds ? "fits" : "no"}>{one.holds ? "Yes" : "No"}</Tag>
            <div>
              <b>{sentence(one.test)}</b>
              <span class="muted">
                {" "}
                {value(one.have)}, {one.must_be} {value(one.limit)}
              </span>
              <p>{sentence(one.so)}</p>
            </div>
          </li>
        ))}
      </ol>
    );
  if (results.splits && results.splits.length > 0)
    return (
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th class="n">FSDP</th>
              <th class="n">Tensor</th>
              <th class="n">Arithmetic</th>
              <th class="n">Weights</th>
              <th class="n">Activations</th>
              <th>Limited by</th>
              <th class="n">Arithmetic limits from a batch of</th>
            </tr>
          </thead>
          <tbody>
            {[...results.splits]
              .sort((a, b) => a.tensor - b.tensor)
              .map((one) => (
                <tr key={one.tensor}>
                  <td class="n">{int(one.fsdp)}</td>
                  <td class="n">{int(one.tensor)}</td>
                  <td class="n">{time(v(one.compute_time))}</td>
                  <td class="n">{time(v(one.weight_time))}</td>
                  <td class="n">{time(v(one.activation_time))}</td>
                  <td>
                    <Tag verdict={one.limiter === "compute" ? "fits" : "tight"}>
                      {one.limiter === "compute" ? "arithmetic" : "network"}
                    </Tag>
                  </td>
                  <td class="n">{one.min_batch ? si(v(one.min_batch), "tokens") : "never"}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </Scroll>
    );
  const rows: [string, string][] = [];
  if (results.training?.time)
    rows.push(
      ["Arithmetic of the run", si(v(results.training.flops), "FLOP")],
      ["Share of the peak", percent(results.training.mfu)],
      ["Time on these chips", time(v(results.training.time))],
    );
  if (results.data_parallel)
    rows.push(["Data parallelism: tokens of a chip, at least", si(v(results.data_parallel.min_tokens_per_chip))]);
  if (results.fsdp)
    rows.push(
      ["Fully sharded: tokens of a chip, at least", si(v(results.fsdp.min_tokens_per_chip))],
      ["Fully sharded: tokens of a batch, at least", si(v(results.fsdp.min_batch))],
    );
  const tensor = results.tensor_parallel as unknown as { max_ways?: number; power_of_two_ways?: number } | undefined;
  if (tensor?.max_ways) rows.push(["Tensor parallelism: ways, at most", tensor.max_ways.toFixed(1)]);
  return <Figures rows={rows} />;
}

function ModelsPicture({ results, intensity }: { results: ModelsResults; intensity: boolean }): JSX.Element {
  const sweep = results.sweep ?? [];
  if (intensity)
    return (
      <Lines
        label="attention's arithmetic intensity against the context"
        x={{ title: "tokens of a sequence", log: true }}
        y={{ title: "FLOP/B", log: true }}
        series={[
          {
            name: "prefill",
            colour: "var(--s1)",
            points: sweep.map((one) => [one.sequence, v(one.prefill_intensity)] as const),
          },
          {
            name: "decode",
            colour: "var(--s3)",
            points: sweep.map((one) => [one.sequence, v(one.decode_intensity)] as const),
          },
        ]}
      />
    );
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
  if (results.overlap) return <TimelineCard timeline={results.overlap.timeline} />;
  const axes = parseMesh(results.mesh);
  const devices = devicesOf(axes);
  const tensors = results.tensors.flatMap((one) => {
    const tensor = parseTensor(one.tensor, axes);
    return tensor ? [tensor] : [];
  });
  return (
    <>
      <div class={tensors.length > 1 ? "grids" : ""}>
        {tensors.map((tensor) => (
          <div key={tensor.text}>
            {tensors.length > 1 && <p class="mono tiny">{tensor.text}</p>}
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
          </div>
        ))}
      </div>
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

/** A value as the engine gives it: a quantity, a number or a word. */
const value = (of: unknown): string =>
  of === null || of === undefined
    ? "–"
    : typeof of === "object"
      ? quantity((of as Quantity).value, (of as Quantity).unit, 3)
      : typeof of === "number"
        ? quantity(of, "", 3)
        : String(of);

function SideBySide({ rows }: { rows: NonNullable<ChipsResults["side_by_side"]> }): JSX.Element {
  const chips = Object.keys(rows[0] ?? {}).filter((key) => key !== "part");
  return (
    <Scroll>
      <table class="rows small">
        <thead>
          <tr>
            <th>
              <span class="sr">Part</span>
            </th>
            {chips.map((chip) => (
              <th key={chip} class="n">
                {chip}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.part}>
              <td class="muted">{sentence(row.part).replace(/\.$/, "")}</td>
              {chips.map((chip) => (
                <td key={chip} class="n">
                  {value((row as Record<string, unknown>)[chip])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function TransferPicture({ results }: { results: TransferResults }): JSX.Element {
  const rows: [string, JSX.Element | string][] = [["Time", time(v(results.time.lower))]];
  if (results.residency)
    rows.push([
      "On the chip",
      <>
        {bytes(v(results.residency.bytes_per_chip))} of {bytes(v(results.residency.capacity))}{" "}
        <Tag verdict={results.residency.fits ? "fits" : "no"}>{results.residency.fits ? "Fits" : "Does not fit"}</Tag>
      </>,
    ]);
  if (results.meanwhile)
    rows.push([
      `Behind ${time(v(results.meanwhile.time))} of other work`,
      <Tag verdict={results.meanwhile.hidden ? "fits" : "tight"}>
        {results.meanwhile.hidden ? "Hidden" : `${time(v(results.meanwhile.exposed))} exposed`}
      </Tag>,
    ]);
  return <Figures rows={rows} />;
}

/** Requests that a small model answered. */
function RunPicture({ results }: { results: RunResults }): JSX.Element {
  if (!results.requests)
    return <Figures rows={(results.steps ?? []).map((step) => [step.text, bytes(v(step.received))] as const)} />;
  return (
    <>
      {results.tokens_equal !== undefined && (
        <p>
          <Tag verdict={results.tokens_equal ? "fits" : "no"}>
            {results.tokens_equal ? "The same tokens as on one device" : "Other tokens than on one device"}
          </Tag>
        </p>
      )}
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Prompt</th>
              <th>Answer</th>
              <th class="n">From step</th>
              <th class="n">To step</th>
            </tr>
          </thead>
          <tbody>
            {results.requests.map((one, i) => (
              <tr key={i}>
                <td class="mono tiny">{one.prompt}</td>
                <td class="mono tiny">{one.answer}</td>
                <td class="n">{one.started}</td>
                <td class="n">{one.finished}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function ChipPicture({ results }: { results: ChipsResults }): JSX.Element {
  if (results.side_by_side) return <SideBySide rows={results.side_by_side} />;
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
