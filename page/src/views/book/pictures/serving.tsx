import type { JSX } from "preact";
import { v } from "../../../engine/request";
import type { Quantity, ServeResults } from "../../../engine/schema";
import { Lines } from "../../../draw/lines";
import { Figures } from "../../../parts/basics";
import { int, percent, si } from "../../../text/format";

export function ServePicture({ results, picture }: { results: ServeResults; picture: string }): JSX.Element {
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
            points: sweep.map((one) => [Number(one.batch), q(one, "weights_time")] as const),
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
