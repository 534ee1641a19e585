import type { JSX } from "preact";
import { asQuery, v } from "../../engine/request";
import type { Arguments, Interval, TrainResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { Between, Num, Plan, Tag } from "../../parts/basics";
import type { Verdict } from "../../parts/basics";
import { bytes, percent, thin, time } from "../../text/format";
import { keepLook, write } from "../../url";
import type { Query } from "../../url";
import { PinButton, chosenArguments, strategyText } from "./pins";

interface Row {
  strategy: string;
  step: number;
  interval?: Interval;
  slower: number | null;
  why: string;
  memory: number;
  verdict: Verdict;
  args: Arguments;
}
export function AlternativesCard({
  results,
  base,
  query,
}: {
  results: TrainResults;
  base: Arguments;
  query: Query;
}): JSX.Element {
  const rows: Row[] = [
    {
      strategy: strategyText(results),
      step: v(results.step_time.estimate),
      interval: results.step_time.interval,
      slower: null,
      why: "this plan",
      memory: v(results.memory.total),
      verdict: results.memory.verdict,
      args: chosenArguments(results, base),
    },
    ...(results.alternatives ?? []).map((one): Row => ({
      strategy: one.strategy,
      step: v(one.step_time),
      interval: one.interval,
      slower: one.slower_by,
      why: one.why ?? "",
      memory: v(one.memory?.total),
      verdict: one.memory?.verdict ?? "fits",
      args: one.arguments as Arguments,
    })),
  ];
  return (
    <Card
      title="Alternatives"
      note="pin up to four to compare side by side"
      table={() => [
        ["plan", "step_s", "low_s", "high_s", "slower_by", "because_of", "memory_bytes", "verdict"],
        ...rows.map((row) => [
          row.strategy,
          row.step,
          v(row.interval?.low),
          v(row.interval?.high),
          row.slower,
          row.why,
          row.memory,
          row.verdict,
        ]),
      ]}
    >
      <table class="rows stack">
        <thead>
          <tr>
            <th>
              <span class="sr">Pin</span>
            </th>
            <th>Plan</th>
            <th class="n">Step, 80{thin}% interval</th>
            <th class="n">Slower by</th>
            <th>Because of</th>
            <th class="n">Memory</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => {
            return (
              <tr key={row.strategy} class={i === 0 ? "on" : ""}>
                <td>
                  <PinButton query={query} args={row.args} name={row.strategy} />
                </td>
                <td>
                  {i === 0 ? (
                    <Plan strategy={row.strategy} />
                  ) : (
                    <a
                      class="quietlink"
                      href={write({ view: "plan", query: { ...keepLook(query), ...asQuery(row.args) } })}
                      title="Open this plan alone"
                    >
                      <Plan strategy={row.strategy} />
                    </a>
                  )}
                </td>
                <td class="n">
                  <Num
                    of={
                      i === 0
                        ? "step time"
                        : { name: "step time", value: row.step, unit: "s", interval: row.interval, note: row.strategy }
                    }
                  >
                    {time(row.step)}
                  </Num>{" "}
                  <Between interval={row.interval} share={false} />
                </td>
                <td class="n">{row.slower === null ? "–" : percent(row.slower, 2)}</td>
                <td class="muted">{row.why}</td>
                <td class="n">
                  <Tag verdict={row.verdict}>{bytes(row.memory)}</Tag>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Card>
  );
}
