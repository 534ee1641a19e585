// Every number opens: the drawer shows one step at a time, the tree all of them.
import type { ComponentChildren, JSX } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Request } from "../engine/ask";
import { useAsk } from "../engine/ask";
import { withArguments } from "../engine/request";
import type { Derivation } from "../engine/schema";
import { alike, percent, quantity } from "../text/format";
import { change, here, usePlace } from "../url";
import { DerivationContext, Between } from "./basics";
import type { Node } from "./basics";
import { copy, toast } from "./share";

/** All nodes by name; a repeated one is found at its full place. */
function byName(trees: readonly Derivation[]): Map<string, Derivation> {
  const map = new Map<string, Derivation>();
  const walk = (node: Derivation): void => {
    const known = map.get(node.name);
    if (!known || (known.repeated && !node.repeated)) map.set(node.name, node);
    node.from?.forEach(walk);
  };
  trees.forEach(walk);
  return map;
}

const additive = (node: Derivation): boolean => !/[*/]|max\(|min\(/.test(node.formula ?? "");
const written = (node: Derivation, parent?: Derivation): string =>
  parent && node.unit === parent.unit && additive(parent) && node.value !== null && parent.value !== null
    ? alike(parent.value, parent.unit, 1)(node.value)
    : quantity(node.value, node.unit);

function asMarkdown(node: Node): string {
  const lines = [`**${node.name}** = ${quantity(node.value, node.unit)}`];
  if (node.formula) lines.push("", `\`${node.name} = ${node.formula}\``);
  for (const part of node.from ?? [])
    lines.push(
      `- ${part.name}: ${quantity(part.value, part.unit)}${part.source ? ` (${part.source})` : part.formula ? ` = ${part.formula}` : ""}`,
    );
  if (node.source) lines.push("", `Source: ${node.source}`);
  return lines.join("\n");
}

function Drawer({
  node,
  trail,
  find,
  step,
  back,
  close,
}: {
  node: Node;
  trail: Node[];
  find: (name: string) => Derivation | undefined;
  step: (node: Derivation) => void;
  back: (index: number) => void;
  close: () => void;
}): JSX.Element {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus({ preventScroll: true }), [node]);
  const parts = node.from ?? (node.repeated ? find(node.name)?.from : undefined) ?? [];
  const opens = (part: Derivation): boolean => Boolean(part.from?.length || part.repeated);
  return (
    <div
      class="drawer"
      role="dialog"
      aria-labelledby="drawer-name"
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      <button type="button" class="btn quiet close" onClick={close}>
        Close
      </button>
      <nav class="crumbs" aria-label="Derivation">
        {trail.length === 0
          ? "Derivation"
          : trail.map((one, i) => (
              <>
                <button type="button" key={i} onClick={() => back(i)}>
                  {one.name}
                </button>
                <span aria-hidden="true">›</span>
              </>
            ))}
      </nav>
      <div>
        <h2 id="drawer-name" tabIndex={-1} ref={title}>
          {node.name}
        </h2>
        {node.pending ? <p class="muted">Being asked…</p> : <div class="val">{quantity(node.value, node.unit)}</div>}
        {node.interval && (
          <p class="muted">
            <Between interval={node.interval} />: {node.interval.rows ?? "no"} measurements
            {node.interval.basis ? ` of ${node.interval.basis}` : ""}
            {node.interval.extrapolates
              ? `; extrapolates${node.interval.extrapolates_in?.length ? ` in ${node.interval.extrapolates_in.join(", ")}` : ""}`
              : ""}
          </p>
        )}
        {node.note && <p class="muted">{node.note}</p>}
        {node.bound_by && <p class="muted">Bound by {node.bound_by}</p>}
      </div>
      {node.formula && (
        <div class="formula">
          {node.name} = {node.formula}
        </div>
      )}
      {node.source && (
        <p class="muted">
          Source: <span class="mono">{node.source}</span>
        </p>
      )}
      {parts.length > 0 && (
        <ul class="from">
          {parts.map((part, i) => (
            <li key={`${part.name}${i}`}>
              {opens(part) ? (
                <button type="button" class="go" onClick={() => step(part.repeated ? (find(part.name) ?? part) : part)}>
                  {part.name}
                </button>
              ) : (
                <span>{part.name}</span>
              )}
              <b>{written(part, node)}</b>
              {part.source ? (
                <span class="src">{part.source}</span>
              ) : part.formula ? (
                <span class="src">= {part.formula}</span>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {!node.pending && (
        <p class="muted">
          Exact value:{" "}
          <span class="mono">
            {node.value} {node.unit}
          </span>
          {node.unit === "" && node.value !== null && Math.abs(node.value) <= 1 ? ` (${percent(node.value, 4)})` : ""}
        </p>
      )}
      <div class="acts">
        <button type="button" class="btn" onClick={() => void copy(asMarkdown(node), node.name)}>
          Copy as Markdown
        </button>
        <button
          type="button"
          class="btn"
          onClick={() => void copy(`${asMarkdown(node)}\n\n${location.href}`, "the number with its permalink")}
        >
          Copy with permalink
        </button>
      </div>
    </div>
  );
}

/** The trees of the answer that is shown, asked for when the first of them is looked at. */
export interface Trees {
  trees: readonly Derivation[] | undefined;
  want: () => void;
}
const noTrees: Trees = { trees: undefined, want: () => undefined };
const TreesContext = createContext<Trees>(noTrees);

/**
 * Gives numbers below it their derivations: those that the answer has or, where `request` is given, those of its answer once
 * one is looked at. Which one is open is part of the address.
 */
export function Derived({
  trees: given,
  request = null,
  extra = [],
  children,
}: {
  trees?: readonly Derivation[] | undefined;
  request?: Request | null;
  extra?: readonly Node[];
  children: ComponentChildren;
}): JSX.Element {
  const place = usePlace();
  const asked = place.query.open ?? "";
  const [wanted, want] = useState(asked !== "");
  const explained = useAsk(wanted && request ? withArguments(request, { explain: "all" }) : null);
  const trees = given ?? (explained.busy ? undefined : explained.answer?.derivation);
  const known = trees !== undefined;
  const map = useMemo(() => byName(trees ?? []), [trees]);
  const own = useMemo(() => new Map(extra.map((node) => [node.name, node])), [extra]);
  const find = (name: string): Node | undefined => {
    const base = map.get(name);
    const more = own.get(name);
    if (more) return { ...base, ...more };
    return base ?? (known ? undefined : { name, value: null, unit: "", pending: true });
  };
  const [trail, setTrail] = useState<Node[]>([]);
  const [shown, setShown] = useState<Node | null>(null);
  const opener = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (!asked) setShown(null);
    else if (shown?.name !== asked) {
      want(true);
      const node = find(asked);
      if (node) setShown(node);
    }
  }, [asked, map]);
  // an answer that changed while a derivation is open shows its new number
  useEffect(() => {
    if (!shown) return;
    const node = find(shown.name);
    if (node && (!node.pending || shown.pending)) setShown(node);
    else if (known && shown.pending) {
      close();
      toast(`${shown.name} has no derivation of its own`);
    }
  }, [map]);
  useEffect(() => {
    if (shown && !shown.pending && trail.length === 0 && own.has(shown.name)) setShown(find(shown.name) ?? null);
  }, [own]);
  const open = (node: Node): void => {
    opener.current = document.activeElement as HTMLElement | null;
    want(true);
    setTrail([]);
    setShown(node);
    change({ open: node.name }, true);
  };
  const close = (): void => {
    setTrail([]);
    setShown(null);
    change({ open: "" }, true);
    opener.current?.focus({ preventScroll: true });
  };
  useEffect(() => {
    if (!shown) return;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && here().query.open) close();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [shown]);
  return (
    <DerivationContext.Provider value={{ find, open }}>
      <TreesContext.Provider value={{ trees, want: () => want(true) }}>{children}</TreesContext.Provider>
      {shown && (
        <Drawer
          node={shown}
          trail={trail}
          find={find}
          close={close}
          step={(node) => {
            setTrail([...trail, shown]);
            setShown(node);
          }}
          back={(i) => {
            setShown(trail[i] ?? null);
            setTrail(trail.slice(0, i));
          }}
        />
      )}
    </DerivationContext.Provider>
  );
}

function Branch({
  node,
  parent,
  open,
  find,
}: {
  node: Derivation;
  parent?: Derivation;
  open: boolean;
  find: (name: string) => Derivation | undefined;
}): JSX.Element {
  const [shown, setShown] = useState(open);
  const parts = node.from ?? [];
  if (parts.length === 0) {
    return (
      <div class="leaf">
        <span>{node.name}</span>
        <span class="v">{written(node, parent)}</span>
        <span class="f">
          {node.source ? (
            <span class="src">{node.source}</span>
          ) : node.repeated ? (
            `= ${node.formula ?? ""}; opened above`
          ) : node.formula ? (
            `= ${node.formula}`
          ) : (
            ""
          )}
        </span>
      </div>
    );
  }
  return (
    <details open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span>{node.name}</span>
        <span class="v">{written(node, parent)}</span>
        <span class="f">{node.formula ? `= ${node.formula}` : ""}</span>
      </summary>
      {shown &&
        parts.map((part, i) => <Branch key={`${part.name}${i}`} node={part} parent={node} open={false} find={find} />)}
    </details>
  );
}
/** All derivations of the answer, asked for when they come into sight. */
export function Tree(): JSX.Element {
  const { trees, want } = useContext(TreesContext);
  const map = useMemo(() => byName(trees ?? []), [trees]);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = ref.current;
    if (!element || trees) return;
    const observer = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && want());
    observer.observe(element);
    return () => observer.disconnect();
  }, [trees]);
  return (
    <div class="tree" ref={ref}>
      {!trees && <p class="muted">Asked for when it is looked at…</p>}
      {trees?.map((node, i) => (
        <Branch key={node.name} node={node} open={i === 0} find={(name) => map.get(name)} />
      ))}
    </div>
  );
}
