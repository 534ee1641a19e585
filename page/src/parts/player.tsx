import type { JSX } from "preact";
import { usePlay } from "../draw/svg";

/** Play, pause, step and seek; what moves is real time or real hops. */
export function Player({
  steps,
  at,
  set,
  label,
}: {
  steps: number;
  at: number;
  set: (step: number) => void;
  label: string;
}): JSX.Element {
  const { playing, toggle } = usePlay(steps, at, set);
  return (
    <div class="play">
      <button type="button" class="btn" aria-label="One step back" disabled={at <= 0} onClick={() => set(at - 1)}>
        ‹
      </button>
      <button type="button" class="btn" onClick={toggle}>
        {playing ? "Pause" : "Play"}
      </button>
      <button type="button" class="btn" aria-label="One step on" disabled={at + 1 >= steps} onClick={() => set(at + 1)}>
        ›
      </button>
      <input
        type="range"
        aria-label={label}
        min={0}
        max={Math.max(0, steps - 1)}
        step={1}
        value={at}
        onInput={(event) => set(Number(event.currentTarget.value))}
      />
    </div>
  );
}
