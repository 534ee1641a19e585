// What charts are drawn with: text, lines and marks whose roles style.css colours.
import type { ComponentChildren, JSX, SVGAttributes } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { tick as tickText } from "../text/format";
import type { Scale } from "./scale";

/** The width of an element, followed as it changes. */
function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = (): void => set(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

interface Size {
  width: number;
  height: number;
}
export function Drawing({
  width,
  height,
  label,
  children,
  interactive,
  svgRef,
}: Size & {
  label: string;
  children: ComponentChildren;
  interactive?: boolean;
  svgRef?: { current: SVGSVGElement | null };
}): JSX.Element {
  return (
    <svg
      ref={svgRef}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role={interactive ? "group" : "img"}
      aria-label={label}
    >
      {children}
    </svg>
  );
}

const narrowest = 140; // below it a drawing is shrunk as a whole
/** A chart as wide as its place: drawn anew when that changes. */
export function Chart({ draw }: { draw: (width: number) => ComponentChildren }): JSX.Element {
  const [ref, width] = useWidth();
  return (
    <div class="chart" ref={ref}>
      {width > 0 && draw(Math.max(width, narrowest))}
    </div>
  );
}

type Anchor = "start" | "middle" | "end";
export function Label({
  x,
  y,
  children,
  role = "",
  anchor = "start",
  halo = false,
}: {
  x: number;
  y: number;
  children: ComponentChildren;
  role?: string;
  anchor?: Anchor;
  halo?: boolean;
}): JSX.Element {
  return (
    <text x={x.toFixed(1)} y={y.toFixed(1)} class={`${role}${halo ? " halo" : ""}`} text-anchor={anchor}>
      {children}
    </text>
  );
}
export function Line({
  x1,
  y1,
  x2,
  y2,
  role = "gl",
  dash,
  width,
  stroke,
}: {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  role?: string;
  dash?: string;
  width?: number;
  stroke?: string;
}): JSX.Element {
  return (
    <line
      x1={x1.toFixed(1)}
      y1={y1.toFixed(1)}
      x2={x2.toFixed(1)}
      y2={y2.toFixed(1)}
      class={stroke ? undefined : role}
      stroke={stroke}
      stroke-dasharray={dash}
      stroke-width={width}
    />
  );
}
export const points = (list: readonly (readonly [number, number])[]): string =>
  list.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

export type Shape = "circle" | "square" | "triangle" | "diamond";
export function markPath(shape: Shape, x: number, y: number, r: number): string {
  const at = (a: number): string => a.toFixed(1);
  switch (shape) {
    case "circle":
      return `M${at(x - r)},${at(y)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`;
    case "square":
      return `M${at(x - r * 0.9)},${at(y - r * 0.9)}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`;
    case "triangle":
      return `M${at(x)},${at(y - 1.2 * r)}l${1.15 * r},${2.1 * r}h${-2.3 * r}z`;
    case "diamond":
      return `M${at(x)},${at(y - 1.3 * r)}l${1.3 * r},${1.3 * r}l${-1.3 * r},${1.3 * r}l${-1.3 * r},${-1.3 * r}z`;
  }
}
export const Mark = ({
  shape,
  x,
  y,
  r,
  ...rest
}: { shape: Shape; x: number; y: number; r: number } & SVGAttributes<SVGPathElement>): JSX.Element => (
  <path d={markPath(shape, x, y, r)} {...rest} />
);
export const shapes: readonly Shape[] = ["circle", "square", "triangle", "diamond"];
export const dashes: readonly string[] = ["", "7 3", "2 3", "9 3 2 3"];
export const mix = (role: string, share: number): string =>
  `color-mix(in srgb, var(--${role}) ${share}%, var(--surface))`;

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}
/** Grid, labels and titles of both axes. */
export function Axes({
  frame,
  x,
  y,
  xTicks,
  yTicks,
  xTitle,
  yTitle,
  xUnit = "",
  yUnit = "",
  upright = false,
}: {
  frame: Frame;
  x: Scale;
  y: Scale;
  xTicks: number[];
  yTicks: number[];
  xTitle: string;
  yTitle: string;
  xUnit?: string;
  yUnit?: string;
  upright?: boolean;
}): JSX.Element {
  return (
    <g>
      {yTicks.map((t) => (
        <g key={t}>
          <Line x1={frame.left} y1={y(t)} x2={frame.right} y2={y(t)} />
          <Label x={frame.left - 8} y={y(t) + 4} role="m" anchor="end">
            {tickText(t, yUnit)}
          </Label>
        </g>
      ))}
      {xTicks.map((t) => (
        <g key={t}>
          {upright && <Line x1={x(t)} y1={frame.top} x2={x(t)} y2={frame.bottom} />}
          <Label
            x={x(t)}
            y={frame.bottom + 18}
            role="m"
            anchor={x(t) > frame.right - 16 ? "end" : x(t) < frame.left + 10 ? "start" : "middle"}
          >
            {tickText(t, xUnit)}
          </Label>
        </g>
      ))}
      <Label x={0} y={frame.top - 13} role="m">
        {yTitle}
      </Label>
      <Label x={frame.left} y={frame.bottom + 38} role="m">
        {xTitle}
      </Label>
    </g>
  );
}
/** Patterns that say without colour what colour says: partial, too slow, too much. */
export function Patterns(): JSX.Element {
  const stripes = (
    id: string,
    size: number,
    ground: string | null,
    fill: string,
    wide: number,
    opacity = 1,
  ): JSX.Element => (
    <pattern id={id} width={size} height={size} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      {ground && <rect width={size} height={size} fill={ground} />}
      <rect width={wide} height={size} fill={fill} opacity={opacity} />
    </pattern>
  );
  return (
    <svg width="0" height="0" class="patterns" aria-hidden="true">
      <defs>
        {stripes("stripe-arithmetic", 5, "var(--surface)", "var(--s1)", 2.4)}
        {stripes("stripe-network", 6, "var(--surface)", "var(--s2)", 2)}
        {stripes("stripe-muted", 6, null, "var(--edge)", 1, 0.55)}
        {stripes("stripe-bad", 6, "var(--bad-bg)", "var(--bad)", 1.6)}
        {stripes("stripe-partial", 6, null, "var(--surface)", 3, 0.75)}
      </defs>
    </svg>
  );
}

/** Steps from `from` to `to` while it plays; the reader can pause, step and drag. */
export function usePlay(
  steps: number,
  at: number,
  set: (step: number) => void,
): { playing: boolean; toggle: () => void } {
  const [playing, play] = useState(false);
  useEffect(() => {
    if (!playing) return;
    const timer = window.setTimeout(() => {
      if (at + 1 >= steps) play(false);
      else set(at + 1);
    }, 900);
    return () => window.clearTimeout(timer);
  }, [playing, at, steps]);
  return {
    playing,
    toggle: () => {
      if (!playing && at + 1 >= steps) set(0);
      play(!playing);
    },
  };
}
