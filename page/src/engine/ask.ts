// The one way to ask the engine: a server of the page's own address, or a worker in this browser. Views cannot tell which.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Arguments, Derivation, Fault, Results, Verb } from "./schema";

export interface Request<V extends Verb = Verb> {
  verb: V;
  arguments: Arguments;
  /** Whether the engine draws the answer, too, or each of its steps. */
  picture?: "still" | "steps";
}
export interface Answer<V extends Verb = Verb> {
  version: string;
  headline: string;
  outcome: "ok" | "infeasible" | "check failed";
  inputs: Record<string, unknown>;
  results: Results[V];
  notes?: string[];
  derivation?: Derivation[];
  pictures?: string[];
}
export interface Refusal {
  error: Fault;
  request?: string;
}
export type Reply<V extends Verb = Verb> = Answer<V> | Refusal;
export const refused = (reply: Reply): reply is Refusal => "error" in reply;

/** A file that comes with a request, which names it. */
export type Attached = readonly File[];

/** `behind`: nobody waits for it before the next request. */
type Send = (request: string, signal: AbortSignal, files?: Attached, behind?: boolean) => Promise<unknown>;
export interface Engine {
  kind: "server" | "browser";
  send: Send;
}
/** The engine has no answer now, but may have one soon: it is busy or out of reach. */
export class Unavailable extends Error {}

const reachListeners = new Set<(reached: boolean) => void>();
/** Tells whether the engine answers, whenever that changes. */
export function onReach(listener: (reached: boolean) => void): () => void {
  reachListeners.add(listener);
  return () => reachListeners.delete(listener);
}
const reached = (is: boolean): void => reachListeners.forEach((one) => one(is));

function form(request: string, files: Attached): FormData {
  const out = new FormData();
  out.set("request", request);
  for (const file of files) out.append("file", file, file.name);
  return out;
}

const overHttp: Send = async (request, signal, files) => {
  let response: Response;
  try {
    response = await fetch(
      "api",
      files
        ? { method: "POST", body: form(request, files), signal }
        : { method: "POST", body: request, signal, headers: { "content-type": "application/json" } },
    );
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Unavailable("the engine does not answer");
  }
  if (response.status === 503 || response.status === 502) throw new Unavailable("the engine is busy");
  return response.json().catch(() => {
    throw new Unavailable("the engine's answer cannot be read");
  });
};

/** A file as the engine in the browser takes it: it has no gzip of its own. */
async function content(file: File): Promise<{ name: string; bytes: Uint8Array }> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return { name: file.name, bytes };
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return { name: file.name, bytes: new Uint8Array(await new Response(plain).arrayBuffer()) };
}

interface Job {
  request: string;
  files: { name: string; bytes: Uint8Array }[] | undefined;
  signal: AbortSignal;
  done: (answer: unknown) => void;
  fail: (error: Error) => void;
}
const superseded = (): Error => new DOMException("superseded", "AbortError");
const patience = 300; // how long a superseded answer may hold up the next, in ms: starting anew takes about as long

/**
 * A worker answers one request after the other and cannot be stopped in one: what is superseded is never handed over, and
 * where it runs already and others wait, the worker is started anew.
 */
function inWorker(): Send {
  const waiting: Job[] = [];
  let current: Job | null = null;
  let worker = open();
  function open(): Worker {
    const one = new Worker("engine_worker.js");
    one.onmessage = (event: MessageEvent<{ id: number; answer: string }>) => {
      const job = current;
      current = null;
      job?.done(JSON.parse(event.data.answer));
      next();
    };
    one.onerror = () => {
      for (const job of [current, ...waiting.splice(0)])
        job?.fail(new Unavailable("the engine did not start in this browser"));
      current = null;
    };
    return one;
  }
  let id = 0;
  function next(): void {
    while (!current && waiting.length > 0) {
      const job = waiting.shift()!;
      if (job.signal.aborted) job.fail(superseded());
      else {
        current = job;
        worker.postMessage({ id: id++, request: job.request, files: job.files });
      }
    }
  }
  return async (request, signal, attached) => {
    const files = attached && (await Promise.all(attached.map(content)));
    return new Promise((done, fail) => {
      const job: Job = { request, files, signal, done, fail };
      signal.addEventListener("abort", () => {
        if (job !== current) return;
        window.setTimeout(() => {
          if (job !== current || !waiting.some((one) => !one.signal.aborted)) return;
          worker.terminate();
          current = null;
          job.fail(superseded());
          worker = open();
          next();
        }, patience);
      });
      waiting.push(job);
      next();
    });
  };
}

/** Two engines in this browser: what follows behind an answer does not hold up the next one. */
function inWorkers(): Send {
  const first = inWorker();
  let second: Send | undefined;
  return (request, signal, files, behind) => (behind ? (second ??= inWorker()) : first)(request, signal, files);
}

async function start(): Promise<Engine> {
  try {
    const health = await fetch("health");
    if (health.ok && ((await health.json()) as { engine?: string }).engine === "native")
      return { kind: "server", send: overHttp };
  } catch {
    // no server: a folder of files
  }
  // a folder of files works without a network once it has been read
  if ("serviceWorker" in navigator) navigator.serviceWorker.register("offline.js").catch(() => undefined);
  return { kind: "browser", send: inWorkers() };
}
let engine: Promise<Engine> | undefined;
export const theEngine = (): Promise<Engine> => (engine ??= start());

const canonical = (request: Request): string => {
  const list = Object.entries(request.arguments).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  return JSON.stringify({
    verb: request.verb,
    arguments: Object.fromEntries(list.sort(([a], [b]) => (a < b ? -1 : 1))),
    picture: request.picture,
  });
};
const cache = new Map<string, Reply>();
const keep = 48;

/** Sets of measurements whose accuracy the build asked for: each takes the engine seconds. */
const recorded = new Set(["training", "training-memory", "inference-tpot", "inference-ttft"]);
/** The answer that came with the page, if this request has one. */
async function recordedAnswer(request: Request, signal: AbortSignal): Promise<unknown> {
  const { set, by, ...others } = request.arguments;
  if (request.verb !== "validate" || by !== "hardware" || !recorded.has(String(set)) || Object.keys(others).length > 0)
    return undefined;
  const response = await fetch(`answers/${String(set)}.json`, { signal }).catch(() => undefined);
  return response?.ok ? response.json().catch(() => undefined) : undefined;
}

/** Asks once; equal requests are answered from memory. Aborting the signal withdraws the question. */
export async function ask<V extends Verb>(request: Request<V>, signal: AbortSignal, behind = false): Promise<Reply<V>> {
  const text = canonical(request);
  const known = cache.get(text);
  if (known) {
    cache.delete(text);
    cache.set(text, known);
    return known as Reply<V>;
  }
  const { send } = await theEngine();
  if (signal.aborted) throw superseded();
  const reply = ((await recordedAnswer(request, signal)) ?? (await send(text, signal, undefined, behind))) as Reply<V>;
  if (!("error" in reply) || reply.error.kind !== "internal") {
    cache.set(text, reply);
    if (cache.size > keep) cache.delete(cache.keys().next().value as string);
  }
  return reply;
}

/** Asks about files: their answers are not kept. */
export async function askAbout<V extends Verb>(
  request: Request<V>,
  files: Attached,
  signal: AbortSignal,
): Promise<Reply<V>> {
  const { send } = await theEngine();
  if (signal.aborted) throw superseded();
  return (await send(canonical(request), signal, files)) as Reply<V>;
}

export interface Asked<V extends Verb> {
  /** The newest answer; that of the former request until the new one is there. */
  reply?: Reply<V>;
  /** The last reply that was an answer. */
  answer?: Answer<V>;
  /** Whether `reply` is to a former request. */
  busy: boolean;
  offline?: string;
}

/** Asks whenever the request changes; the newest wins, and the one before is withdrawn. */
export function useAsk<V extends Verb>(request: Request<V> | null, behind = false): Asked<V> {
  const [state, set] = useState<Asked<V>>({ busy: request !== null });
  const text = request ? canonical(request) : "";
  const shown = useRef("");
  useEffect(() => {
    if (!request) {
      set((before) => (before.busy ? { ...before, busy: false } : before));
      return;
    }
    const abort = new AbortController();
    let timer = 0;
    const attempt = (): void => {
      ask(request, abort.signal, behind).then(
        (reply) => {
          if (abort.signal.aborted) return;
          shown.current = text;
          reached(true);
          set((before) => ({ reply, answer: refused(reply) ? before.answer : reply, busy: false }));
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          reached(false);
          set((before) => ({ ...before, busy: true, offline: error instanceof Error ? error.message : "no answer" }));
          timer = window.setTimeout(attempt, 2000);
        },
      );
    };
    if (cache.has(text)) attempt();
    else {
      if (shown.current !== text) set((before) => (before.busy ? before : { ...before, busy: true }));
      timer = window.setTimeout(attempt, 16); // while dragging, only the last of a frame is asked
    }
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [text]);
  return state;
}

/** Asks about files whenever the request or they change; nothing without files. */
export function useAskAbout<V extends Verb>(request: Request<V> | null, files: Attached): Asked<V> {
  const asks = request !== null && files.length > 0;
  const [state, set] = useState<Asked<V>>({ busy: false });
  useEffect(() => {
    if (!asks) return;
    const abort = new AbortController();
    set((before) => ({ ...before, busy: true, offline: undefined }));
    askAbout(request, files, abort.signal).then(
      (reply) => {
        if (!abort.signal.aborted) set({ reply, answer: refused(reply) ? undefined : reply, busy: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        set({ busy: false, offline: error instanceof Error ? error.message : "no answer" });
      },
    );
    return () => abort.abort();
  }, [files, asks && canonical(request)]);
  return state;
}

/** Several requests of one kind at once; each reply is kept until its request leaves the list. */
export function useAskAll<V extends Verb>(requests: readonly Request<V>[]): (Reply<V> | undefined)[] {
  const [known, set] = useState<ReadonlyMap<string, Reply<V>>>(new Map());
  const texts = requests.map(canonical);
  useEffect(() => {
    const abort = new AbortController();
    requests.forEach((request, i) => {
      ask(request, abort.signal).then(
        (reply) => set((before) => new Map(before).set(texts[i]!, reply)),
        () => undefined, // withdrawn, or asked again with the next change
      );
    });
    return () => abort.abort();
  }, [texts.join("\n")]);
  return texts.map((text) => known.get(text));
}
