import type { JSX } from "preact";
import type { ClustersResults } from "../../engine/schema";
import { Chart, Drawing, Label, mix } from "../../draw/svg";
import { Figures } from "../../parts/basics";
import { Card } from "../../parts/card";
import { v } from "../../engine/request";
import { bytes, int, si } from "../../text/format";

const most = 24;

function Torus({ results, width }: { results: ClustersResults; width: number }): JSX.Element {
  const [first, second = { name: "", size: 1, ring: false }, az] = results.axes as [
    ClustersResults["axes"][number],
    ClustersResults["axes"][number] | undefined,
    ClustersResults["axes"][number] | undefined,
  ];
  // the longer side lies flat
  const [ax, ay] = second.size > first.size ? [second, first] : [first, second];
  const columns = Math.min(ax.size, most);
  const rows = Math.min(ay.size, most);
  const step = Math.min(44, (width - 90) / Math.max(columns, 1));
  const left = 40;
  const top = 40;
  const x = (i: number): number => left + i * step;
  const y = (i: number): number => top + i * step;
  const height = y(rows - 1) + 44;
  const wrap = (d: string): JSX.Element => (
    <path d={d} fill="none" stroke="var(--s2)" stroke-width={1.2} stroke-dasharray="3 3" />
  );
  return (
    <Drawing
      width={width}
      height={height}
      label={`torus of ${results.axes.map((axis) => axis.size).join(" by ")} chips${ax.ring ? ", with wraparound links" : ""}`}
    >
      {Array.from({ length: rows }, (_, j) => (
        <line key={`r${j}`} x1={x(0)} x2={x(columns - 1)} y1={y(j)} y2={y(j)} stroke="var(--s2)" stroke-width={1.4} />
      ))}
      {Array.from({ length: columns }, (_, i) => (
        <line key={`c${i}`} x1={x(i)} x2={x(i)} y1={y(0)} y2={y(rows - 1)} stroke="var(--s2)" stroke-width={1.4} />
      ))}
      {ax.ring &&
        columns > 1 &&
        Array.from({ length: rows }, (_, j) => (
          <g key={`wx${j}`}>{wrap(`M${x(0)},${y(j)}q-26,-14 0,-14H${x(columns - 1)}q26,0 0,14`)}</g>
        ))}
      {ay.ring &&
        rows > 1 &&
        Array.from({ length: columns }, (_, i) => (
          <g key={`wy${i}`}>{wrap(`M${x(i)},${y(0)}q-14,-22 -14,0V${y(rows - 1)}q0,22 14,0`)}</g>
        ))}
      {Array.from({ length: rows * columns }, (_, k) => (
        <circle
          key={k}
          cx={x(k % columns)}
          cy={y(Math.floor(k / columns))}
          r={Math.min(7, step / 4)}
          fill="var(--s1)"
          stroke="var(--surface)"
          stroke-width={1.5}
        />
      ))}
      <Label
        x={left}
        y={14}
        role="m"
      >{`${ax.name} = ${ax.size}${ax.ring ? ", a ring" : ", a line"}${ay.name ? `; ${ay.name} = ${ay.size}${ay.ring ? ", a ring" : ", a line"}` : ""}${az ? `; ${az.name} = ${az.size}: one of ${az.size} planes` : ""}`}</Label>
    </Drawing>
  );
}

function Levels({ results, width }: { results: ClustersResults; width: number }): JSX.Element {
  const levels = [...results.levels].reverse();
  const row = 64;
  const height = (levels.length + 1) * row;
  const boxes = (units: number): number => Math.min(units, 12);
  return (
    <Drawing
      width={width}
      height={height}
      label={`levels of the network: ${results.levels.map((level) => level.name).join(", ")}`}
    >
      {levels.map((level, i) => {
        const shown = boxes(level.units);
        const wide = (width - 200) / shown;
        const y = i * row + 8;
        const below = levels[i + 1];
        const under = below ? boxes(below.units) : Math.min(12, results.chips);
        const underWide = (width - 200) / under;
        return (
          <g key={level.name}>
            {Array.from({ length: under }, (_, k) => {
              const parent = Math.min(shown - 1, Math.floor((k * shown) / under));
              return (
                <line
                  key={k}
                  x1={parent * wide + wide / 2}
                  y1={y + 26}
                  x2={k * underWide + underWide / 2}
                  y2={y + row}
                  stroke="var(--s2)"
                  stroke-width={1.2}
                  opacity={0.7}
                />
              );
            })}
            {Array.from({ length: shown }, (_, k) => (
              <rect
                key={k}
                x={k * wide + 3}
                y={y}
                width={Math.max(2, wide - 6)}
                height={26}
                rx={4}
                fill={mix("s2", 26)}
                stroke="var(--s2)"
              />
            ))}
            <Label
              x={width - 190}
              y={y + 11}
              role="b"
            >{`${level.name}: ${int(level.units)} × ${int(level.chips)} chips`}</Label>
            <Label x={width - 190} y={y + 27} role="m">{`${si(v(level.bandwidth_per_chip), "B/s")} a chip`}</Label>
          </g>
        );
      })}
      {Array.from({ length: Math.min(12, results.chips) }, (_, k) => {
        const wide = (width - 200) / Math.min(12, results.chips);
        return <circle key={k} cx={k * wide + wide / 2} cy={levels.length * row + 14} r={6} fill="var(--s1)" />;
      })}
      <Label x={width - 190} y={levels.length * row + 18} role="b">{`${int(results.chips)} chips`}</Label>
    </Drawing>
  );
}

export function TopologyCard({ results }: { results: ClustersResults }): JSX.Element {
  const rows: [string, string][] = [
    ["Chips, hosts", `${int(results.chips)}, ${int(results.hosts)}`],
    ["Arithmetic", si(v(results.flops_per_second), "FLOP/s")],
    ["Memory", bytes(v(results.memory))],
    ...(results.bisection_bandwidth
      ? [["Bisection", si(v(results.bisection_bandwidth), "B/s")] as [string, string]]
      : []),
    ...(results.diameter !== undefined ? [["Longest way", `${int(results.diameter)} hops`] as [string, string]] : []),
    ...(results.egress_per_chip ? [["Out of a chip", si(v(results.egress_per_chip), "B/s")] as [string, string]] : []),
    ...(results.scale_out ? [["To other slices", si(v(results.scale_out), "B/s")] as [string, string]] : []),
  ];
  return (
    <Card title="Topology" note={results.cluster} drawing table={() => [["figure", "value"], ...rows]}>
      <Chart
        draw={(width) =>
          results.axes.length > 0 ? (
            <Torus results={results} width={width} />
          ) : results.levels.length > 0 ? (
            <Levels results={results} width={width} />
          ) : (
            <p class="muted">One chip has no network.</p>
          )
        }
      />
      <Figures rows={rows} />
    </Card>
  );
}
