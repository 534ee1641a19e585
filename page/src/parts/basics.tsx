import type { ComponentChildren, JSX } from "preact";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Derivation, Interval } from "../engine/schema";
import { bytesRange, percent, siRange, timeRange, usdRange } from "../text/format";

/** A number with what is known about where it comes from. */
export interface Node extends Derivation {
  interval?: Interval;
  note?: string;
  /** Its derivation has not come yet. */
  pending?: boolean;
}
export interface Derivations {
  find: (name: string) => Node | undefined;
  open: (node: Node) => void;
}
export const DerivationContext = createContext<Derivations>({ find: () => undefined, open: () => undefined });

/** Names and values, one a line. */
export function Figures({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="figures">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A number that opens to its derivation: by name, or with a node of its own. Without either it is plain text. */
export function Num({ of, children }: { of?: string | Node; children: ComponentChildren }): JSX.Element {
  const { find, open } = useContext(DerivationContext);
  const node = typeof of === "string" ? find(of) : of;
  if (!node) return <span class="nowrap">{children}</span>;
  return (
    <button type="button" class="num" onClick={() => open(node)} title={`How ${node.name} is derived`}>
      {children}
    </button>
  );
}

const writer: Record<string, (a: number, b: number) => string> = { s: timeRange, B: bytesRange, USD: usdRange };
/** Where measurements put an estimate: 5.78–8.77 s · 80 %. */
export function Between({
  interval,
  scale = 1,
  unit,
  share = true,
}: {
  interval: Interval | undefined;
  scale?: number;
  unit?: string;
  share?: boolean;
}): JSX.Element | null {
  if (!interval || interval.low.value === null || interval.high.value === null)
    return <span class="iv">ideal hardware only</span>;
  const name = unit ?? interval.low.unit;
  const text = (writer[name] ?? ((a: number, b: number) => siRange(a, b, name)))(
    interval.low.value * scale,
    interval.high.value * scale,
  );
  return (
    <span class="iv">
      {text}
      {share && ` · ${percent(interval.coverage, 2)}`}
    </span>
  );
}

export type Verdict = "fits" | "tight" | "no";
export const verdictWord: Record<Verdict, string> = { fits: "Fits", tight: "Tight", no: "Does not fit" };
export function Icon({ verdict, size = 18 }: { verdict: Verdict; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 18 18" aria-hidden="true">
      {verdict === "fits" && <path d="M4 9.5 7.5 13 14 5.5" fill="none" stroke="currentColor" stroke-width="2.4" />}
      {verdict === "tight" && (
        <path d="M9 2 17 16H1zM9 7v4M9 12.6v1.6" fill="none" stroke="currentColor" stroke-width="1.8" />
      )}
      {verdict === "no" && <path d="M4.5 4.5l9 9m0-9-9 9" fill="none" stroke="currentColor" stroke-width="2.4" />}
    </svg>
  );
}
export const Tag = ({
  verdict,
  children,
}: {
  verdict: Verdict | "plain";
  children: ComponentChildren;
}): JSX.Element => (
  <span class={`tag ${verdict}`}>
    {verdict !== "plain" && <Icon verdict={verdict} size={11} />}
    {children}
  </span>
);

/** "dp 64, tp 4, zero 1" as chips. */
export const Plan = ({ strategy }: { strategy: string }): JSX.Element => (
  <span class="kv">
    {strategy.split(", ").map((part) => {
      const match = /^(.*?) (\d+)$/.exec(part);
      return (
        <span key={part}>
          {match ? (
            <>
              {match[1]} <b>{match[2]}</b>
            </>
          ) : (
            part
          )}
        </span>
      );
    })}
  </span>
);

export const Extrapolates = ({ interval }: { interval: Interval | undefined }): JSX.Element | null =>
  interval?.extrapolates ? (
    <span class="tag tight" title="The interval comes from measurements that do not reach this far">
      Extrapolates{interval.extrapolates_in?.length ? ` in ${interval.extrapolates_in.join(", ")}` : ""}
    </span>
  ) : null;

export function Callout({
  kind,
  children,
  actions,
}: {
  kind: Verdict | "info";
  children: ComponentChildren;
  actions?: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`say ${kind}`}>
      {kind !== "info" && (
        <span class={`v-${kind}`}>
          <Icon verdict={kind} />
        </span>
      )}
      <div class="words">{children}</div>
      {actions && <div class="acts">{actions}</div>}
    </div>
  );
}

export const Fact = ({
  question,
  big,
  verdict,
  waits = false,
  children,
}: {
  question: string;
  big: ComponentChildren;
  verdict?: Verdict;
  /** What it says is being asked. */
  waits?: boolean;
  children?: ComponentChildren;
}): JSX.Element => (
  <div class={`fact${waits ? " waits" : ""}`}>
    <h2>{question}</h2>
    <div class={`big${verdict ? ` verdict v-${verdict}` : ""}`}>
      {verdict && <Icon verdict={verdict} />}
      {big}
    </div>
    {children}
  </div>
);

export const Swatch = ({ fill }: { fill: string }): JSX.Element => (
  <svg class="sw" width="12" height="12" aria-hidden="true">
    <rect width="12" height="12" rx="2" fill={fill} />
  </svg>
);

/** A bar in a table: from zero to the value, or both ways from `zero`. */
export function Track({
  value,
  least = 0,
  most,
  fill,
  at,
}: {
  value: number;
  least?: number;
  most: number;
  fill: string;
  at?: number;
}): JSX.Element {
  const span = most - least || 1;
  const place = (x: number): number => Math.min(100, Math.max(0, (100 * (x - least)) / span));
  const zero = place(0);
  const end = place(value);
  return (
    <svg class="track" width="100%" height="12" aria-hidden="true">
      <rect
        x={`${Math.min(zero, end)}%`}
        y="1"
        width={`${Math.max(0.8, Math.abs(end - zero))}%`}
        height="10"
        rx="2"
        fill={fill}
      />
      {least < 0 && <line x1={`${zero}%`} x2={`${zero}%`} y1="0" y2="12" class="ax" />}
      {at !== undefined && (
        <line x1={`${place(at)}%`} x2={`${place(at)}%`} y1="0" y2="12" stroke="var(--ink)" stroke-width="2" />
      )}
    </svg>
  );
}

/** A bar of what a change gains, in another colour where it loses. */
export const Gain = ({ value, least, most }: { value: number; least: number; most: number }): JSX.Element => (
  <Track value={value} least={least} most={most} fill={value < 0 ? "var(--s2)" : "var(--accent)"} />
);
