import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { v } from "../../engine/request";
import { Chart, Drawing, Label, Line, mix } from "../../draw/svg";
import { clamp, joinNarrow, linear, ticks } from "../../draw/scale";
import type { Bar } from "../../draw/scale";
import { Card } from "../../parts/card";
import { Swatch } from "../../parts/basics";
import { time } from "../../text/format";
import { openInPerfetto } from "./perfetto";
import type { Timeline } from "./perfetto";

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

/** What is seen of a timeline, as shares of its whole. */
interface Window {
  from: number;
  span: number;
}
const whole: Window = { from: 0, span: 1 };
const least = 1 / 4096;
export const zoomed = ({ from, span }: Window, factor: number, at: number): Window => {
  const next = clamp(span / factor, least, 1);
  return { from: clamp(from + (span - next) * at, 0, 1 - next), span: next };
};
export const panned = ({ from, span }: Window, by: number): Window => ({
  from: clamp(from + by * span, 0, 1 - span),
  span,
});

/** "F3.1" is the forward pass of microbatch 3, in the second of the stage's parts. */
export function barWords(label: string, kind: string): string {
  const match = /^(?:[A-Z]+|send )(\d+)(?:\.(\d+))?(?: …)?$/.exec(label);
  if (!match) return label === kind ? kind : `${label}, ${kind}`;
  return `${kind}, microbatch ${match[1]}${match[2] === undefined ? "" : `, part ${match[2]}`}`;
}

export function TimelineCard({ timeline }: { timeline: Timeline | undefined }): JSX.Element | null {
  const [seen, look] = useState(whole);
  useEffect(() => look(whole), [timeline]);
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
  const button = (name: string, label: string, act: () => void, off: boolean): JSX.Element => (
    <button type="button" class="btn quiet" aria-label={label} disabled={off} onClick={act}>
      {name}
    </button>
  );
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
        <>
          {button("−", "Zoom out", () => look(zoomed(seen, 0.5, 0.5)), seen.span >= 1)}
          {button("+", "Zoom in", () => look(zoomed(seen, 2, 0.5)), seen.span <= least)}
          {button("Whole step", "Show the whole step", () => look(whole), seen.span >= 1)}
          {button("Perfetto", "Open in Perfetto", () => openInPerfetto(timeline), false)}
        </>
      }
    >
      {panels.map((panel) => (
        <PanelChart
          key={panel.title}
          panel={panel}
          timeline={timeline}
          bars={bars.filter((bar) => panel.lanes.includes(bar.lane))}
          seen={seen}
          look={look}
          fill={fill}
        />
      ))}
      <div class="legend">
        {used.map((kind) => (
          <span key={kind}>
            <Swatch fill={fill(kind)} />
            {timeline.classes[kind]}
          </span>
        ))}
        <span>drag to move, Ctrl and the wheel to zoom, or arrows, + and −</span>
      </div>
    </Card>
  );
}

interface Hint {
  x: number;
  y: number;
  text: string;
}
function PanelChart({
  panel,
  timeline,
  bars,
  seen,
  look,
  fill,
}: {
  panel: Panel;
  timeline: Timeline;
  bars: Bar[];
  seen: Window;
  look: (seen: Window) => void;
  fill: (kind: number) => string;
}): JSX.Element {
  const [hint, setHint] = useState<Hint | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const held = useRef<{ x: number; seen: Window } | null>(null);
  const now = useRef(seen);
  now.current = seen;
  const end = Math.max(...bars.map((bar) => bar.end));
  const from = end * seen.from;
  const to = from + end * seen.span;
  const inside = bars.filter((bar) => bar.end > from && bar.start < to);
  const left = Math.min(120, 14 + 6.6 * Math.max(...timeline.lanes.map((lane) => lane.name.length)));
  const lane = panel.lanes.length > 8 ? 18 : 24;
  const top = panel.title ? 20 : 0;
  /** Where in the picture, as a share of what is seen. */
  const shareAt = (clientX: number): number => {
    const box = place.current!.getBoundingClientRect();
    return clamp((clientX - box.left - left) / (box.width - 8 - left), 0, 1);
  };
  // a wheel that zooms must not scroll, which only a listener that is not passive can prevent
  useEffect(() => {
    const element = place.current;
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      look(
        event.ctrlKey || event.metaKey
          ? zoomed(now.current, 2 ** (-event.deltaY / 200), shareAt(event.clientX))
          : panned(now.current, event.deltaX / 600),
      );
    };
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, [left]);
  const hover = (event: PointerEvent): void => {
    const box = place.current!.getBoundingClientRect();
    const at = from + shareAt(event.clientX) * (to - from);
    const index = panel.lanes[Math.floor((event.clientY - box.top - top) / lane)];
    const bar = inside.find((one) => one.lane === index && one.start <= at && at <= one.end);
    setHint(
      bar && event.clientX > box.left + left
        ? {
            x: Math.min(event.clientX + 12, window.innerWidth - 280),
            y: event.clientY + 14,
            text: `${timeline.lanes[bar.lane]!.name}: ${barWords(bar.label, timeline.classes[bar.kind] ?? "")}, ${time(bar.end - bar.start)}`,
          }
        : null,
    );
  };
  return (
    <div
      class={`timeline${seen.span < 1 ? " grab" : ""}`}
      ref={place}
      tabIndex={0}
      role="application"
      aria-label={`${panel.title || "Timeline of one step"}: arrows move, + and − zoom`}
      onPointerDown={(event) => {
        held.current = { x: event.clientX, seen };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (held.current && event.buttons > 0) {
          setHint(null);
          const box = event.currentTarget.getBoundingClientRect();
          look(panned(held.current.seen, (held.current.x - event.clientX) / (box.width - 8 - left)));
        } else hover(event);
      }}
      onPointerUp={() => (held.current = null)}
      onPointerLeave={() => setHint(null)}
      onDblClick={(event) => look(zoomed(seen, 4, shareAt(event.clientX)))}
      onKeyDown={(event) => {
        const next: Record<string, Window> = {
          ArrowLeft: panned(seen, -0.2),
          ArrowRight: panned(seen, 0.2),
          "+": zoomed(seen, 2, 0.5),
          "-": zoomed(seen, 0.5, 0.5),
          Home: whole,
        };
        const found = next[event.key];
        if (!found) return;
        event.preventDefault();
        look(found);
      }}
    >
      <Chart
        draw={(width) => {
          const x = linear(from, to, left, width - 8);
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
              {joinNarrow(inside, x).map((bar, i) => {
                const wide = clip(bar.end) - clip(bar.start);
                return (
                  <rect
                    key={i}
                    x={clip(bar.start).toFixed(2)}
                    y={row(bar.lane)}
                    width={Math.max(0.6, wide - (wide > 4 ? 0.8 : 0)).toFixed(2)}
                    height={lane - 5}
                    fill={fill(bar.kind)}
                  />
                );
              })}
              {ticks(from, to, width < 520 ? 3 : 7).map((t) => (
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
      {hint && (
        <div class="tip" style={{ left: `${hint.x}px`, top: `${hint.y}px` }}>
          {hint.text}
        </div>
      )}
    </div>
  );
}
