import type { JSX } from "preact";
import type { Quantity, ServeResults } from "../../engine/schema";
import { v } from "../../engine/request";
import { Chart, Drawing, Line, Mark, mix } from "../../draw/svg";
import { linear } from "../../draw/scale";
import { Card } from "../../parts/card";
import { Tag } from "../../parts/basics";
import { Scroll } from "../../parts/scroll";
import { setTrace } from "../../parts/drop";
import { int, percent, sig, time } from "../../text/format";
import { said } from "../../text/said";
import type { Limits } from "./front";

type Load = NonNullable<ServeResults["load"]>;
interface Percentiles {
  mean: Quantity;
  p50: Quantity;
  p90: Quantity;
  p99: Quantity;
}
const marks = [
  ["p50", "circle"],
  ["p90", "square"],
  ["p99", "diamond"],
] as const;

function Spread({ of, limit }: { of: Percentiles; limit: number }): JSX.Element {
  const far = Math.max(v(of.p99), Number.isFinite(limit) ? limit : 0) * 1.1;
  return (
    <Chart
      draw={(width) => {
        const x = linear(0, far, 5, width - 5);
        return (
          <Drawing width={width} height={24} label="percentiles against the limit">
            <Line x1={4} y1={12} x2={width - 4} y2={12} />
            <rect
              x={x(v(of.p50))}
              y={9}
              width={Math.max(0, x(v(of.p99)) - x(v(of.p50)))}
              height={6}
              rx={3}
              fill={mix("s1", 40)}
            />
            {marks.map(([key, shape]) => (
              <Mark
                key={key}
                shape={shape}
                x={x(v(of[key]))}
                y={12}
                r={4.5}
                fill={v(of[key]) > limit ? "var(--bad)" : "var(--s1)"}
                stroke="var(--surface)"
                stroke-width={1}
              />
            ))}
            {Number.isFinite(limit) && (
              <Line x1={x(limit)} y1={1} x2={x(limit)} y2={23} stroke="var(--ink)" width={1.5} dash="4 3" />
            )}
          </Drawing>
        );
      }}
    />
  );
}

/** A log of requests that was dropped. */
export interface Trace {
  name: string;
  wrong?: string;
}

export function LoadCard({
  load,
  trace,
  limits,
  strategy,
  batch,
}: {
  load: Load | undefined;
  trace: Trace | null;
  limits: Limits;
  strategy: string;
  batch: number;
}): JSX.Element {
  const rows: [string, Percentiles | undefined, number][] = load
    ? [
        ["First token", load.time_to_first_token, limits.ttft],
        ["Per token", load.time_per_token, limits.tpot],
        ["First token, simulated", load.simulated?.time_to_first_token, limits.ttft],
        ["Per token, simulated", load.simulated?.time_per_token, limits.tpot],
      ]
    : [];
  const bounded = Number.isFinite(limits.ttft) || Number.isFinite(limits.tpot);
  const good = load && rows.slice(0, 2).every(([, of, limit]) => of && !(v(of.p99) > limit));
  return (
    <Card
      title="Under load"
      end={
        trace && (
          <button type="button" class="btn quiet" onClick={() => setTrace(null)}>
            Without the log
          </button>
        )
      }
      note={
        load
          ? `${sig(load.requests_per_second)} requests/s ${trace ? `as in ${trace.name}` : "at random"}, ${strategy}, at most ${int(batch)} sequences`
          : undefined
      }
      table={
        load &&
        (() => [
          ["latency", "mean_s", "p50_s", "p90_s", "p99_s", "limit_s"],
          ...rows
            .filter(([, of]) => of)
            .map(([name, of, limit]) => [
              name,
              v(of!.mean),
              v(of!.p50),
              v(of!.p90),
              v(of!.p99),
              Number.isFinite(limit) ? limit : null,
            ]),
        ])
      }
    >
      {trace?.wrong ? (
        <p class="wrong">{said(trace.wrong)}</p>
      ) : !load ? (
        <p class="muted">Choose how many requests arrive per second, or drop a log of requests.</p>
      ) : !load.stable ? (
        <p>
          <Tag verdict="no">Too many requests</Tag> It saturates at {sig(load.saturation_requests_per_second)}{" "}
          requests/s{load.copies_needed ? `; ${int(load.copies_needed)} such servers would do` : ""}.
        </p>
      ) : (
        <>
          <Scroll>
            <table class="rows small fit">
              <thead>
                <tr>
                  <th>
                    <span class="sr">Latency</span>
                  </th>
                  <th class="n">p50</th>
                  <th class="n">p90</th>
                  <th class="n">p99</th>
                  <th class="n">Limit</th>
                  <th class="hide-s">
                    <span class="sr">Picture</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows
                  .filter(([, of]) => of)
                  .map(([name, of, limit]) => (
                    <tr key={name} class={name.endsWith("simulated") ? "sub" : ""}>
                      <td>{name}</td>
                      {marks.map(([key]) => (
                        <td key={key} class={`n${v(of![key]) > limit ? " wrong" : ""}`}>
                          {v(of![key]) > limit ? "✕ " : ""}
                          {time(v(of![key]))}
                        </td>
                      ))}
                      <td class="n muted">{Number.isFinite(limit) ? time(limit, limit < 1 ? 2 : 3) : "none"}</td>
                      <td class="hide-s spread-cell">
                        <Spread of={of!} limit={limit} />
                      </td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </Scroll>
          {bounded && (
            <p class="after">
              <Tag verdict={good ? "fits" : "no"}>
                {good ? "99 of 100 requests meet the limits" : "more than 1 in 100 requests misses a limit"}
              </Tag>
            </p>
          )}
          <p class="after muted">
            Busy {percent(load.utilisation, 2)} of the time, {sig(load.sequences_in_flight, 2)} sequences in flight;
            saturates at {sig(load.saturation_requests_per_second)} requests/s.
            {load.most_requests_per_second_that_meet
              ? ` Up to ${sig(load.most_requests_per_second_that_meet)} requests/s meet the limits.`
              : ""}
            {load.simulated
              ? ` Simulated with ${int(load.simulated.requests)} requests, seed ${load.simulated.seed}.`
              : ""}
          </p>
        </>
      )}
    </Card>
  );
}
