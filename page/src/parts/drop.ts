// Files that are dropped anywhere on the page: what is in them says which view they are for, and the page stays.
import { useEffect, useState } from "preact/hooks";
import { filled } from "../engine/request";
import { change, go, here, keepLook } from "../url";
import { defaults } from "../views/plan/defaults";
import { kindOf, parsed } from "./kind";
import { isConfig } from "./model";
import { toast } from "./share";
import { bytes } from "../text/format";

const longestConfig = 200_000;
/** Takes the text of a config.json as the model of the view that is shown, if it has one. */
export async function takeConfig(file: Blob): Promise<void> {
  if (file.size > longestConfig) {
    toast(`A config.json is shorter than ${bytes(longestConfig)}; this has ${bytes(file.size)}`);
    return;
  }
  const text = await file.text();
  if (isConfig(text)) takeModel(text);
  else toast(`${named(file)} is no config.json: that begins with {`);
}
const named = (file: Blob): string => (file instanceof File ? file.name : "This");

const longestScript = 20_000;
/** Takes a launch script or configuration of another program as the request of Plan, or of Serve where that is shown. */
async function takeScript(file: File): Promise<void> {
  if (file.size > longestScript) {
    toast(`In a terminal: assay train --from ${file.name}; it is too long for an address`);
    return;
  }
  const { view, query } = here();
  const keep = { ...keepLook(query), ...(query.on ? { on: query.on } : {}) };
  go({ view: view === "serve" ? "serve" : "plan", query: { ...keep, from: (await file.text()).trimEnd() + "\n" } });
  toast(`The request is read from ${file.name}`);
}

let trace: File | null = null;
const traceReaders = new Set<() => void>();
export const setTrace = (file: File | null): void => {
  trace = file;
  for (const one of traceReaders) one();
};
/** The log of requests that Serve answers under load, if one was dropped. */
export const useTrace = (): File | null => useHeld(traceReaders, () => trace);

function useHeld<T>(readers: Set<() => void>, held: () => T): T {
  const [, redraw] = useState(0);
  useEffect(() => {
    const one = (): void => redraw((n) => n + 1);
    readers.add(one);
    return () => {
      readers.delete(one);
    };
  }, []);
  return held();
}
export function takeModel(text: string): void {
  const config = parsed(text);
  const model = isConfig(text) ? (config === undefined ? text.trim() : JSON.stringify(config)) : text.trim();
  const { view, query } = here();
  const rest = view === "serve" || "on" in query ? query : filled(query, defaults);
  if (view === "serve" || view === "plan" || view === "") change({ ...rest, model, open: "" });
  else go({ view: "plan", query: { ...keepLook(query), ...defaults, model } });
}

let dropped: readonly File[] = [];
const readers = new Set<() => void>();
export const setFiles = (files: readonly File[]): void => {
  dropped = files;
  for (const one of readers) one();
};
/** The files of the profile. */
export const useFiles = (): readonly File[] => useHeld(readers, () => dropped);

async function take(files: readonly File[]): Promise<void> {
  const file = files[0];
  if (!file) return;
  const kind = kindOf(new Uint8Array(await file.slice(0, 65536).arrayBuffer()));
  if (kind === "profile") {
    setFiles(files);
    if (here().view !== "profile") go({ view: "profile", query: keepLook(here().query) });
  } else if (kind === "model") {
    await takeConfig(file);
  } else if (kind === "script") {
    await takeScript(file);
  } else if (kind === "requests") {
    setTrace(file);
    if (here().view !== "serve") go({ view: "serve", query: keepLook(here().query) });
    toast(`${file.name} is served under load`);
  } else {
    toast(`${file.name} is no profile, compiled program, config.json, launch file or list of requests`);
  }
}

/** Takes files wherever they are dropped; while one is held over the page, the places that take files are outlined. */
export function useDrops(): void {
  useEffect(() => {
    const holdsFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const outline = (is: boolean): void => void document.body.classList.toggle("over", is);
    const over = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      outline(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) outline(false);
    };
    const drop = (event: DragEvent): void => {
      outline(false);
      if (!holdsFiles(event)) return;
      event.preventDefault();
      void take([...(event.dataTransfer?.files ?? [])]);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, []);
}
