// A tour of three questions: each is an address and a part of the page to look at.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { go } from "../url";
import type { Place, Query } from "../url";

interface Stop {
  question: string;
  view: string;
  query: Query;
  look: string;
  words: string;
}
const stops: readonly Stop[] = [
  {
    question: "Does my model fit, and how fast does it train?",
    view: "plan",
    query: {},
    look: ".facts",
    words:
      "Four facts answer it: memory against the chip, time with the interval that measurements give it, what limits it, and one change that helps. Every underlined number opens to its formula and sources.",
  },
  {
    question: "What does serving it cost within my limits?",
    view: "serve",
    query: {},
    look: ".facts",
    words:
      "Drag the limits on the left: the point moves along the front to the cheapest plan that meets them. Below are memory and what requests at random would see.",
  },
  {
    question: "Can I believe it?",
    view: "accuracy",
    query: { set: "h200-ops" },
    look: "section[aria-label='Predicted against measured']",
    words:
      "Each point is a published or own measurement that the prediction had not seen. Choose one to get its request and ask it yourself.",
  },
];

export function Tour({ place, look }: { place: Place; look: Query }): JSX.Element | null {
  const at = Number(place.query.tour ?? 0) - 1;
  const stop = stops[at];
  const visit = (index: number): void => {
    const next = stops[index];
    go(
      next
        ? { view: next.view, query: { ...look, ...next.query, tour: String(index + 1) } }
        : { view: place.view, query: { ...place.query, tour: "" } },
    );
  };
  useEffect(() => {
    if (!stop) return;
    let found: Element | null = null;
    const timer = window.setInterval(() => {
      const element = document.querySelector(stop.look);
      if (!element || element === found) return;
      found?.classList.remove("shown-now");
      found = element;
      element.classList.add("shown-now");
      element.scrollIntoView({ block: "center" });
    }, 200);
    return () => {
      window.clearInterval(timer);
      found?.classList.remove("shown-now");
    };
  }, [at]);
  if (!stop) return null;
  return (
    <div class="tour" role="dialog" aria-label={`Tour: ${stop.question}`}>
      <b>
        {at + 1} of {stops.length}: {stop.question}
      </b>
      <p>{stop.words}</p>
      <div class="row">
        {at > 0 && (
          <button type="button" class="btn" onClick={() => visit(at - 1)}>
            Back
          </button>
        )}
        {at + 1 < stops.length && (
          <button type="button" class="btn primary" onClick={() => visit(at + 1)}>
            Next question
          </button>
        )}
        <button type="button" class="btn quiet" onClick={() => visit(-1)}>
          {at + 1 < stops.length ? "Leave the tour" : "Done"}
        </button>
      </div>
    </div>
  );
}
