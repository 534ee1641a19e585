import type { JSX } from "preact";
import { v } from "../../engine/request";
import type { ProfileResults } from "../../engine/schema";
import { Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { signed, time } from "../../text/format";

/** What got slower from one profile to the other, the largest changes first. */
export function Comparison({ comparison: c }: { comparison: NonNullable<ProfileResults["comparison"]> }): JSX.Element {
  const first = 10;
  const change = (one: { change: { value: number | null; unit: string } }): number => v(one.change);
  const most = Math.max(...c.operations.map((one) => Math.abs(change(one))), 0);
  const written = (x: number): string => (x < 0 ? "−" : "+") + time(Math.abs(x));
  return (
    <Card
      title="Before and after"
      note={`${time(v(c.before.time))} → ${time(v(c.after.time))} for each ${c.per}${
        c.relative_change === undefined ? "" : `, ${signed(c.relative_change)}`
      }`}
      table={() => [
        ["operation", "shapes", "category", "before", "after", "change"],
        ...c.operations.map((one) => [
          one.label ?? "",
          one.shapes ?? "",
          one.category,
          v(one.before),
          v(one.after),
          change(one),
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Operation</th>
              <th>Shapes</th>
              <th class="n">Before</th>
              <th class="n">After</th>
              <th class="n">Change</th>
              <th class="wide" />
            </tr>
          </thead>
          <tbody>
            {c.operations.slice(0, first).map((one) => (
              <tr key={`${one.label} ${one.shapes}`}>
                <td>{one.label ?? one.category}</td>
                <td class="mono tiny wrapped">{one.shapes ?? ""}</td>
                <td class="n">{time(v(one.before))}</td>
                <td class="n">{time(v(one.after))}</td>
                <td class="n">{written(change(one))}</td>
                <td class="wide">
                  <Track
                    value={change(one)}
                    least={-most}
                    most={most}
                    fill={change(one) > 0 ? "var(--s2)" : "var(--s7)"}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
