import type { JSX } from "preact";
import { asQuery, v } from "../../engine/request";
import type { ServeResults } from "../../engine/schema";
import { Gain } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { capital, signed, time } from "../../text/format";
import { change } from "../../url";
import type { Query } from "../../url";

type Help = NonNullable<ServeResults["helps"]>[number];
export function HelpsCard({ helps, at }: { helps: readonly Help[]; at: Query }): JSX.Element {
  const most = Math.max(0.01, ...helps.map((one) => one.output_gain));
  const least = Math.min(0, ...helps.map((one) => one.output_gain));
  return (
    <Card
      title="What would help most"
      note="each priced as the changed request; tokens/s of a chip"
      table={() => [
        ["change", "gain", "time_per_token_s", "time_to_first_token_s", "plan"],
        ...helps.map((one) => [
          one.change,
          one.output_gain,
          v(one.time_per_token),
          v(one.time_to_first_token),
          one.strategy,
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small fit">
          <thead>
            <tr>
              <th>Change</th>
              <th class="hide-s">
                <span class="sr">Picture</span>
              </th>
              <th class="n">Gain</th>
              <th class="n">Per token</th>
              <th class="n">First token</th>
              <th>
                <span class="sr">Apply</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {helps.map((one) => (
              <tr key={one.change}>
                <td>
                  {one.change.startsWith("--") ? <span class="mono tiny">{one.change}</span> : capital(one.change)}
                </td>
                <td class="hide-s wide">
                  <Gain value={one.output_gain} least={least} most={most} />
                </td>
                <td class="n">{signed(one.output_gain)}</td>
                <td class="n">{time(v(one.time_per_token))}</td>
                <td class="n">{time(v(one.time_to_first_token))}</td>
                <td class="n">
                  {one.arguments && (
                    <button
                      type="button"
                      class="btn mini"
                      aria-label={`Apply ${one.change}`}
                      onClick={() => change({ ...at, ...asQuery(one.arguments!), open: "" })}
                    >
                      Apply
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
