// State is the address: #/plan?model=...&on=... Keys are the options of the view's verb; defaults are left out.
import { useEffect, useState } from "preact/hooks";

export type Query = Record<string, string>;
export interface Place {
  view: string;
  query: Query;
}

export function read(hash: string): Place {
  const match = /^#\/([\w-]+)(?:\?(.*))?$/.exec(hash);
  return { view: match?.[1] ?? "", query: Object.fromEntries(new URLSearchParams(match?.[2] ?? "")) };
}

export function write({ view, query }: Place): string {
  const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  // these characters are safe in a fragment, and an address that can be read is worth more
  const text = params
    .toString()
    .replace(/%(3A|2C|40|2F|3D)/g, (code) => (code === "%3D" ? code : decodeURIComponent(code)));
  return `#/${view}${text ? `?${text}` : ""}`;
}

const listeners = new Set<() => void>();
let current: Place = { view: "", query: {} };
const changed = (): void => {
  current = read(location.hash);
  for (const one of listeners) one();
};
if (typeof window !== "undefined") {
  current = read(location.hash);
  window.addEventListener("hashchange", changed);
  window.addEventListener("popstate", changed);
}

/** Goes to a place: `replace` while something is dragged, else with a step of history. */
export function go(place: Place, replace = false): void {
  const hash = write(place);
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  changed();
}
/** Changes some keys of the query; an empty value removes one. */
export const change = (part: Query, replace = false): void =>
  go({ view: current.view, query: { ...current.query, ...part } }, replace);
export const here = (): Place => current;
/** What stays from one request to another: theme, units and pins. */
export const keepLook = (query: Query): Query =>
  Object.fromEntries(["theme", "units", "pin"].flatMap((key) => (query[key] ? [[key, query[key]]] : [])));

export function usePlace(): Place {
  const [, redraw] = useState(0);
  useEffect(() => {
    const one = (): void => redraw((n) => n + 1);
    listeners.add(one);
    return () => {
      listeners.delete(one);
    };
  }, []);
  return current;
}
