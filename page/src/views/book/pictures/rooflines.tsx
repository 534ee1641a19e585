import type { JSX } from "preact";
import { v } from "../../../engine/request";
import type { Quantity, RooflineResults, ScalingResults } from "../../../engine/schema";
import { Lines } from "../../../draw/lines";
import { Figures, Tag } from "../../../parts/basics";
import { Scroll } from "../../../parts/scroll";
import { int, percent, sentence, si, time } from "../../../text/format";
import { value } from "./value";

export function RooflinePicture({
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

export function ScalingPicture({ results, times }: { results: ScalingResults; times: boolean }): JSX.Element {
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
