import type { JSX } from "preact";
import { v } from "../../../engine/request";
import type { ChipsResults, ModelsResults, Quantity } from "../../../engine/schema";
import { Lines } from "../../../draw/lines";
import { Track } from "../../../parts/basics";
import { Scroll } from "../../../parts/scroll";
import { sentence, si } from "../../../text/format";
import { value } from "./value";

export function ModelsPicture({ results, intensity }: { results: ModelsResults; intensity: boolean }): JSX.Element {
  const sweep = results.sweep ?? [];
  if (intensity)
    return (
      <Lines
        label="attention's arithmetic intensity against the context"
        x={{ title: "tokens of a sequence", log: true }}
        y={{ title: "FLOP/B", log: true }}
        series={[
          {
            name: "prefill",
            colour: "var(--s1)",
            points: sweep.map((one) => [one.sequence, v(one.prefill_intensity)] as const),
          },
          {
            name: "decode",
            colour: "var(--s3)",
            points: sweep.map((one) => [one.sequence, v(one.decode_intensity)] as const),
          },
        ]}
      />
    );
  return (
    <Lines
      label="attention's share of the work against the context"
      x={{ title: "tokens of a sequence", log: true }}
      y={{ title: "attention's share of the forward pass", unit: "%" }}
      series={[
        {
          name: "attention",
          colour: "var(--s1)",
          points: sweep.map((one) => [one.sequence, one.attention_share] as const),
        },
      ]}
    />
  );
}

function SideBySide({ rows }: { rows: NonNullable<ChipsResults["side_by_side"]> }): JSX.Element {
  const chips = Object.keys(rows[0] ?? {}).filter((key) => key !== "part");
  return (
    <Scroll>
      <table class="rows small">
        <thead>
          <tr>
            <th>
              <span class="sr">Part</span>
            </th>
            {chips.map((chip) => (
              <th key={chip} class="n">
                {chip}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.part}>
              <td class="muted">{sentence(row.part).replace(/\.$/, "")}</td>
              {chips.map((chip) => (
                <td key={chip} class="n">
                  {value((row as Record<string, unknown>)[chip])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

export function ChipPicture({ results }: { results: ChipsResults }): JSX.Element {
  if (results.side_by_side) return <SideBySide rows={results.side_by_side} />;
  const peaks = Object.entries(results.peak ?? {});
  const rates = Object.entries(results.memory ?? {})
    .filter(([, level]) => level.bandwidth)
    .map(([name, level]) => [name, level.bandwidth!] as const);
  const most = (list: (readonly [string, Quantity])[]): number => Math.max(...list.map(([, one]) => v(one)));
  const table = (title: string, list: (readonly [string, Quantity])[], unit: string, fill: string): JSX.Element => (
    <table class="rows small">
      <caption>{title}</caption>
      <tbody>
        {list.map(([name, one]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="wide">
              <Track value={v(one)} most={most(list)} fill={fill} />
            </td>
            <td class="n">{si(v(one), unit)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
  return (
    <>
      {peaks.length > 0 && table("Arithmetic", peaks, "FLOP/s", "var(--s1)")}
      {rates.length > 0 && table("Memory", rates, "B/s", "var(--s3)")}
    </>
  );
}
