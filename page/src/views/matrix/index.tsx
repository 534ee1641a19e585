import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import { useCatalogue } from "../../catalogue";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import { filled, requestOf, resize, v } from "../../engine/request";
import { Axes, Chart, Drawing, Label, Line, mix } from "../../draw/svg";
import { linear, ticks } from "../../draw/scale";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import { Figures, Swatch } from "../../parts/basics";
import { Card, NotesCard } from "../../parts/card";
import { Select, TextField } from "../../parts/fields";
import { Examples, Panel, problemAt } from "../../parts/panel";
import { Player } from "../../parts/player";
import { int, percent, si, time } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { PartList, StackedBar } from "../bars";
import { busyAt, stateAt } from "./array";
import type { Run } from "./array";

const defaults: Query = { M: "8", K: "16", N: "16", array: "8x8" };
const examples: readonly [string, Query][] = [
  ["Four tiles on 8x8", defaults],
  ["Ragged: 10 columns on 8", { M: "8", K: "8", N: "10", array: "8x8" }],
  ["Few rows: weights take longer", { M: "3", K: "16", N: "16", array: "8x8" }],
  ["Many rows fill it", { M: "64", K: "8", N: "8", array: "8x8" }],
  ["TPU v5e, a decode batch", { M: "8", K: "128", N: "128", on: "tpu-v5e" }],
  ["TPU v5e, a square product", { M: "512", K: "512", N: "512", on: "tpu-v5e" }],
];
const largestPicture = 1024;

export function MatrixView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const given = filled(place.query, defaults);
  const request = requestOf("systolic", given);
  const asked = useAsk(request);
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const refusal = refusalOf(asked);
  const catalogue = useCatalogue();
  const set = (part: Query): void => change({ ...given, cycle: "", ...part });
  return (
    <div class="view">
      <Panel
        request={request as Request}
        summary={`[${given.M},${given.K}] × [${given.K},${given.N}] · ${given.array || given.on || "128x128"}`}
      >
        {(["M", "K", "N"] as const).map((name) => (
          <TextField
            key={name}
            label={{ M: "M, rows of X", K: "K, contracted", N: "N, columns of W" }[name]}
            value={given[name] ?? ""}
            onChange={(value) => set({ [name]: value })}
            halve={(factor) => resize(given[name] ?? "", factor)}
            problem={problemAt(refusal, name)}
          />
        ))}
        <TextField
          label="Array"
          value={given.array ?? ""}
          placeholder={given.on ? `of ${given.on}` : "128x128"}
          onChange={(array) => set({ array, on: "" })}
          problem={problemAt(refusal, "array")}
          hint="rows x columns, or take a chip's"
        />
        <Select
          label="Chip"
          value={given.on ?? ""}
          choices={[
            { value: "", name: "none" },
            ...(catalogue?.chips ?? [])
              .filter((chip) => chip.id.startsWith("tpu-"))
              .map((chip) => ({ value: chip.id, name: chip.name })),
          ]}
          onChange={(on) => set({ on, array: "" })}
          problem={problemAt(refusal, "on")}
        />
        <Select
          label="Weights load"
          value={given["single-buffered"] ?? ""}
          choices={[
            { value: "", name: "while a tile runs" },
            { value: "true", name: "between tiles" },
          ]}
          onChange={(value) => set({ "single-buffered": value })}
        />
        <Examples
          of={examples.map(([name, part]) => ({
            name,
            chosen:
              ["M", "K", "N"].every((key) => part[key] === given[key]) && (part.array ?? "") === (given.array ?? ""),
            choose: () => set({ on: "", array: "", "single-buffered": "", ...part }),
          }))}
        />
      </Panel>
      <AnswerFrame asked={asked} request={request as Request}>
        {(answer) => <MatrixAnswer answer={answer} place={place} />}
      </AnswerFrame>
    </div>
  );
}

function runOf(answer: Answer<"systolic">): Run {
  const r = answer.results;
  const [rows = 1, columns = 1] = r.array.split("x").map(Number);
  const size = (name: string): number => Math.round(Number(answer.inputs[name]));
  const m = size("M");
  return {
    rows,
    columns,
    m,
    k: size("K"),
    n: size("N"),
    tiles: r.tiles,
    load: r.cycles.load,
    interval: m + (r.tiles > 1 ? r.cycles.stall / (r.tiles - 1) : 0),
  };
}

function MatrixAnswer({ answer, place }: { answer: Answer<"systolic">; place: Place }): JSX.Element {
  const r = answer.results;
  const run = useMemo(() => runOf(answer), [answer]);
  const total = r.cycles.total;
  const drawable = run.rows * run.columns <= largestPicture && total <= 4000 && Number.isFinite(run.m);
  const cycle = Math.min(total - 1, Math.max(0, Number(place.query.cycle ?? run.load + 4)));
  const parts = [
    ["Load weights", r.cycles.load, "var(--s3)"],
    ["Fill", r.cycles.fill, mix("s1", 52)],
    ["Steady", r.cycles.steady, "var(--s1)"],
    ["Stall", r.cycles.stall, "var(--s4)"],
    ["Drain", r.cycles.drain, mix("s4", 55)],
  ].map(([name, value, fill]) => ({ name: String(name), value: Number(value), fill: String(fill) }));
  return (
    <>
      <Head
        sub={
          <>
            <span>
              {int(r.tiles)} {r.tiles === 1 ? "tile" : "tiles"} on {r.array}
            </span>
            {r.time && (
              <span>
                {time(v(r.time))} at {si(v(r.clock), "Hz")}: {si(v(r.achieved), "FLOP/s")}
              </span>
            )}
            {r.simulated && (
              <span>
                {r.simulated.equals_closed_form
                  ? "simulated with real data, and the counts agree"
                  : "the simulation differs from the closed form"}
              </span>
            )}
          </>
        }
      >
        {int(total)} cycles, and {percent(r.utilisation)} of the multipliers' time is useful.
      </Head>
      <div class="g2 l">
        <Card
          title="The array, cycle by cycle"
          note={drawable ? `cycle ${cycle} of ${total}: ${phase(r.cycles, cycle)}` : undefined}
          drawing
        >
          {drawable ? (
            <>
              <Player steps={total} at={cycle} set={(step) => change({ cycle: String(step) }, true)} label="Cycle" />
              <ArrayPicture run={run} cycle={cycle} />
            </>
          ) : (
            <p class="muted">Arrays of up to 32x32 and 4,000 cycles are drawn; take a smaller one to watch it.</p>
          )}
        </Card>
        <div class="cards">
          <Card
            title="Where the cycles go"
            drawing
            table={() => [["part", "cycles"], ...parts.map((part) => [part.name, part.value])]}
          >
            <StackedBar parts={parts} total={total} label={`${total} cycles`} />
            <PartList parts={parts} write={int} node={() => undefined} />
          </Card>
          {drawable && <ActivityCard run={run} total={total} cycle={cycle} />}
          <Card title="Shares of the multipliers' time">
            <Figures
              rows={[
                ["Useful", percent(r.utilisation)],
                ["On padding", percent(r.padding_waste)],
                ["Idle", percent(r.idle_share)],
                ["Useful with many rows, at most", percent(r.utilisation_limit)],
                ["FLOP of a cycle at the peak", int(v(r.flops_per_cycle_peak))],
              ]}
            />
          </Card>
          <NotesCard answer={answer} />
        </div>
      </div>
    </>
  );
}
const phase = (cycles: Answer<"systolic">["results"]["cycles"], at: number): string =>
  at < cycles.load
    ? "weights load"
    : at >= cycles.total - cycles.drain
      ? "the array drains"
      : at < cycles.load + cycles.fill
        ? "the array fills"
        : "rows stream through";

function ArrayPicture({ run, cycle }: { run: Run; cycle: number }): JSX.Element {
  const tones = ["var(--s1)", mix("s1", 70), mix("s1", 48), mix("s1", 32)];
  return (
    <>
      <Chart
        draw={(full) => {
          const width = Math.min(full, 620);
          const left = 64;
          const cell = Math.min(56, (width - left - 8) / run.columns);
          const top = 34;
          const height = top + run.rows * cell + 40;
          return (
            <Drawing width={width} height={height} label={`multipliers of the array in cycle ${cycle}`}>
              <Label x={left} y={12} role="m">
                weights stay; sums move down
              </Label>
              <Label x={0} y={top - 8} role="m">
                X enters →
              </Label>
              {Array.from({ length: run.rows }, (_, row) => {
                const { x, tile } = stateAt(run, cycle, row, 0);
                return (
                  <Label key={row} x={left - 8} y={top + row * cell + cell / 2 + 4} role="m" anchor="end">
                    {tile >= 0 && cell > 13 ? `x${x}` : ""}
                  </Label>
                );
              })}
              {Array.from({ length: run.rows * run.columns }, (_, i) => {
                const [row, column] = [Math.floor(i / run.columns), i % run.columns];
                const { state, x, tile } = stateAt(run, cycle, row, column);
                const place = {
                  x: left + column * cell + 1,
                  y: top + row * cell + 1,
                  width: cell - 2,
                  height: cell - 2,
                  rx: Math.min(4, cell / 8),
                };
                const loading = cycle < run.load && run.rows - 1 - row <= cycle;
                return (
                  <g key={i}>
                    <rect
                      {...place}
                      fill={state === "idle" ? (loading ? mix("s3", 30) : "var(--raised)") : tones[x % 4]}
                    />
                    {state === "padded" && <rect {...place} fill="url(#stripe-partial)" />}
                    {state !== "idle" && cell >= 34 && (
                      <text
                        x={place.x + place.width / 2}
                        y={place.y + place.height / 2 + 4}
                        text-anchor="middle"
                        class="halo"
                      >
                        x{x}
                      </text>
                    )}
                    <title>{`row ${row}, column ${column}: ${state === "idle" ? "idle" : `row ${x} of X, tile ${tile + 1}${state === "padded" ? ", padding" : ""}`}`}</title>
                  </g>
                );
              })}
              {Array.from({ length: run.columns }, (_, column) => {
                const { state, x } = stateAt(run, cycle, run.rows - 1, column);
                return state === "idle" || cell < 24 ? null : (
                  <Label
                    key={column}
                    x={left + column * cell + cell / 2}
                    y={top + run.rows * cell + 16}
                    role="m"
                    anchor="middle"
                  >{`y${x}`}</Label>
                );
              })}
              <Label x={left} y={height - 6} role="m">
                sums leave ↓
              </Label>
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>
          <Swatch fill="var(--s1)" />
          working on a row of X, by its number
        </span>
        <span>
          <Swatch fill={mix("s3", 30)} />
          weights loaded
        </span>
        <span>
          <Swatch fill="url(#stripe-arithmetic)" />
          padding
        </span>
        <span>
          <Swatch fill="var(--raised)" />
          idle
        </span>
      </div>
    </>
  );
}

/** How many multipliers work over a whole product, for a figure. */
export function MatrixActivity({ answer }: { answer: Answer<"systolic"> }): JSX.Element {
  const run = useMemo(() => runOf(answer), [answer]);
  return <ActivityCard run={run} total={answer.results.cycles.total} />;
}

function ActivityCard({ run, total, cycle }: { run: Run; total: number; cycle?: number }): JSX.Element {
  const busy = useMemo(() => Array.from({ length: total }, (_, at) => busyAt(run, at)), [run, total]);
  const cells = run.rows * run.columns;
  return (
    <Card
      title="Multipliers at work"
      note="of all, by cycle"
      drawing
      table={() => [["cycle", "useful", "padded"], ...busy.map((one, at) => [at, one.useful, one.padded])]}
    >
      <Chart
        draw={(width) => {
          const frame = { left: 50, right: width - 10, top: 26, bottom: 160 };
          const x = linear(0, total, frame.left, frame.right);
          const y = linear(0, 1, frame.bottom, frame.top);
          const area = (value: (one: { useful: number; padded: number }) => number): string =>
            `M${frame.left},${y(0)}` +
            busy
              .map((one, at) => `L${x(at).toFixed(1)},${y(value(one) / cells).toFixed(1)}H${x(at + 1).toFixed(1)}`)
              .join("") +
            `V${y(0)}Z`;
          return (
            <Drawing width={width} height={208} label="multipliers at work in each cycle">
              <Axes
                frame={frame}
                x={x}
                y={y}
                xTicks={ticks(0, total, width < 400 ? 4 : 6)}
                yTicks={[0, 0.5, 1]}
                yUnit="%"
                xTitle="cycle"
                yTitle="busy"
              />
              {busy.some((one) => one.padded > 0) && (
                <path d={area((one) => one.useful + one.padded)} fill="url(#stripe-arithmetic)" />
              )}
              <path d={area((one) => one.useful)} fill="var(--s1)" />
              {cycle !== undefined && (
                <Line
                  x1={x(cycle + 0.5)}
                  x2={x(cycle + 0.5)}
                  y1={frame.top}
                  y2={frame.bottom}
                  stroke="var(--ink)"
                  width={1.5}
                />
              )}
            </Drawing>
          );
        }}
      />
    </Card>
  );
}
