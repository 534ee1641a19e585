import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab {
  id: string;
  name: string;
  body: () => ComponentChildren;
}
/** Tabs by the usual pattern: arrows move, one of them is in the order of focus. */
export function Tabs({
  tabs,
  chosen,
  choose,
  label,
}: {
  tabs: readonly Tab[];
  chosen: string;
  choose: (id: string) => void;
  label: string;
}): JSX.Element {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const now = tabs.find((tab) => tab.id === chosen) ?? tabs[0]!;
  return (
    <section class="card" aria-label={label}>
      <div
        class="tabs"
        role="tablist"
        aria-label={label}
        ref={list}
        onKeyDown={(event) => {
          const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
          if (!by) return;
          event.preventDefault();
          const at = (tabs.indexOf(now) + by + tabs.length) % tabs.length;
          choose(tabs[at]!.id);
          list.current?.querySelectorAll<HTMLButtonElement>("button")[at]?.focus();
        }}
      >
        {tabs.map((tab) => (
          <button
            type="button"
            role="tab"
            key={tab.id}
            id={`${id}-${tab.id}`}
            aria-selected={tab === now}
            aria-controls={`${id}-body`}
            tabIndex={tab === now ? 0 : -1}
            onClick={() => choose(tab.id)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-body`} aria-labelledby={`${id}-${now.id}`} tabIndex={0}>
        {now.body()}
      </div>
    </section>
  );
}
