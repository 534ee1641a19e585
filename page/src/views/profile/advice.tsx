// What can be saved of a profile: each change with its saving, and the lines that make it.
import type { JSX } from "preact";
import { v } from "../../engine/request";
import type { ProfileResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { capital, time } from "../../text/format";

export function Advice({ results: r }: { results: ProfileResults }): JSX.Element | null {
  if (!r.advice?.length) return null;
  return (
    <Card
      title="What can be saved"
      note="of a step, or of the whole profile where no steps are known; savings on the same kernels do not add up"
      table={() => [
        ["change", "saves", "from", "to", "lines", "reason"],
        ...r.advice!.map((one) => [
          one.change,
          v(one.saves),
          v(one.saves_least),
          v(one.saves_most),
          one.lines ?? "",
          one.reason,
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small after">
          <thead>
            <tr>
              <th>Change</th>
              <th class="n">Saves</th>
              <th class="n">From</th>
              <th class="n">To</th>
              <th>Lines</th>
              <th>Why</th>
            </tr>
          </thead>
          <tbody>
            {r.advice.map((one) => (
              <tr key={one.id}>
                <td>{capital(one.change)}</td>
                <td class="n">{time(v(one.saves))}</td>
                <td class="n">{time(v(one.saves_least))}</td>
                <td class="n">{time(v(one.saves_most))}</td>
                <td>
                  <code>{one.lines}</code>
                </td>
                <td class="muted wrapped">{one.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
