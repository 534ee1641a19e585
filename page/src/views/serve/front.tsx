import type { JSX } from "preact";
import { Axes, Chart, Drawing, Label, Line, Mark, points as pointList } from "../../draw/svg";
import { logTicks, logarithmic } from "../../draw/scale";
import type { Interval } from "../../engine/schema";
import { Card } from "../../parts/card";
import { v } from "../../engine/request";
import { int, percent, sig, time } from "../../text/format";
import { change } from "../../url";
import type { Query } from "../../url";

export interface Point {
  batch: number;
  latency: number;
  throughput: number;
  first: number;
  strategy: string;
  limiter: string;
  cost: number | null;
  interval?: Interval;
}
export interface Curve {
  name: string;
  points: Point[];
}
export interface Limits {
  tpot: number;
  ttft: number;
}
export const meets = (point: { latency: number; first: number }, { tpot, ttft }: Limits): boolean =>
  !(point.latency > tpot) && !(point.first > ttft);

export function FrontCard({
  front,
  others,
  limits,
  chosen,
  at,
}: {
  front: Point[];
  others: Curve[];
  limits: Limits;
  chosen: Point;
  at: Query;
}): JSX.Element {
  const choose = (batch: number): void => change({ ...at, batch: String(batch), open: "" });
  return (
    <Card
      title="Latency against throughput"
      note="each point is the best plan of its batch; the band is the 80 % interval"
      drawing
      table={() => [
        [
          "batch",
          "time_per_token_s",
          "low_s",
          "high_s",
          "tokens_per_second_per_chip",
          "time_to_first_token_s",
          "plan",
          "limiter",
          "usd_per_million_tokens",
        ],
        ...front.map((p) => [
          p.batch,
          p.latency,
          v(p.interval?.low),
          v(p.interval?.high),
          p.throughput,
          p.first,
          p.strategy,
          p.limiter,
          p.cost,
        ]),
      ]}
      end={
        at.batch ? (
          <button type="button" class="btn quiet" onClick={() => change({ ...at, batch: "" })}>
            Best point
          </button>
        ) : undefined
      }
    >
      <Chart
        draw={(width) => {
          const small = width < 560;
          const height = small ? 330 : 400;
          const frame = { left: 56, right: width - (small ? 14 : 28), top: 26, bottom: height - 46 };
          const all = [...front, ...others.flatMap((curve) => curve.points), chosen];
          const latencies = [
            ...all.map((p) => p.latency),
            ...front.flatMap((p) => (p.interval ? [v(p.interval.low), v(p.interval.high)] : [])),
            ...(Number.isFinite(limits.tpot) ? [limits.tpot] : []),
          ];
          const [x0, x1] = [Math.min(...latencies) / 1.15, Math.max(...latencies) * 1.25];
          const [y0, y1] = [
            Math.min(...all.map((p) => p.throughput)) / 1.3,
            Math.max(...all.map((p) => p.throughput)) * 1.3,
          ];
          const x = logarithmic(x0, x1, frame.left, frame.right);
          const y = logarithmic(y0, y1, frame.bottom, frame.top);
          const line = (list: Point[]): string => pointList(list.map((p) => [x(p.latency), y(p.throughput)] as const));
          const band = front.filter((p) => p.interval);
          const labelled = front
            .filter(
              (p, i) =>
                p !== chosen &&
                (i === 0 || i === front.length - 1 || [8, 32, 128, 512].includes(p.batch)) &&
                Math.hypot(x(p.latency) - x(chosen.latency), y(p.throughput) - y(chosen.throughput)) > 34,
            )
            .filter(
              (p, i, list) =>
                i === 0 || i === list.length - 1 || Math.abs(x(p.latency) - x(list[list.length - 1]!.latency)) > 40,
            );
          return (
            <Drawing
              width={width}
              height={height}
              interactive
              label={`latency against throughput; chosen batch ${chosen.batch}: ${time(chosen.latency)} per token, ${sig(chosen.throughput)} tokens/s a chip`}
            >
              {Number.isFinite(limits.tpot) && limits.tpot < x1 && (
                <rect
                  x={x(limits.tpot)}
                  y={frame.top}
                  width={frame.right - x(limits.tpot)}
                  height={frame.bottom - frame.top}
                  fill="url(#stripe-muted)"
                />
              )}
              <Axes
                frame={frame}
                x={x}
                y={y}
                xTicks={logTicks(x0, x1, small ? 4 : 9)}
                yTicks={logTicks(y0, y1, 7)}
                xUnit="s"
                xTitle="time per token"
                yTitle="tokens/s a chip"
                upright
              />
              {others.map((curve) => {
                const end = curve.points[curve.points.length - 1];
                return (
                  <g key={curve.name}>
                    <polyline
                      points={line(curve.points)}
                      fill="none"
                      stroke="var(--edge)"
                      stroke-width={1.25}
                      opacity={0.75}
                    />
                    {end && (
                      <Label
                        x={Math.min(x(end.latency) + 6, frame.right)}
                        y={y(end.throughput) + (small || x(end.latency) > frame.right - 90 ? -8 : 4)}
                        role="m"
                        halo
                        anchor={x(end.latency) > frame.right - 90 ? "end" : "start"}
                      >
                        {curve.name}
                      </Label>
                    )}
                  </g>
                );
              })}
              {band.length > 1 && (
                <polygon
                  points={pointList([
                    ...band.map((p) => [x(v(p.interval?.low)), y(p.throughput)] as const),
                    ...[...band].reverse().map((p) => [x(v(p.interval?.high)), y(p.throughput)] as const),
                  ])}
                  fill="var(--s1)"
                  opacity={0.14}
                />
              )}
              <polyline points={line(front)} fill="none" stroke="var(--s1)" stroke-width={2} />
              {front.map((p, i) => {
                const text = `batch ${p.batch}: ${time(p.latency)} per token, ${sig(p.throughput)} tokens/s a chip, first token ${time(p.first)}, ${p.strategy}`;
                return (
                  <g key={i} class="hit" onClick={() => choose(p.batch)}>
                    <circle cx={x(p.latency)} cy={y(p.throughput)} r={10} fill="transparent" />
                    <Mark
                      shape="circle"
                      x={x(p.latency)}
                      y={y(p.throughput)}
                      r={4}
                      fill={meets(p, limits) ? "var(--s1)" : "var(--surface)"}
                      stroke="var(--s1)"
                      stroke-width={1.6}
                    />
                    <title>{text}</title>
                  </g>
                );
              })}
              {labelled.map((p) => (
                <Label
                  key={p.batch}
                  x={x(p.latency) + (p === front[0] && x(p.latency) < frame.left + 60 ? 9 : -8)}
                  y={y(p.throughput) + (p === front[0] && x(p.latency) < frame.left + 60 ? 5 : -7)}
                  role="m"
                  anchor={p === front[0] && x(p.latency) < frame.left + 60 ? "start" : "end"}
                  halo
                >
                  {p === front[0]
                    ? `batch ${p.batch}`
                    : p === front[front.length - 1] && !small
                      ? `last that fits: ${int(p.batch)}`
                      : int(p.batch)}
                </Label>
              ))}
              {Number.isFinite(limits.tpot) && (
                <Line
                  x1={x(limits.tpot)}
                  y1={frame.top}
                  x2={x(limits.tpot)}
                  y2={frame.bottom}
                  stroke="var(--ink)"
                  width={1.5}
                  dash="5 3"
                />
              )}
              {Number.isFinite(limits.tpot) && (
                <Label
                  x={x(limits.tpot) + (x(limits.tpot) > frame.right - 90 ? -6 : 6)}
                  y={frame.bottom - 8}
                  role="b"
                  halo
                  anchor={x(limits.tpot) > frame.right - 90 ? "end" : "start"}
                >{`${time(limits.tpot, 2)} limit`}</Label>
              )}
              {chosen.interval && (
                <Line
                  x1={x(v(chosen.interval.low))}
                  y1={y(chosen.throughput)}
                  x2={x(v(chosen.interval.high))}
                  y2={y(chosen.throughput)}
                  stroke="var(--ink)"
                  width={1.5}
                />
              )}
              <Mark
                shape="circle"
                x={x(chosen.latency)}
                y={y(chosen.throughput)}
                r={7}
                fill="var(--ink)"
                stroke="var(--surface)"
                stroke-width={2}
              />
              <Label
                x={x(chosen.latency) - 12}
                y={y(chosen.throughput) - 12}
                role="b"
                anchor="end"
                halo
              >{`batch ${int(chosen.batch)}`}</Label>
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>
          <svg width="12" height="12" aria-hidden="true">
            <circle cx="6" cy="6" r="4" fill="var(--s1)" />
          </svg>
          meets the limits
        </span>
        <span>
          <svg width="12" height="12" aria-hidden="true">
            <circle cx="6" cy="6" r="4" fill="var(--surface)" stroke="var(--s1)" stroke-width="1.6" />
          </svg>
          misses one
        </span>
        {Number.isFinite(limits.tpot) && (
          <span>
            <svg width="14" height="12" aria-hidden="true">
              <rect width="14" height="12" fill="url(#stripe-muted)" />
            </svg>
            too slow per token
          </span>
        )}
        {others.length > 0 && <span>grey: other prompt lengths</span>}
        <span class="sr">{percent(0.8, 2)} interval as a band</span>
      </div>
    </Card>
  );
}
