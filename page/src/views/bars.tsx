// Memory and time are one figure: a stacked bar, an ink tick (capacity, ideal hardware), the interval as a whisker below.
import type { JSX } from "preact";
import type { Interval } from "../engine/schema";
import { Chart, Drawing, Label, Line, Mark } from "../draw/svg";
import { clamp, linear, stack } from "../draw/scale";
import type { Part } from "../draw/scale";
import { Num, Swatch } from "../parts/basics";
import type { Node } from "../parts/basics";
import { v } from "../engine/request";

interface Limit {
  at: number;
  label: string;
  /** Beyond it is too much. */
  hard: boolean;
}
export function StackedBar({
  parts,
  total,
  interval,
  limit,
  label,
}: {
  parts: readonly Part[];
  total: number;
  interval?: Interval;
  limit?: Limit;
  label: string;
}): JSX.Element {
  const high = interval ? v(interval.high) : total;
  return (
    <Chart
      draw={(width) => {
        const end = Math.max(limit?.hard ? limit.at : 0, high, total) * 1.04;
        const x = linear(0, end, 0, width - 1);
        const y = 26;
        const height = 28;
        const under = y + height + 11;
        const over = limit?.hard && total > limit.at;
        const cx = limit ? x(limit.at) : 0;
        return (
          <Drawing width={width} height={interval ? 74 : 60} label={label}>
            {limit?.hard && (
              <rect x={0} y={y} width={x(Math.min(limit.at, end))} height={height} rx={2} fill="var(--raised)" />
            )}
            {stack(parts, x).map((piece) => (
              <rect key={piece.name} x={piece.x} y={y} width={piece.width} height={height} fill={piece.fill}>
                <title>{piece.name}</title>
              </rect>
            ))}
            {over && <rect x={cx} y={y} width={x(total) - cx} height={height} fill="url(#stripe-bad)" opacity={0.85} />}
            {interval && (
              <g stroke="var(--ink)" stroke-width={1.5}>
                <line x1={x(v(interval.low))} x2={x(high)} y1={under} y2={under} />
                {[v(interval.low), high].map((end) => (
                  <line key={end} x1={x(end)} x2={x(end)} y1={under - 4} y2={under + 4} />
                ))}
                {limit?.hard && high > limit.at && (
                  <line
                    x1={Math.max(cx, x(v(interval.low)))}
                    x2={x(high)}
                    y1={under}
                    y2={under}
                    stroke="var(--bad)"
                    stroke-width={3}
                  />
                )}
              </g>
            )}
            {interval && <Mark shape="circle" x={x(total)} y={under} r={3.5} fill="var(--ink)" />}
            {limit && <Line x1={cx} y1={y - 8} x2={cx} y2={y + height + 6} stroke="var(--ink)" width={2} />}
            {limit && (
              <Label
                x={clamp(cx > width * 0.55 ? cx - 6 : cx + 6, 0, width)}
                y={y - 9}
                role="b"
                anchor={cx > width * 0.55 ? "end" : "start"}
              >
                {limit.label}
              </Label>
            )}
          </Drawing>
        );
      }}
    />
  );
}

export const PartList = ({
  parts,
  write,
  node,
}: {
  parts: readonly Part[];
  write: (x: number) => string;
  node: (part: Part) => string | Node | undefined;
}): JSX.Element => (
  <ul class="parts">
    {parts
      .filter((part) => part.value > 0)
      .map((part) => (
        <li key={part.name}>
          <Swatch fill={part.fill} />
          <span>{part.name}</span>
          <b>
            <Num of={node(part)}>{write(part.value)}</Num>
          </b>
        </li>
      ))}
  </ul>
);

/** An estimate on its interval: a band, a tick, and a hollow mark for ideal hardware. */
export function Strip({
  low,
  high,
  estimate,
  ideal,
}: {
  low: number;
  high: number;
  estimate: number;
  ideal: number;
}): JSX.Element {
  return (
    <Chart
      draw={(full) => {
        const width = Math.min(full, 220);
        const x = linear(Math.min(ideal, low) * 0.94, Math.max(high, estimate) * 1.03, 4, width - 4);
        return (
          <Drawing width={width} height={16} label="the estimate on its interval, and ideal hardware as a hollow mark">
            <Line x1={4} y1={8} x2={width - 4} y2={8} />
            <rect x={x(low)} y={4} width={x(high) - x(low)} height={8} rx={2} fill="var(--accent)" opacity={0.28} />
            <rect x={x(estimate) - 1.25} y={1} width={2.5} height={14} fill="var(--accent)" />
            <Mark
              shape="diamond"
              x={x(ideal)}
              y={8}
              r={3}
              fill="var(--surface)"
              stroke="var(--muted)"
              stroke-width={1.3}
            />
          </Drawing>
        );
      }}
    />
  );
}
