import type { JSX } from "preact";
import { asQuery, v } from "../../engine/request";
import type { TrainResults } from "../../engine/schema";
import { Between, Plan, Tag } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { bytes, int, percent, time, usd } from "../../text/format";
import { write } from "../../url";
import type { Query } from "../../url";

/** Several clusters side by side, where the request names more than one (`h100-sxm:8..64`). */
export function SizesCard({ sizes, look }: { sizes: NonNullable<TrainResults["sizes"]>; look: Query }): JSX.Element {
  return (
    <Card
      title="Clusters"
      note="each with its best plan; the fastest is shown above"
      table={() => [
        ["cluster", "chips", "step_s", "training_s", "cost_usd", "efficiency", "plan"],
        ...sizes.map((one) => [
          one.cluster,
          one.chips,
          v(one.step_time),
          v(one.training_time) || null,
          one.cost ? v(one.cost) : null,
          one.scaling_efficiency ?? null,
          one.strategy ?? one.why_not ?? "",
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Cluster</th>
              <th class="n">Chips</th>
              <th class="n">Step</th>
              <th>80 % interval</th>
              <th class="n">Run</th>
              <th class="n">Cost</th>
              <th class="n">Efficiency</th>
              <th class="n">Memory</th>
              <th>Plan</th>
            </tr>
          </thead>
          <tbody>
            {sizes.map((one) => (
              <tr key={one.cluster}>
                <td>
                  {one.arguments ? (
                    <a href={write({ view: "plan", query: { ...look, ...asQuery(one.arguments) } })}>{one.cluster}</a>
                  ) : (
                    one.cluster
                  )}
                </td>
                <td class="n">{int(one.chips)}</td>
                {one.step_time ? (
                  <>
                    <td class="n">{time(v(one.step_time))}</td>
                    <td>
                      <Between interval={one.interval} share={false} />
                    </td>
                    <td class="n">{one.training_time ? time(v(one.training_time)) : "–"}</td>
                    <td class="n">{one.cost ? usd(v(one.cost)) : "–"}</td>
                    <td class="n">{one.scaling_efficiency === undefined ? "–" : percent(one.scaling_efficiency)}</td>
                    <td class="n">
                      {one.memory && <Tag verdict={one.memory.verdict}>{bytes(v(one.memory.total))}</Tag>}
                    </td>
                    <td>{one.strategy && <Plan strategy={one.strategy} />}</td>
                  </>
                ) : (
                  <td colSpan={7} class="muted">
                    {one.why_not ?? "no plan"}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
