import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Axes, Chart, Drawing, Label, Mark, points as list } from "../../draw/svg";
import { apart, logTicks, logarithmic } from "../../draw/scale";
import { Card } from "../../parts/card";
import { v } from "../../engine/request";
import { int, si, time } from "../../text/format";
import type { Chip } from ".";

export function RoofChart({
  chips,
  letter,
  size,
  onSize,
}: {
  chips: Chip[];
  letter: string | null;
  size: number;
  onSize: (size: number, done: boolean) => void;
}): JSX.Element {
  const shown = chips.filter((chip) => chip.at && chip.at.intensity);
  const main = shown[0];
  const dragging = useRef(false);
  return (
    <Card
      title="Roofline"
      note={main ? `all memory levels of ${main.name}; ${main.at!.memory.toUpperCase()} of the others` : undefined}
      drawing
      table={() => [
        ["chip", letter ?? "size", "intensity", "flops_per_s", "time_s"],
        ...chips.flatMap((chip) =>
          chip.sweep.map((one) => [chip.id, one.size, one.intensity, one.achieved, one.estimate]),
        ),
      ]}
    >
      <Chart
        draw={(width) => {
          if (!main) return <p class="muted">No chip can run it.</p>;
          const small = width < 560;
          const height = small ? 340 : 420;
          const frame = { left: 62, right: width - (small ? 12 : 20), top: 28, bottom: height - 46 };
          const peaks = shown.map((chip) => v(chip.at!.peak));
          const critical = shown.map((chip) => v(chip.at!.critical_intensity));
          const seen = shown.map((chip) => v(chip.at!.intensity));
          const swept = main.sweep.map((one) => one.intensity).filter(Number.isFinite);
          const x0 = Math.max(0.05, Math.min(...critical, ...seen, ...swept) / 2);
          const x1 = Math.max(...critical, ...seen, ...swept, 1000) * 3;
          const y1 = Math.max(...peaks) * 2.2;
          const y0 = Math.max(
            Math.min(
              ...shown.map((chip, i) =>
                Math.min(v(chip.at!.bandwidth) * x0, v(chip.at!.flops) / v(chip.at!.time.estimate), peaks[i]!),
              ),
            ) / 2,
            y1 / 1e9,
          );
          const x = logarithmic(x0, x1, frame.left, frame.right);
          const y = logarithmic(y0, y1, frame.bottom, frame.top);
          const labels = apart(
            peaks.map((peak) => y(peak) - 7),
            15,
            frame.top - 4,
            frame.bottom,
          );
          const near = (clientX: number, svg: Element): number | null => {
            const at = clientX - svg.getBoundingClientRect().left;
            const best = main.sweep.reduce<{ size: number; far: number } | null>((found, one) => {
              const far = Math.abs(x(one.intensity) - at);
              return !found || far < found.far ? { size: one.size, far } : found;
            }, null);
            return best?.size ?? null;
          };
          const move = (event: PointerEvent, done: boolean): void => {
            const svg = (event.currentTarget as Element).closest("svg");
            const next = svg && near(event.clientX, svg);
            if (next && (next !== size || done)) onSize(next, done);
          };
          return (
            <Drawing
              width={width}
              height={height}
              interactive
              label={`roofline of ${shown.map((chip) => chip.name).join(", ")}`}
            >
              <Axes
                frame={frame}
                x={x}
                y={y}
                xTicks={logTicks(x0, x1, small ? 5 : 9)}
                yTicks={logTicks(y0, y1, 7)}
                xTitle="arithmetic intensity, FLOP/B"
                yTitle="FLOP/s"
                upright
              />
              {main
                .at!.levels.filter((level) => level.name !== main.at!.memory)
                .map((level, i) => {
                  const bandwidth = v(level.bandwidth);
                  const along = [0.5, 0.42, 0.62, 0.3, 0.72][i % 5]!; // levels of like bandwidth keep their names apart
                  const a = Math.max(x0, y0 / bandwidth);
                  const b = Math.min(x1, v(main.at!.peak) / bandwidth);
                  if (!(a < b)) return null;
                  const [ax, ay, bx, by] = [x(a), y(a * bandwidth), x(b), y(b * bandwidth)];
                  const angle = (Math.atan2(by - ay, bx - ax) * 180) / Math.PI;
                  return (
                    <g key={level.name}>
                      <line
                        x1={ax}
                        y1={ay}
                        x2={bx}
                        y2={by}
                        stroke="var(--edge)"
                        stroke-width={1.25}
                        stroke-dasharray="3 3"
                      />
                      <text
                        transform={`translate(${(ax + along * (bx - ax)).toFixed(1)},${(ay + along * (by - ay)).toFixed(1)}) rotate(${angle.toFixed(1)})`}
                        dy={-5}
                        text-anchor="middle"
                        class="m halo"
                      >
                        {level.name.toUpperCase()}
                        {small ? "" : ` ${si(bandwidth, "B/s")}`}
                      </text>
                    </g>
                  );
                })}
              {[...shown].reverse().map((chip) => {
                const peak = v(chip.at!.peak);
                const bandwidth = v(chip.at!.bandwidth);
                const knee = peak / bandwidth;
                const a = Math.max(x0, y0 / bandwidth);
                return (
                  <g key={chip.id}>
                    <polyline
                      points={list([
                        [x(a), y(a * bandwidth)],
                        [x(knee), y(peak)],
                        [x(x1), y(peak)],
                      ])}
                      fill="none"
                      stroke={chip.colour}
                      stroke-width={2.25}
                      stroke-dasharray={chip.dash}
                    />
                    <line
                      x1={x(knee)}
                      x2={x(knee)}
                      y1={y(peak)}
                      y2={frame.bottom}
                      stroke={chip.colour}
                      stroke-dasharray="2 4"
                      opacity={0.8}
                    />
                  </g>
                );
              })}
              {shown.map((chip, i) => (
                <Label key={chip.id} x={frame.right} y={labels[i]!} role="b" anchor="end" halo>
                  {small ? chip.id : `${chip.id} ${si(peaks[i], "FLOP/s")}`}
                </Label>
              ))}
              {main.sweep.length > 1 && (
                <polyline
                  points={list(
                    main.sweep
                      .filter((one) => Number.isFinite(one.intensity))
                      .map((one) => [x(one.intensity), y(Math.max(one.achieved, y0))] as const),
                  )}
                  fill="none"
                  stroke={main.colour}
                  stroke-width={1.5}
                  opacity={0.5}
                />
              )}
              {shown.map((chip) => {
                const at = chip.at!;
                const px = x(v(at.intensity));
                const flops = v(at.flops);
                return (
                  <g key={chip.id}>
                    {at.time.interval && (
                      <line
                        x1={px}
                        x2={px}
                        y1={y(flops / v(at.time.interval.low))}
                        y2={y(flops / v(at.time.interval.high))}
                        stroke={chip.colour}
                        stroke-width={5}
                        opacity={0.35}
                      />
                    )}
                    <Mark
                      shape={chip.shape}
                      x={px}
                      y={y(flops / v(at.time.lower))}
                      r={4.5}
                      fill="var(--surface)"
                      stroke={chip.colour}
                      stroke-width={1.8}
                    />
                    <Mark
                      shape={chip.shape}
                      x={px}
                      y={y(flops / v(at.time.estimate))}
                      r={6.5}
                      fill={chip.colour}
                      stroke="var(--surface)"
                      stroke-width={1.5}
                    />
                  </g>
                );
              })}
              {letter && main.sweep.length > 1 && (
                <circle
                  class="hit grab"
                  cx={x(v(main.at!.intensity))}
                  cy={y(v(main.at!.flops) / v(main.at!.time.estimate))}
                  r={16}
                  fill="transparent"
                  tabIndex={0}
                  role="slider"
                  aria-label={`${letter} of the point`}
                  aria-valuemin={1}
                  aria-valuemax={65536}
                  aria-valuenow={size}
                  aria-valuetext={`${letter} = ${int(size)}, ${time(v(main.at!.time.estimate))}`}
                  onKeyDown={(event) => {
                    const by =
                      event.key === "ArrowRight" || event.key === "ArrowUp"
                        ? 2
                        : event.key === "ArrowLeft" || event.key === "ArrowDown"
                          ? 0.5
                          : 0;
                    if (!by) return;
                    event.preventDefault();
                    onSize(Math.min(65536, Math.max(1, Math.round(size * by))), true);
                  }}
                  onPointerDown={(event) => {
                    dragging.current = true;
                    (event.currentTarget as Element).setPointerCapture(event.pointerId);
                  }}
                  onPointerMove={(event) => dragging.current && move(event, false)}
                  onPointerUp={(event) => {
                    if (dragging.current) move(event, true);
                    dragging.current = false;
                  }}
                />
              )}
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>
          <svg width="14" height="12" aria-hidden="true">
            <circle cx="7" cy="6" r="4.5" fill="var(--muted)" />
          </svg>
          estimate with its interval
        </span>
        <span>
          <svg width="14" height="12" aria-hidden="true">
            <circle cx="7" cy="6" r="4" fill="var(--surface)" stroke="var(--muted)" stroke-width="1.6" />
          </svg>
          ideal hardware
        </span>
        {letter && <span>thin line: the estimate as {letter} grows</span>}
      </div>
    </Card>
  );
}
