// A timeline as a trace that Perfetto and chrome://tracing read, and the way to hand it over without sending it anywhere:
// the page of Perfetto reads it in this browser.
import type { TrainResults } from "../../engine/schema";
import { v } from "../../engine/request";
import { download, toast } from "../../parts/share";

export type Timeline = NonNullable<TrainResults["timeline"]>;

const micro = 1e6; // traces count in microseconds
export function chromeTrace(timeline: Timeline): string {
  const lanes = timeline.lanes.map((lane, i) => ({
    ph: "M",
    pid: 1,
    tid: i + 1,
    name: "thread_name",
    args: { name: lane.members > 1 ? `${lane.name} ×${lane.members}` : lane.name },
  }));
  const bars = timeline.bars.map((bar) => ({
    ph: "X",
    pid: 1,
    tid: bar.lane + 1,
    name: bar.label,
    cat: timeline.classes[bar.class] ?? "",
    ts: v(bar.start) * micro,
    dur: (v(bar.end) - v(bar.start)) * micro,
  }));
  const counters = (timeline.counters ?? []).flatMap((counter) =>
    counter.points.map((point) => ({
      ph: "C",
      pid: 1,
      name: counter.name,
      ts: v(point.at) * micro,
      args: { value: point.value },
    })),
  );
  const name = { ph: "M", pid: 1, name: "process_name", args: { name: timeline.title } };
  return JSON.stringify({ traceEvents: [name, ...lanes, ...bars, ...counters] });
}

const perfetto = "https://ui.perfetto.dev";
const patience = 8_000; // until Perfetto says that it is there, in ms
/** Opens a trace in Perfetto; where its page cannot be reached, the trace is saved instead. */
export function openInPerfetto(timeline: Timeline): void {
  const text = chromeTrace(timeline);
  const save = (): void => download("timeline.json", text, "application/json");
  const other = window.open(perfetto);
  if (!other) {
    save();
    return;
  }
  const ask = window.setInterval(() => other.postMessage("PING", perfetto), 100);
  const stop = (): void => {
    window.clearInterval(ask);
    window.clearTimeout(late);
    window.removeEventListener("message", hear);
  };
  const late = window.setTimeout(() => {
    stop();
    save();
    toast("Perfetto does not answer: open the saved file there");
  }, patience);
  function hear(event: MessageEvent): void {
    if (event.origin !== perfetto || event.data !== "PONG") return;
    stop();
    const buffer = new TextEncoder().encode(text).buffer;
    other!.postMessage({ perfetto: { buffer, title: timeline.title, fileName: "timeline.json" } }, perfetto);
  }
  window.addEventListener("message", hear);
}
