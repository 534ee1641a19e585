// A profile beside a prediction: from the predicted step to the measured one, class by class.
import type { JSX } from "preact";
import { v } from "../../engine/request";
import type { ProfileResults } from "../../engine/schema";
import { Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { capital, percent, sentence, time } from "../../text/format";
import { change } from "../../url";

export function Against({ results: r, against }: { results: ProfileResults; against: string }): JSX.Element | null {
  if (!r.gap) return r.recovered ? <Offer command={r.recovered.command} /> : null;
  const most = Math.max(...r.gap.map((one) => Math.abs(v(one.difference))), 0);
  const written = (x: number): string => (x < 0 ? "−" : "+") + time(Math.abs(x));
  return (
    <Card
      title="From the prediction to the measurement"
      note={`${time(v(r.predicted_time))} predicted, ${time(v(r.measured_time))} measured; ${
        r.matched_share === undefined
          ? "without shapes, only classes are compared"
          : `${percent(r.matched_share)} of kernel time is matched`
      }`}
      end={
        <button type="button" class="btn quiet" onClick={() => change({ against: "" })}>
          Stop comparing
        </button>
      }
      table={() => [
        ["class", "kind", "predicted", "measured", "difference", "remedy"],
        ...r.gap!.map((one) => [
          one.class,
          one.kind,
          v(one.predicted),
          v(one.measured),
          v(one.difference),
          one.remedy ?? "",
        ]),
      ]}
    >
      <pre class="code">{against}</pre>
      <Scroll>
        <table class="rows small changes after">
          <thead>
            <tr>
              <th>Class</th>
              <th class="n">Predicted</th>
              <th class="n">Measured</th>
              <th class="n">Difference</th>
              <th class="wide" />
              <th>Advice</th>
            </tr>
          </thead>
          <tbody>
            {r.gap.map((one) => (
              <tr key={`${one.kind} ${one.class}`}>
                <td>{capital(one.class)}</td>
                <td class="n">{time(v(one.predicted))}</td>
                <td class="n">{time(v(one.measured))}</td>
                <td class="n">{written(v(one.difference))}</td>
                <td class="wide">
                  <Track
                    value={v(one.difference)}
                    least={-most}
                    most={most}
                    fill={v(one.difference) > 0 ? "var(--s2)" : "var(--s7)"}
                  />
                </td>
                <td class="muted wrapped">{one.remedy ? sentence(one.remedy) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}

/** The request that the profile's own shapes imply. */
const Offer = ({ command }: { command: string }): JSX.Element => (
  <Card
    title="What ran, inferred from shapes"
    end={
      <button type="button" class="btn" onClick={() => change({ against: command.replace(/^assay /, "") })}>
        Compare with its prediction
      </button>
    }
  >
    <pre class="code">{command}</pre>
  </Card>
);
