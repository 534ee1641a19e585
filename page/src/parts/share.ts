// What leaves the page: copies and files, all made here in the browser.
import { thin } from "../text/format";

const listeners = new Set<(text: string) => void>();
export const onToast = (listener: (text: string) => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const toast = (text: string): void => listeners.forEach((one) => one(text));

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${what}`);
  } catch {
    // without permission for the clipboard the text is shown, to be copied by hand
    window.prompt(`Copy ${what}`, text);
  }
}

export function download(name: string, text: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  toast(`Saved ${name}`);
}

const cell = (value: string | number | null): string => {
  const text = value === null ? "" : String(value).replaceAll(thin, " ");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const csv = (rows: readonly (readonly (string | number | null)[])[]): string =>
  rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";

/** An SVG that stands alone: the colours it names are written into it. */
export function drawingText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const style = getComputedStyle(document.documentElement);
  const names = [
    "ink",
    "muted",
    "grid",
    "edge",
    "surface",
    "raised",
    "accent",
    "accent-soft",
    "good",
    "bad",
    "bad-bg",
    "partial",
    "s1",
    "s2",
    "s3",
    "s4",
    "s5",
    "s6",
    "s7",
    "s8",
  ];
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "style");
  sheet.textContent = `:root{${names.map((name) => `--${name}:${style.getPropertyValue(`--${name}`)}`).join(";")}}text{font:12px Inter,system-ui,sans-serif;fill:var(--ink)}.m{fill:var(--muted)}.b{font-weight:600}.gl{stroke:var(--grid)}.ax{stroke:var(--edge)}.halo{paint-order:stroke;stroke:var(--surface);stroke-width:4;stroke-linejoin:round}`;
  copy.prepend(sheet);
  const patterns = document.querySelector(".patterns defs");
  if (patterns) copy.prepend(patterns.cloneNode(true));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}
