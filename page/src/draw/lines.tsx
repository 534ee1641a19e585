// Curves over one axis: a few series with mark and dash, direct labels at their ends.
import type { JSX } from "preact";
import { apart, linear, logTicks, logarithmic, ticks } from "./scale";
import { Axes, Chart, Drawing, Label, Line, Mark, dashes, points, shapes } from "./svg";

export interface Series {
  name: string;
  colour: string;
  points: (readonly [number, number])[];
}
export interface Scaling {
  title: string;
  unit?: string;
  log?: boolean;
  from?: number;
}
export function Lines({
  series,
  x: across,
  y: up,
  label,
  rule,
}: {
  series: Series[];
  x: Scaling;
  y: Scaling;
  label: string;
  rule?: { at: number; name: string };
}): JSX.Element {
  return (
    <Chart
      draw={(width) => {
        const clean = series
          .map((one) => ({
            ...one,
            points: one.points.filter(
              ([a, b]) => Number.isFinite(a) && Number.isFinite(b) && (!across.log || a > 0) && (!up.log || b > 0),
            ),
          }))
          .filter((one) => one.points.length > 0);
        if (clean.length === 0) return <p class="muted">Nothing to draw.</p>;
        const height = 300;
        const names = Math.min(width * 0.28, 8 + 6.4 * Math.max(...clean.map((one) => one.name.length)));
        const frame = { left: 62, right: width - (clean.length > 1 ? names : 16), top: 28, bottom: height - 46 };
        const xs = clean.flatMap((one) => one.points.map(([a]) => a));
        const ys = [...clean.flatMap((one) => one.points.map(([, b]) => b)), ...(rule ? [rule.at] : [])];
        const [x0, x1] = [across.from ?? Math.min(...xs), Math.max(...xs)];
        const [y0, y1] = up.log
          ? [Math.min(...ys) / 1.3, Math.max(...ys) * 1.3]
          : [up.from ?? Math.min(0, ...ys), Math.max(...ys) * 1.08];
        const x = (across.log ? logarithmic : linear)(x0, x1, frame.left, frame.right);
        const y = (up.log ? logarithmic : linear)(y0, y1, frame.bottom, frame.top);
        const ends = apart(
          clean.map((one) => y(one.points[one.points.length - 1]![1]) + 4),
          15,
          frame.top,
          frame.bottom,
        );
        // The name of the rule goes where the curves leave it most room.
        const named = rule ? 6.6 * rule.name.length : 0;
        const room = (from: number): number =>
          Math.min(
            ...clean.flatMap((one) =>
              one.points
                .filter(([a]) => x(a) > from - 24 && x(a) < from + named + 24)
                .map(([, b]) => Math.abs(y(b) - y(rule!.at) + 10)),
            ),
          );
        const places = [frame.left + 6, (frame.left + frame.right - named) / 2, frame.right - named - 6];
        const place = rule ? places.reduce((best, one) => (room(one) > room(best) ? one : best)) : 0;
        return (
          <Drawing width={width} height={height} label={label}>
            <Axes
              frame={frame}
              x={x}
              y={y}
              xTicks={across.log ? logTicks(x0, x1, width < 520 ? 4 : 8) : ticks(x0, x1, width < 520 ? 4 : 6)}
              yTicks={up.log ? logTicks(y0, y1, 7) : ticks(y0, y1, 5)}
              xUnit={across.unit}
              yUnit={up.unit}
              xTitle={across.title}
              yTitle={up.title}
              upright={across.log}
            />
            {rule && (
              <Line
                x1={frame.left}
                x2={frame.right}
                y1={y(rule.at)}
                y2={y(rule.at)}
                stroke="var(--ink)"
                dash="5 3"
                width={1.25}
              />
            )}
            {clean.map((one, i) => (
              <g key={one.name}>
                <polyline
                  points={points(one.points.map(([a, b]) => [x(a), y(b)] as const))}
                  fill="none"
                  stroke={one.colour}
                  stroke-width={2.25}
                  stroke-dasharray={dashes[i % 4]}
                />
                {one.points.length <= 24 &&
                  one.points.map(([a, b], k) => (
                    <Mark key={k} shape={shapes[i % 4]!} x={x(a)} y={y(b)} r={3} fill={one.colour} />
                  ))}
                {clean.length > 1 && (
                  <Label x={frame.right + 8} y={ends[i]!} halo>
                    {one.name}
                  </Label>
                )}
              </g>
            ))}
            {rule && (
              <Label x={place} y={y(rule.at) - 6} role="b" halo>
                {rule.name}
              </Label>
            )}
          </Drawing>
        );
      }}
    />
  );
}
