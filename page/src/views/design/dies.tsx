// The dies to scale, cut into strips of their parts, inside the outline of what they were.
import type { JSX } from "preact";
import { Chart, Drawing, Label } from "../../draw/svg";
import { v } from "../../engine/request";
import type { DesignResults } from "../../engine/schema";
import { Card } from "../../parts/card";
import { int, percent } from "../../text/format";
import { PartList } from "../bars";
import { area } from "./words";

export type DieArea = NonNullable<DesignResults["area"]>["dies"][number];

/** The colours are those of the engine's picture. */
const parts = [
  { key: "logic", name: "Logic", fill: "var(--s1)" },
  { key: "memory", name: "On-chip memory", fill: "var(--s3)" },
  { key: "stacks", name: "Memory interfaces", fill: "var(--s5)" },
  { key: "links", name: "Links", fill: "var(--s2)" },
  { key: "other", name: "Other", fill: "var(--s7)" },
  { key: "unlisted", name: "Not listed: control, wires", fill: "var(--grid)" },
] as const;
const tallest = 300;
const room = 24;

const side = (die: DieArea): number => Math.sqrt(v(die.area.estimate));

function Square({ die, was, x, y, scale }: { die: DieArea; was?: DieArea; x: number; y: number; scale: number }) {
  const all = v(die.area.estimate);
  const edge = side(die) * scale;
  const old = was ? side(was) * scale : 0;
  let top = y;
  return (
    <g>
      {parts.map(({ key, name, fill }) => {
        const height = (edge * v(die[key])) / all;
        const at = top;
        top += height;
        return (
          height > 0 && (
            <rect key={key} x={x} y={at} width={edge} height={height} fill={fill}>
              <title>{`${name}: ${area(v(die[key]))}, ${percent(v(die[key]) / all)}`}</title>
            </rect>
          )
        );
      })}
      {Math.abs(old - edge) > 0.5 && (
        <rect x={x} y={y} width={old} height={old} fill="none" stroke="var(--ink)" stroke-dasharray="4 3" />
      )}
    </g>
  );
}

export function DiesCard({ dies, before }: { dies: readonly DieArea[]; before: readonly DieArea[] }): JSX.Element {
  const sum = (key: (typeof parts)[number]["key"]): number =>
    dies.reduce((total, die) => total + die.count * v(die[key]), 0);
  const list = parts.map(({ key, name, fill }) => ({ name, fill, value: sum(key) }));
  return (
    <Card
      title="The dies, to scale"
      note="strips are what each part takes"
      name="dies"
      drawing
      table={() => [
        ["die", "node", "count", "area_mm2", ...parts.map(({ key }) => `${key}_mm2`), "yield", "dies_per_wafer"],
        ...dies.map((die, i) => [
          i,
          die.node,
          die.count,
          v(die.area.estimate),
          ...parts.map(({ key }) => v(die[key])),
          die.yield,
          die.dies_per_wafer,
        ]),
      ]}
    >
      <Chart
        draw={(width) => {
          const widths = dies.map((die, i) => Math.max(side(die), before[i] ? side(before[i]) : 0));
          const sides = widths.reduce((a, b) => a + b, 0);
          // room for the largest die that a reticle holds, so that nothing moves while a part is dragged
          const scale = Math.min((width - room * (dies.length - 1)) / sides, tallest / Math.max(32, ...widths));
          let left = 0;
          return (
            <Drawing
              width={width}
              height={tallest + 40}
              label={dies.map((die) => `${int(die.count)} dies of ${area(v(die.area.estimate))}`).join(", ")}
            >
              {dies.map((die, i) => {
                const x = left;
                left += Math.max(widths[i]! * scale, 90) + room;
                const name = `${die.count > 1 ? `${int(die.count)} × ` : ""}${die.node}, ${area(v(die.area.estimate))}`;
                return (
                  <g key={i}>
                    <Square die={die} was={before[i]} x={x} y={1} scale={scale} />
                    <Label x={x} y={widths[i]! * scale + 18}>
                      {name}
                    </Label>
                    <Label x={x} y={widths[i]! * scale + 34} role="m">
                      {`${percent(die.yield)} work`}
                    </Label>
                  </g>
                );
              })}
            </Drawing>
          );
        }}
      />
      <PartList parts={list} write={area} node={() => undefined} />
    </Card>
  );
}
