import type { JSX } from "preact";
import { clamp, histogram, linear, logTicks, logarithmic } from "../../draw/scale";
import { Axes, Chart, Drawing, Label, Line, Mark, mix } from "../../draw/svg";
import type { Shape } from "../../draw/svg";
import { v } from "../../engine/request";
import type { ValidateResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { Select } from "../../parts/fields";
import { int, percent, quantity, thin } from "../../text/format";

export interface Family {
  name: string;
  chips: RegExp;
  shape: Shape;
  colour: string;
}
type Case = NonNullable<ValidateResults["cases"]>[number];
export interface Row extends Case {
  m: number;
  p: number;
  family: Family;
}

export function Scatter({
  rows,
  chosen,
  choose,
  present,
}: {
  rows: Row[];
  chosen: Row | undefined;
  choose: (id: string) => void;
  present: Family[];
}): JSX.Element {
  const unit = rows[0]?.measured.unit ?? "s";
  return (
    <Card
      title="Predicted against measured"
      note="click a point for its request"
      drawing
      table={() => [
        ["id", "group", "measured", "predicted", "low", "high", "inside", "unit"],
        ...rows.map((row) => [
          row.id,
          row.group,
          row.m,
          row.p,
          v(row.interval?.low),
          v(row.interval?.high),
          row.covered ? 1 : 0,
          unit,
        ]),
      ]}
    >
      <Chart
        draw={(width) => {
          if (rows.length === 0) return <p class="muted">Nothing to show.</p>;
          const height = width < 560 ? width * 0.95 : Math.min(600, width * 0.74);
          const frame = { left: 62, right: width - 14, top: 28, bottom: height - 46 };
          const all = rows.flatMap((row) => [row.m, row.p]);
          const [d0, d1] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
          const x = logarithmic(d0, d1, frame.left, frame.right);
          const y = logarithmic(d0, d1, frame.bottom, frame.top);
          const band = (k: number): string =>
            [
              [d0, d0 * (1 + k)],
              [d1, d1 * (1 + k)],
              [d1, d1 / (1 + k)],
              [d0, d0 / (1 + k)],
            ]
              .map(([a, b]) => `${x(a!).toFixed(1)},${y(b!).toFixed(1)}`)
              .join(" ");
          const marks = logTicks(d0, d1, width < 560 ? 5 : 8);
          return (
            <Drawing
              width={width}
              height={height}
              interactive
              label={`${rows.length} measurements, predicted against measured`}
            >
              <Axes
                frame={frame}
                x={x}
                y={y}
                xTicks={marks}
                yTicks={marks}
                xUnit={unit}
                yUnit={unit}
                xTitle="measured"
                yTitle="predicted"
                upright
              />
              <clipPath id="inside">
                <rect x={frame.left} y={frame.top} width={frame.right - frame.left} height={frame.bottom - frame.top} />
              </clipPath>
              <g clip-path="url(#inside)">
                <polygon points={band(0.2)} fill="var(--muted)" opacity={0.12} />
                <polygon points={band(0.1)} fill="var(--muted)" opacity={0.14} />
                <Line x1={x(d0)} y1={y(d0)} x2={x(d1)} y2={y(d1)} stroke="var(--ink)" width={1} />
              </g>
              {[...rows]
                .sort((a, b) => Number(b.covered) - Number(a.covered))
                .map((row) => (
                  <Mark
                    key={row.id}
                    class="hit"
                    shape={row.family.shape}
                    x={x(row.m)}
                    y={y(row.p)}
                    r={3.6}
                    fill={row.covered ? `var(--${row.family.colour})` : "var(--surface)"}
                    fill-opacity={row.covered ? 0.6 : 1}
                    stroke={row.covered ? "none" : `var(--${row.family.colour})`}
                    stroke-width={1.5}
                    onClick={() => choose(row.id)}
                  >
                    <title>{`${row.group}: ${quantity(row.m, unit, 3)} measured, ${quantity(row.p, unit, 3)} predicted`}</title>
                  </Mark>
                ))}
              {chosen?.interval && (
                <Line
                  x1={x(chosen.m)}
                  x2={x(chosen.m)}
                  y1={y(v(chosen.interval.low))}
                  y2={y(v(chosen.interval.high))}
                  stroke="var(--ink)"
                  width={2}
                />
              )}
              {chosen && (
                <Mark
                  shape="circle"
                  x={x(chosen.m)}
                  y={y(chosen.p)}
                  r={9}
                  fill="none"
                  stroke="var(--ink)"
                  stroke-width={2}
                />
              )}
            </Drawing>
          );
        }}
      />
      <div class="legend">
        {present.map((family) => (
          <span key={family.name}>
            <svg width="14" height="12" aria-hidden="true">
              <Mark shape={family.shape} x={7} y={6} r={4} fill={`var(--${family.colour})`} />
            </svg>
            {family.name}
          </span>
        ))}
        <span>
          <svg width="14" height="12" aria-hidden="true">
            <circle cx="7" cy="6" r="4" fill="var(--surface)" stroke="var(--muted)" stroke-width="1.5" />
          </svg>
          hollow: outside its interval
        </span>
        <span>
          <svg width="16" height="12" aria-hidden="true">
            <rect width="16" height="12" fill="var(--muted)" opacity=".13" />
            <rect y="3" width="16" height="6" fill="var(--muted)" opacity=".2" />
          </svg>
          ±10, ±20 %
        </span>
      </div>
      <hr class="gap" />
      <Select
        label="A measurement, by name"
        value={chosen?.id ?? ""}
        choices={[
          { value: "", name: "none" },
          ...rows.slice(0, 2000).map((row) => ({ value: row.id, name: `${row.id}: ${row.group}` })),
        ]}
        onChange={choose}
      />
    </Card>
  );
}

export function Coverage({ results }: { results: ValidateResults }): JSX.Element {
  const groups = (results.summary ?? []).filter((one) => one.n >= 4).slice(0, 14);
  return (
    <Card
      title="Share inside the 80 % interval"
      note="grey: what chance alone allows"
      drawing
      table={() => [["group", "n", "covered"], ...groups.map((one) => [one.group, one.n, one.covered])]}
    >
      <Chart
        draw={(width) => {
          const left = Math.min(width * 0.4, 10 + 6.6 * Math.max(6, ...groups.map((one) => one.group.length)));
          const x = linear(0.4, 1, left, width - 40);
          const bottom = 12 + groups.length * 22;
          return (
            <Drawing width={width} height={bottom + 22} label="share of measurements inside the interval, by group">
              {[0.4, 0.6, 0.8, 1].map((t) => (
                <g key={t}>
                  <Line x1={x(t)} y1={6} x2={x(t)} y2={bottom} />
                  <Label x={x(t)} y={bottom + 16} role="m" anchor="middle">
                    {percent(t, 2)}
                  </Label>
                </g>
              ))}
              {groups.map((one, i) => {
                const spread = 1.96 * Math.sqrt((0.8 * 0.2) / one.n);
                const y = 16 + i * 22;
                return (
                  <g key={one.group}>
                    <Label x={0} y={y + 4} role={one.group === "all" ? "b" : ""}>
                      {one.group.length * 6.6 > left - 6
                        ? `${one.group.slice(0, Math.floor((left - 14) / 6.6))}…`
                        : one.group}
                    </Label>
                    <Line
                      x1={x(clamp(0.8 - spread, 0.4, 1))}
                      x2={x(clamp(0.8 + spread, 0.4, 1))}
                      y1={y}
                      y2={y}
                      stroke={mix("edge", 40)}
                      width={5}
                    />
                    {one.covered !== null && (
                      <Mark
                        shape={one.group === "all" ? "diamond" : "circle"}
                        x={x(clamp(one.covered, 0.4, 1))}
                        y={y}
                        r={5}
                        fill={one.covered >= 0.8 - spread ? "var(--s1)" : "var(--bad)"}
                      />
                    )}
                    <Label x={width} y={y + 4} role="m" anchor="end">
                      {int(one.n)}
                    </Label>
                  </g>
                );
              })}
              <Line x1={x(0.8)} y1={4} x2={x(0.8)} y2={bottom} stroke="var(--ink)" width={1.5} dash="4 3" />
            </Drawing>
          );
        }}
      />
    </Card>
  );
}

export function Errors({ rows }: { rows: Row[] }): JSX.Element {
  const errors = rows.map((row) => row.p / row.m - 1);
  const bins = histogram(errors, -0.4, 0.4, 24);
  const within = errors.filter((error) => Math.abs(error) <= 0.1).length / errors.length;
  return (
    <Card
      title="Errors"
      note={`predicted over measured, less one; ${percent(within, 2)} within 10 %`}
      drawing
      table={() => [
        ["from", "to", "count"],
        ...bins.map((count, i) => [(-0.4 + i / 30).toFixed(3), (-0.4 + (i + 1) / 30).toFixed(3), count]),
      ]}
    >
      <Chart
        draw={(width) => {
          const x = linear(-0.4, 0.4, 4, width - 4);
          const y = linear(0, Math.max(...bins, 1), 118, 14);
          return (
            <Drawing width={width} height={142} label="histogram of errors">
              {bins.map((count, i) => {
                const a = -0.4 + i / 30;
                return (
                  <rect
                    key={i}
                    x={x(a) + 0.75}
                    y={y(count)}
                    width={Math.max(0, x(a + 1 / 30) - x(a) - 1.5)}
                    height={118 - y(count)}
                    fill={Math.abs(a + 1 / 60) <= 0.1 ? "var(--s1)" : mix("s1", 42)}
                  />
                );
              })}
              <Line x1={4} y1={118} x2={width - 4} y2={118} role="ax" />
              <Line x1={x(0)} y1={8} x2={x(0)} y2={118} stroke="var(--ink)" width={1.5} />
              {(width < 320 ? [-0.4, 0, 0.4] : [-0.4, -0.2, 0, 0.2, 0.4]).map((t) => (
                <Label key={t} x={x(t)} y={136} role="m" anchor={t === -0.4 ? "start" : t === 0.4 ? "end" : "middle"}>
                  {t === 0 ? "0" : `${t > 0 ? "+" : "−"}${Math.abs(100 * t)}${thin}%`}
                </Label>
              ))}
            </Drawing>
          );
        }}
      />
    </Card>
  );
}
