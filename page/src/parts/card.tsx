import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Answer } from "../engine/ask";
import { sentence } from "../text/format";
import { csv, download, drawingText } from "./share";

export type Table = (string | number | null)[][];

/** A card: its title answers or asks what the reader wants to know. What it draws can be saved, and its points, too. */
export function Card({
  title,
  note,
  children,
  end,
  table,
  drawing = false,
  name,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
  end?: ComponentChildren;
  table?: () => Table;
  drawing?: boolean;
  name?: string;
}): JSX.Element {
  const ref = useRef<HTMLElement>(null);
  const file = (name ?? title)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  return (
    <section class="card" ref={ref} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note && <span class="note">{note}</span>}
        {(end || table || drawing) && (
          <span class="end">
            {end}
            {table && (
              <button
                type="button"
                class="btn quiet"
                aria-label={`Download the numbers of “${title}” as CSV`}
                onClick={() => download(`${file}.csv`, csv(table()), "text/csv")}
              >
                CSV
              </button>
            )}
            {drawing && (
              <button
                type="button"
                class="btn quiet"
                aria-label={`Download the picture of “${title}” as SVG`}
                onClick={() => {
                  const svg = ref.current?.querySelector<SVGSVGElement>(".chart svg");
                  if (svg) download(`${file}.svg`, drawingText(svg), "image/svg+xml");
                }}
              >
                SVG
              </button>
            )}
          </span>
        )}
      </header>
      {children}
    </section>
  );
}

/** What an answer says beyond its numbers, if it does. */
export const NotesCard = ({ answer }: { answer: Answer }): JSX.Element | null =>
  answer.notes?.length ? (
    <Card title="Notes">
      <ul class="notes">
        {answer.notes.map((note) => (
          <li key={note}>{sentence(note)}</li>
        ))}
      </ul>
    </Card>
  ) : null;
