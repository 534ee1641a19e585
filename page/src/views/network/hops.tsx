import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CollectiveResults } from "../../engine/schema";
import { Chart, Drawing, Label, mix } from "../../draw/svg";
import { Card } from "../../parts/card";
import { Player } from "../../parts/player";

type Blocks = NonNullable<CollectiveResults["blocks"]>;
const hues = ["s1", "s3", "s5", "s2"];
const colour = (block: number, count: number): string =>
  mix(hues[Math.floor((block * 4) / count) % 4]!, count > 4 ? [92, 68, 46, 28][block % 4]! : 86);

/** Who holds which part of the array after each hop. */
export function HopsCard({
  blocks,
  kind,
  algorithm,
}: {
  blocks: Blocks;
  kind: string;
  algorithm: string;
}): JSX.Element {
  const [chosen, set] = useState(0);
  const at = Math.min(chosen, blocks.length - 1);
  const devices = blocks[at]!.devices;
  const count = Math.max(
    devices.length,
    1 + Math.max(...blocks.flatMap((hop) => hop.devices.flatMap((list) => list.map((one) => one.block)))),
  );
  const reduces = kind.includes("reduce");
  const exchanges = kind === "all-to-all";
  const before = blocks[at - 1];
  const had = (device: number, one: { block: number; from: number[] }): boolean =>
    before === undefined ||
    (before.devices[device] ?? []).some((old) => old.block === one.block && old.from.join() === one.from.join());
  return (
    <Card
      title="Hop by hop"
      note={`${algorithm}: ${blocks.length > 2 ? `after hop ${at} of ${blocks.length - 1}` : at === 0 ? "before" : "after"}`}
      drawing
      table={() => [
        ["hop", "device", "block", "from"],
        ...blocks.flatMap((hop) =>
          hop.devices.flatMap((list, device) => list.map((one) => [hop.hop, device, one.block, one.from.join(" ")])),
        ),
      ]}
    >
      <Player steps={blocks.length} at={at} set={set} label="Hop" />
      <Chart
        draw={(width) => {
          const gap = devices.length > 8 ? 4 : 10;
          const column = Math.max(2, Math.min(120, (width - (devices.length - 1) * gap) / devices.length));
          const row = devices.length > 8 ? 16 : 26;
          const height = 22 + count * (row + 3);
          return (
            <Drawing
              width={width}
              height={height}
              label={`${kind}: what ${devices.length} devices hold after hop ${at}`}
            >
              {devices.map((list, device) => {
                const x = device * (column + gap);
                return (
                  <g key={device}>
                    <Label x={x + column / 2} y={12} role="m" anchor="middle">
                      {column > 60 ? `device ${device}` : String(device)}
                    </Label>
                    {Array.from({ length: count }, (_, block) => (
                      <rect
                        key={block}
                        x={x}
                        y={20 + block * (row + 3)}
                        width={column}
                        height={row}
                        rx={2}
                        fill="var(--raised)"
                      />
                    ))}
                    {(exchanges ? exchange(list) : list.map((one) => ({ one, part: 0, parts: 1 }))).map(
                      ({ one, part, parts }, k) => {
                        const wide = column / parts;
                        const y = 20 + one.block * (row + 3);
                        const partial = reduces && one.from.length < devices.length;
                        return (
                          <g key={k}>
                            <rect
                              x={x + part * wide}
                              y={y}
                              width={Math.max(1, wide - (parts > 1 ? 1 : 0))}
                              height={row}
                              rx={2}
                              fill={colour(exchanges ? one.from[0]! : one.block, count)}
                            />
                            {partial && <rect x={x} y={y} width={column} height={row} fill="url(#stripe-partial)" />}
                            {!had(device, one) && (
                              <rect
                                x={x + part * wide + 1}
                                y={y + 1}
                                width={Math.max(1, wide - 2)}
                                height={row - 2}
                                rx={1.5}
                                fill="none"
                                stroke="var(--ink)"
                                stroke-width={1.5}
                              />
                            )}
                            {reduces && column > 40 && row > 20 && (
                              <Label
                                x={x + column / 2}
                                y={y + row / 2 + 4}
                                role="b"
                                anchor="middle"
                                halo
                              >{`${one.from.length} of ${devices.length}`}</Label>
                            )}
                          </g>
                        );
                      },
                    )}
                  </g>
                );
              })}
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>
          {exchanges ? "rows: for whom a part is; colour: from whom" : "rows and colours: parts of the array"}
        </span>
        {reduces && <span>striped: partial sums, with how many are added</span>}
        <span>outlined: arrived in this hop</span>
      </div>
    </Card>
  );
}
/** Parts for one device side by side, by where they come from. */
function exchange(
  list: readonly { block: number; from: number[] }[],
): { one: { block: number; from: number[] }; part: number; parts: number }[] {
  return list.map((one) => {
    const same = list.filter((other) => other.block === one.block);
    return { one, part: same.indexOf(one), parts: same.length };
  });
}
