import type { JSX } from "preact";
import { v } from "../../../engine/request";
import type { CollectiveResults, LayerResults, ShardResults } from "../../../engine/schema";
import { Lines } from "../../../draw/lines";
import type { Series } from "../../../draw/lines";
import { bytes, int, time } from "../../../text/format";
import { HopsCard } from "../../network/hops";
import { TimelineCard } from "../../plan/timeline";
import { Grid } from "../../sharding/grid";
import { devicesOf, drawn, holds, parseMesh, parseTensor, shardsOf } from "../../sharding/notation";

export function CollectivePicture({ results, rate }: { results: CollectiveResults; rate: boolean }): JSX.Element {
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

/** A layer over one of its sizes, or over the chips that split its weights. */
export function LayerPicture({ results, letter }: { results: LayerResults; letter: string }): JSX.Element {
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

export function ShardPicture({ results }: { results: ShardResults }): JSX.Element {
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
