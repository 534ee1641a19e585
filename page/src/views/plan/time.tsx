import type { JSX } from "preact";
import type { Quantity, TrainResults } from "../../engine/schema";
import { v } from "../../engine/request";
import { mix } from "../../draw/svg";
import { Card } from "../../parts/card";
import { Gain, Num, Track } from "../../parts/basics";
import { alike, percent, share, sig, signed, time, timeRange } from "../../text/format";
import { StackedBar } from "../bars";
import { limitFill, limitName, stepParts } from "../words";

export function TimeCard({ results }: { results: TrainResults }): JSX.Element {
  const step = v(results.step_time.estimate);
  const { interval } = results.step_time;
  const breakdown = results.breakdown as unknown as Record<string, Quantity | undefined>;
  const parts = stepParts
    .map((part) => ({ ...part, value: v(breakdown[part.key]) || 0 }))
    .filter((part) => part.value > 0)
    .sort((a, b) => b.value - a.value);
  const write = alike(step, "s");
  const kinds = new Map<string, { time: number; flops: number; peak: number }>();
  for (const row of results.breakdown_by_kind ?? []) {
    if (row.kind.startsWith("net ")) continue;
    const sum = kinds.get(row.kind) ?? { time: 0, flops: 0, peak: 0 };
    sum.time += v(row.time);
    if (row.flops && row.share_of_peak) {
      sum.flops += v(row.flops);
      sum.peak += v(row.time) * row.share_of_peak;
    }
    kinds.set(row.kind, sum);
  }
  const largest = parts[0]?.value ?? step;
  const name: Record<string, string> = {
    products: "Products",
    attention: "Attention",
    "other kernels": "Other kernels",
  };
  return (
    <Card
      title="Where the time goes"
      note="of a step"
      drawing
      table={() => [["part", "seconds"], ...parts.map((part) => [part.name, part.value]), ["step", step]]}
    >
      <StackedBar
        parts={parts}
        total={step}
        interval={interval}
        limit={{
          at: v(results.step_time.lower),
          label: `ideal hardware ${time(v(results.step_time.lower))}`,
          hard: false,
        }}
        label={`step time ${time(step)}${interval ? `, 80 % within ${timeRange(v(interval.low), v(interval.high))}` : ""}`}
      />
      <table class="rows small">
        <thead class="sr">
          <tr>
            <th>Part</th>
            <th>Picture</th>
            <th>Time</th>
            <th>Share</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <>
              <tr key={part.key}>
                <td>{part.name}</td>
                <td class="wide">
                  <Track value={part.value} most={largest} fill={part.fill} />
                </td>
                <td class="n">
                  <Num of={part.derivation}>{write(part.value)}</Num>
                </td>
                <td class="n muted">{share(part.value / step)}</td>
              </tr>
              {part.key === "compute" &&
                [...kinds]
                  .sort((a, b) => b[1].time - a[1].time)
                  .map(([kind, sum]) => (
                    <tr class="sub" key={kind}>
                      <td>{name[kind] ?? kind}</td>
                      <td class="wide">
                        <Track value={sum.time} most={largest} fill={mix("s1", 52)} />
                      </td>
                      <td class="n">{write(sum.time)}</td>
                      <td class="n">{sum.flops > 0 ? `at ${percent(sum.peak / sum.time, 2)} of peak` : ""}</td>
                    </tr>
                  ))}
            </>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

export function LimitsCard({ results, more }: { results: TrainResults; more: TrainResults | undefined }): JSX.Element {
  const limits = results.limits ?? [];
  const longest = Math.max(...limits.map((limit) => v(limit.time)));
  const write = alike(longest, "s");
  const step = v(results.step_time.estimate);
  // only what answers the same plan is shown beside it
  const rates = (more && v(more.step_time.estimate) === step ? (more.sensitivity ?? []) : [])
    .map((rate) => ({ ...rate, gain: rateGain(rate.rate, step, v(rate.step_time_if_doubled)) }))
    .sort((a, b) => Math.abs(b.gain) - Math.abs(a.gain));
  const most = Math.max(0.01, ...rates.map((rate) => rate.gain));
  const least = Math.min(0, ...rates.map((rate) => rate.gain));
  return (
    <Card
      title="Limits of ideal hardware"
      note="the step cannot be faster than the longest"
      table={() => [
        ["limit", "seconds", "distance"],
        ...limits.map((limit) => [limit.limit, v(limit.time), limit.distance]),
        ...rates.map((rate) => [`${rate.rate} doubled`, v(rate.step_time_if_doubled), rate.gain]),
      ]}
    >
      <table class="rows small">
        <thead class="sr">
          <tr>
            <th>Limit</th>
            <th>Picture</th>
            <th>Time</th>
            <th>Distance</th>
          </tr>
        </thead>
        <tbody>
          {limits.map((limit, i) => (
            <tr key={limit.limit}>
              <td>{limitName(limit.limit)}</td>
              <td class="wide">
                <Track value={v(limit.time)} most={longest} fill={limitFill(limit.limit)} />
              </td>
              <td class="n">
                <Num of={i === 0 ? "limit of ideal hardware" : undefined}>{write(v(limit.time))}</Num>
              </td>
              <td class="n muted">{limit.distance <= 1 ? "binds" : `${sig(limit.distance, 2)}× away`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(rates.length > 0 || !more) && (
        <h3 class="under">
          If a rate were twice as high <span class="note">change of tokens/s</span>
        </h3>
      )}
      {rates.length > 0 ? (
        <table class="rows small">
          <thead class="sr">
            <tr>
              <th>Rate</th>
              <th>Picture</th>
              <th>Change of tokens per second</th>
            </tr>
          </thead>
          <tbody>
            {rates.map((rate) => (
              <tr
                key={rate.rate}
                title={
                  rate.limiter_then
                    ? `${rate.rate} times ${sig(rate.break_even_factor ?? 0)}: ${limitName(rate.limiter_then)} limits then`
                    : undefined
                }
              >
                <td>{rate.rate.charAt(0).toUpperCase() + rate.rate.slice(1)}</td>
                <td class="wide">
                  <Gain value={rate.gain} least={least} most={most} />
                </td>
                <td class="n">
                  <Num
                    of={{
                      name: `step time with twice the ${rate.rate}`,
                      value: v(rate.step_time_if_doubled),
                      unit: "s",
                      note: rate.strategy_then
                        ? `From ${sig(rate.takeover_factor ?? 0)} times on another plan is faster: ${rate.strategy_then}`
                        : "The best plan stays the same",
                      formula: `the step priced again with ${rate.rate} doubled`,
                      from: [
                        {
                          name: "elasticity",
                          value: rate.elasticity,
                          unit: "",
                          source: "change of step time in % for 1 % of the rate",
                        },
                      ],
                    }}
                  >
                    {signed(rate.gain)}
                  </Num>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        !more && <p class="muted">Being asked…</p>
      )}
    </Card>
  );
}
// Twice the batch or the sequence is twice the work: tokens per second count.
const rateGain = (rate: string, step: number, doubled: number): number =>
  ((rate === "batch" || rate === "sequence length" ? 2 : 1) * step) / doubled - 1;
