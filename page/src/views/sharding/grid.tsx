import type { JSX } from "preact";
import { Chart, Drawing, Label, mix } from "../../draw/svg";
import type { Axis, Block, Coordinates } from "./notation";

export interface Frame {
  title: string;
  step: number;
  blocks: Block[][];
  /** How finely rows and columns are divided. */
  rows: number;
  columns: number;
  names: [string, string];
}
const hues = ["s1", "s3", "s5", "s2", "s4", "s7"];
const shades = [92, 66, 44, 26];

/** The colour of a place in the array: hue by row, lightness by column. */
function colour(row: number, column: number, rows: number, columns: number): string {
  if (rows === 1) return mix(hues[Math.floor((column * 4) / columns) % 4]!, columns > 4 ? shades[column % 4]! : 86);
  const hue = hues[Math.floor((row * Math.min(rows, 4)) / rows) % hues.length]!;
  const shade =
    columns > 1 ? shades[Math.floor((column * Math.min(columns, 4)) / columns)]! : rows > 4 ? shades[row % 4]! : 86;
  return mix(hue, shade);
}

export function Grid({ frame, axes, devices }: { frame: Frame; axes: Axis[]; devices: Coordinates[] }): JSX.Element {
  const down = axes[0] ?? { name: "", size: 1 };
  const across = axes.slice(1);
  const columns = across.reduce((n, axis) => n * axis.size, 1);
  const rows = down.size;
  const partial = frame.blocks.some((list) => list.some((block) => block.sums));
  const fresh = frame.blocks.some((list) => list.some((block) => block.fresh));
  return (
    <>
      <Chart
        draw={(full) => {
          const left = 26;
          const gap = columns > 8 ? 6 : 12;
          const width = Math.min(full, 680);
          const cell = Math.min(160, (width - 2 - left - (columns - 1) * gap) / columns);
          const top = 20;
          const height = top + rows * (cell + gap);
          return (
            <Drawing
              width={width}
              height={height}
              label={`${frame.title}: what each of ${devices.length} devices holds`}
            >
              {Array.from({ length: rows }, (_, i) => (
                <Label key={i} x={0} y={top + i * (cell + gap) + cell / 2 + 4} role="m">
                  {down.name}
                  {i}
                </Label>
              ))}
              {Array.from({ length: columns }, (_, i) => (
                <Label key={i} x={left + i * (cell + gap) + cell / 2} y={12} role="m" anchor="middle">
                  {columnName(i, across)}
                </Label>
              ))}
              {devices.map((device, i) => {
                const x = left + (i % columns) * (cell + gap);
                const y = top + Math.floor(i / columns) * (cell + gap);
                const list = frame.blocks[i] ?? [];
                const sums = sumsOf(list);
                const low = list.some((block) => block.rows.to > 0.8 && block.columns.to > 0.5);
                return (
                  <g key={i} transform={`translate(${x.toFixed(1)},${y.toFixed(1)})`}>
                    <rect width={cell} height={cell} rx={2} fill="var(--raised)" />
                    {list.map((block, k) => (
                      <Cells key={k} block={block} frame={frame} cell={cell} />
                    ))}
                    <rect width={cell} height={cell} rx={2} fill="none" stroke="var(--edge)" />
                    {sums && cell > 44 && (
                      <Label x={cell - 5} y={low ? 15 : cell - 6} role="b" anchor="end" halo>
                        {sums}
                      </Label>
                    )}
                    <title>
                      {Object.entries(device)
                        .map(([name, at]) => `${name}${at}`)
                        .join(" ")}
                    </title>
                  </g>
                );
              })}
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>Each square is one device with the whole array: coloured is what it holds</span>
        <span>
          rows: {frame.names[0]}
          {frame.names[1] && `, columns: ${frame.names[1]}`}
        </span>
        {partial && <span>striped: partial sums, with how many are added</span>}
        {fresh && <span>outlined: arrived in this hop</span>}
      </div>
    </>
  );
}
/** "2 of 4", or "1–3 of 4" where blocks are not equally far. */
function sumsOf(list: readonly Block[]): string | null {
  const counts = list.flatMap((block) => (block.sums ? [Number(block.sums.split(" ")[0])] : []));
  if (counts.length === 0) return null;
  const [least, most, all] = [
    Math.min(...counts),
    Math.max(...counts),
    list.find((block) => block.sums)!.sums!.split(" of ")[1],
  ];
  return `${least === most ? least : `${least}–${most}`} of ${all}`;
}
const columnName = (index: number, across: readonly Axis[]): string => {
  let rest = index;
  const parts: string[] = [];
  for (const axis of [...across].reverse()) {
    parts.unshift(`${axis.name}${rest % axis.size}`);
    rest = Math.floor(rest / axis.size);
  }
  return parts.join(" ");
};

function Cells({ block, frame, cell }: { block: Block; frame: Frame; cell: number }): JSX.Element {
  const height = cell / frame.rows;
  const width = cell / frame.columns;
  const list: JSX.Element[] = [];
  for (let row = Math.round(block.rows.from * frame.rows); row < Math.round(block.rows.to * frame.rows); row++) {
    for (
      let column = Math.round(block.columns.from * frame.columns);
      column < Math.round(block.columns.to * frame.columns);
      column++
    ) {
      const place = {
        x: column * width + 0.75,
        y: row * height + 0.75,
        width: Math.max(0.5, width - 1.5),
        height: Math.max(0.5, height - 1.5),
        rx: 1.5,
      };
      list.push(<rect key={`${row}/${column}`} {...place} fill={colour(row, column, frame.rows, frame.columns)} />);
      if (block.sums) list.push(<rect key={`${row}/${column}s`} {...place} fill="url(#stripe-partial)" />);
      if (block.fresh)
        list.push(<rect key={`${row}/${column}f`} {...place} fill="none" stroke="var(--ink)" stroke-width={1.5} />);
    }
  }
  return <>{list}</>;
}
