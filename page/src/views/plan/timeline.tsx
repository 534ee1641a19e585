import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TrainResults } from "../../engine/schema";
import { v } from "../../engine/request";
import { Chart, Drawing, Label, Line, mix } from "../../draw/svg";
import { joinNarrow, linear, ticks } from "../../draw/scale";
import type { Bar } from "../../draw/scale";
import { Card } from "../../parts/card";
import { Segments } from "../../parts/fields";
import { Swatch } from "../../parts/basics";
import { time } from "../../text/format";

type Timeline = NonNullable<TrainResults["timeline"]>;
// Phases are arithmetic, so they are shades and stripes of its colour; what is none has the colour of what it is.
const fills: Record<string, string> = {
  forward: "var(--s1)",
  "forward again": mix("s1", 30),
  "recomputed forward": mix("s1", 30),
  backward: mix("s1", 55),
  "weight gradients": "url(#stripe-arithmetic)",
  arithmetic: "var(--s1)",
  compute: "var(--s1)",
  memory: "var(--s3)",
  send: mix("s2", 55),
  collective: "var(--s2)",
  network: "var(--s2)",
  "end of the step": "var(--s2)",
  update: "var(--s3)",
  idle: "var(--raised)",
};
const spare = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"];

interface Panel {
  title: string;
  lanes: number[];
}
/** The stages of the step, and, on its own clock, what the resources of one chip do in a few layers. */
function panelsOf(timeline: Timeline): Panel[] {
  const index = timeline.lanes.map((_, i) => i);
  const stages = index.filter((i) => timeline.lanes[i]!.name.startsWith("stage"));
  const others = index.filter((i) => !stages.includes(i));
  if (stages.length === 0 || others.length === 0) return [{ title: "", lanes: index }];
  return [
    { title: "One step", lanes: stages },
    { title: "Two layers forward, one backward", lanes: others },
  ];
}

export function TimelineCard({ timeline }: { timeline: Timeline | undefined }): JSX.Element | null {
  const [zoom, setZoom] = useState("1");
  const [place, setPlace] = useState(0);
  if (!timeline) return null;
  const fill = (kind: number): string => fills[timeline.classes[kind] ?? ""] ?? spare[kind % spare.length]!;
  const used = [...new Set(timeline.bars.map((bar) => bar.class))].sort((a, b) => a - b);
  const bars: Bar[] = timeline.bars.map((bar) => ({
    lane: bar.lane,
    kind: bar.class,
    label: bar.label,
    start: v(bar.start),
    end: v(bar.end),
  }));
  const panels = panelsOf(timeline);
  return (
    <Card
      title="Timeline"
      note={panels.length === 1 ? timeline.subtitle : undefined}
      drawing
      table={() => [
        ["lane", "kind", "label", "start_s", "end_s"],
        ...timeline.bars.map((bar) => [
          timeline.lanes[bar.lane]?.name ?? bar.lane,
          timeline.classes[bar.class] ?? "",
          bar.label,
          v(bar.start),
          v(bar.end),
        ]),
      ]}
      end={
        <Segments
          label="Zoom"
          hideLabel
          value={zoom}
          onChange={setZoom}
          choices={[
            { value: "1", name: "Step" },
            { value: "4", name: "4×" },
            { value: "16", name: "16×" },
          ]}
        />
      }
    >
      {panels.map((panel) => (
        <PanelChart
          key={panel.title}
          panel={panel}
          timeline={timeline}
          bars={bars.filter((bar) => panel.lanes.includes(bar.lane))}
          zoom={Number(zoom)}
          place={place}
          fill={fill}
        />
      ))}
      {zoom !== "1" && (
        <input
          type="range"
          class="seek"
          aria-label="Place in the step"
          min={0}
          max={1}
          step={0.005}
          value={place}
          onInput={(event) => setPlace(Number(event.currentTarget.value))}
        />
      )}
      <div class="legend">
        {used.map((kind) => (
          <span key={kind}>
            <Swatch fill={fill(kind)} />
            {timeline.classes[kind]}
          </span>
        ))}
      </div>
    </Card>
  );
}

function PanelChart({
  panel,
  timeline,
  bars,
  zoom,
  place,
  fill,
}: {
  panel: Panel;
  timeline: Timeline;
  bars: Bar[];
  zoom: number;
  place: number;
  fill: (kind: number) => string;
}): JSX.Element {
  const end = Math.max(...bars.map((bar) => bar.end));
  const span = end / zoom;
  const from = (end - span) * place;
  const seen = bars.filter((bar) => bar.end > from && bar.start < from + span);
  return (
    <Chart
      draw={(width) => {
        const left = Math.min(120, 14 + 6.6 * Math.max(...timeline.lanes.map((lane) => lane.name.length)));
        const x = linear(from, from + span, left, width - 8);
        const lane = panel.lanes.length > 8 ? 18 : 24;
        const top = panel.title ? 20 : 0;
        const row = (index: number): number => top + panel.lanes.indexOf(index) * lane;
        const bottom = top + panel.lanes.length * lane;
        const clip = (at: number): number => Math.min(Math.max(x(at), left), width - 8);
        return (
          <Drawing
            width={width}
            height={bottom + 28}
            label={`${panel.title || "timeline of one step"}: ${time(end)}, ${panel.lanes.length} lanes`}
          >
            {panel.title && (
              <Label x={0} y={11} role="b">
                {panel.title}
              </Label>
            )}
            {panel.lanes.map((index) => (
              <g key={index}>
                <Label x={0} y={row(index) + lane / 2 + 2} role="m">
                  {timeline.lanes[index]!.name}
                  {timeline.lanes[index]!.members > 1 ? ` ×${timeline.lanes[index]!.members}` : ""}
                </Label>
                <rect x={left} y={row(index)} width={width - 8 - left} height={lane - 5} fill="var(--raised)" />
              </g>
            ))}
            {joinNarrow(seen, x).map((bar, i) => {
              const wide = clip(bar.end) - clip(bar.start);
              return (
                <rect
                  key={i}
                  x={clip(bar.start).toFixed(2)}
                  y={row(bar.lane)}
                  width={Math.max(0.6, wide - (wide > 4 ? 0.8 : 0)).toFixed(2)}
                  height={lane - 5}
                  fill={fill(bar.kind)}
                >
                  <title>{`${bar.label}, ${timeline.classes[bar.kind]}: ${time(bar.end - bar.start)}`}</title>
                </rect>
              );
            })}
            {ticks(from, from + span, width < 520 ? 3 : 7).map((t) => (
              <g key={t}>
                <Line x1={x(t)} y1={bottom} x2={x(t)} y2={bottom + 4} role="ax" />
                <Label
                  x={x(t)}
                  y={bottom + 18}
                  role="m"
                  anchor={x(t) > width - 30 ? "end" : x(t) < left + 12 ? "start" : "middle"}
                >
                  {time(t)}
                </Label>
              </g>
            ))}
          </Drawing>
        );
      }}
    />
  );
}
