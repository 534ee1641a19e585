import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, refused } from "../../engine/ask";
import { asQuery, v } from "../../engine/request";
import type { Arguments, Quantity, TrainResults } from "../../engine/schema";
import { Chart, Drawing, Label } from "../../draw/svg";
import { linear, stack } from "../../draw/scale";
import { Card } from "../../parts/card";
import { Between, Plan, Swatch, Tag } from "../../parts/basics";
import { Scroll } from "../../parts/scroll";
import { bytes, percent, quantity, sentence, si, signed, time, usd } from "../../text/format";
import { change, go, keepLook } from "../../url";
import type { Query } from "../../url";
import { stepParts, trainMemory } from "../words";
import type { Named } from "../words";
import { argumentsOf, pinsOf, strategyText } from "./pins";

interface Pinned {
  pin: string;
  args: Arguments;
  results?: TrainResults;
  wrong?: string;
}
function usePinned(pins: string[]): Pinned[] {
  const [known, set] = useState<Record<string, Pinned>>({});
  const key = pins.join("|");
  useEffect(() => {
    const abort = new AbortController();
    for (const pin of pins) {
      const args = argumentsOf(pin);
      ask({ verb: "train", arguments: args }, abort.signal).then(
        (reply) =>
          set((before) => ({
            ...before,
            [pin]: refused(reply)
              ? { pin, args, wrong: sentence(reply.error.what) }
              : { pin, args, results: reply.results },
          })),
        () => undefined,
      );
    }
    return () => abort.abort();
  }, [key]);
  return pins.map((pin) => known[pin] ?? { pin, args: argumentsOf(pin) });
}

/** Pinned plans side by side, with differences from the first. */
export function CompareCard({ query }: { query: Query }): JSX.Element | null {
  const pins = pinsOf(query);
  const plans = usePinned(pins);
  if (plans.length === 0) return null;
  const first = plans[0]?.results;
  const rows: {
    name: string;
    cell: (r: TrainResults) => JSX.Element | string;
    number?: (r: TrainResults) => number;
  }[] = [
    { name: "Model", cell: (r) => r.model },
    { name: "Cluster", cell: (r) => r.cluster },
    { name: "Plan", cell: (r) => <Plan strategy={strategyText(r)} /> },
    {
      name: "Step",
      cell: (r) => (
        <>
          <b>{time(v(r.step_time.estimate))}</b> <Between interval={r.step_time.interval} share={false} />
        </>
      ),
      number: (r) => v(r.step_time.estimate),
    },
    {
      name: "Tokens/s of a chip",
      cell: (r) => si(v(r.tokens_per_second_per_chip)),
      number: (r) => v(r.tokens_per_second_per_chip),
    },
    { name: "MFU", cell: (r) => percent(r.mfu), number: (r) => r.mfu },
    {
      name: "Memory",
      cell: (r) => (
        <>
          <Tag verdict={r.memory.verdict}>{bytes(v(r.memory.total))}</Tag> of {bytes(v(r.memory.capacity))}
        </>
      ),
      number: (r) => v(r.memory.total),
    },
    {
      name: "Run",
      cell: (r) => (r.training_time ? time(v(r.training_time.estimate)) : "–"),
      number: (r) => v(r.training_time?.estimate),
    },
    { name: "Cost", cell: (r) => (r.cost ? usd(v(r.cost)) : "–"), number: (r) => v(r.cost) },
    { name: "Energy", cell: (r) => (r.energy ? quantity(v(r.energy), "J", 3) : "–"), number: (r) => v(r.energy) },
  ];
  const said = rows.filter(
    (row) =>
      plans.some((plan) => !plan.results) || plans.some((plan) => plan.results && row.cell(plan.results) !== "–"),
  );
  const answered = plans.flatMap((plan) => (plan.results ? [plan.results] : []));
  return (
    <Card
      title="Compare"
      drawing={answered.length > 1}
      note={plans.length > 1 ? "differences from the first" : "pin another plan, also of another cluster"}
      end={
        <button type="button" class="btn quiet" onClick={() => change({ pin: "" }, true)}>
          Clear
        </button>
      }
    >
      {answered.length > 1 && (
        <div class="g2 flat">
          <Bars
            title="Time of a step"
            plans={answered}
            named={stepParts}
            value={(r, key) => (r.breakdown as unknown as Record<string, Quantity | undefined>)[key]}
            total={(r) => r.step_time.estimate}
            write={time}
          />
          <Bars
            title="Memory of a chip"
            plans={answered}
            named={trainMemory}
            value={(r, key) => (r.memory as unknown as Record<string, Quantity | undefined>)[key]}
            total={(r) => r.memory.total}
            write={bytes}
          />
        </div>
      )}
      <Scroll>
        <table class="rows compare">
          <tbody>
            {said.map((row) => (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                {plans.map((plan, i) => {
                  const delta =
                    i > 0 && row.number && first && plan.results
                      ? row.number(plan.results) / row.number(first) - 1
                      : Number.NaN;
                  return (
                    <td key={plan.pin}>
                      {plan.results ? (
                        row.cell(plan.results)
                      ) : plan.wrong && row.name === "Model" ? (
                        <span class="wrong">{plan.wrong}</span>
                      ) : (
                        "…"
                      )}
                      {Number.isFinite(delta) && <span class="muted"> {signed(delta)}</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
            <tr>
              <th scope="row">
                <span class="sr">Actions</span>
              </th>
              {plans.map((plan) => (
                <td key={plan.pin}>
                  <div class="row">
                    <button
                      type="button"
                      class="btn"
                      onClick={() => go({ view: "plan", query: { ...keepLook(query), ...asQuery(plan.args) } })}
                    >
                      Open
                    </button>
                    <button
                      type="button"
                      class="btn quiet"
                      onClick={() => change({ pin: pins.filter((one) => one !== plan.pin).join("|") }, true)}
                    >
                      Unpin
                    </button>
                  </div>
                </td>
              ))}
            </tr>
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}

/** One stacked bar a plan, all on one scale. */
function Bars({
  title,
  plans,
  named,
  value,
  total,
  write,
}: {
  title: string;
  plans: readonly TrainResults[];
  named: readonly Named[];
  value: (results: TrainResults, key: string) => Quantity | undefined;
  total: (results: TrainResults) => Quantity;
  write: (x: number) => string;
}): JSX.Element {
  const rows = plans.map((plan) => ({
    plan,
    total: v(total(plan)),
    parts: named.map(({ key, name, fill }) => ({ name, fill, value: v(value(plan, key)) || 0 })),
  }));
  const longest = Math.max(...rows.map((row) => row.total));
  const used = named.filter((_, i) => rows.some((row) => row.parts[i]!.value > 0.01 * row.total));
  const row = 40;
  return (
    <div>
      <h3>{title}</h3>
      <Chart
        draw={(width) => {
          const x = linear(0, longest, 0, width - 1);
          return (
            <Drawing
              width={width}
              height={row * rows.length}
              label={`${title}: ${rows.map(({ plan, total }) => `${plan.model} on ${plan.cluster} ${write(total)}`).join(", ")}`}
            >
              {rows.map(({ plan, total, parts }, i) => (
                <g key={i}>
                  <Label x={0} y={row * i + 13} role="m">
                    {plan.model} on {plan.cluster}
                  </Label>
                  <Label x={width} y={row * i + 13} role="b" anchor="end">
                    {write(total)}
                  </Label>
                  {stack(parts, x).map((piece) => (
                    <rect
                      key={piece.name}
                      x={piece.x}
                      y={row * i + 18}
                      width={piece.width}
                      height={14}
                      fill={piece.fill}
                    >
                      <title>{piece.name}</title>
                    </rect>
                  ))}
                </g>
              ))}
            </Drawing>
          );
        }}
      />
      <div class="legend">
        {used.map((one) => (
          <span key={one.key}>
            <Swatch fill={one.fill} />
            {one.name}
          </span>
        ))}
      </div>
    </div>
  );
}
