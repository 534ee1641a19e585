import type { ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Patterns } from "./draw/svg";
import { onReach, theEngine } from "./engine/ask";
import { asLines, asPython } from "./engine/command";
import type { Answer, Request } from "./engine/ask";
import { useCatalogue } from "./catalogue";
import { useDrops } from "./parts/drop";
import { copy, download, onToast } from "./parts/share";
import { Tour } from "./parts/tour";
import { useBinary } from "./text/format";
import { change, usePlace, write } from "./url";
import type { Place } from "./url";

export interface View {
  id: string;
  name: string;
  Body: ComponentType<{ place: Place; share: (shared: Shared) => void }>;
}
/** What the share menu gives away: the request of the view that is shown, and its answer. */
export interface Shared {
  request: Request;
  answer?: Answer;
}

function Menu({ shared }: { shared: Shared | null }): JSX.Element {
  const ref = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const away = (event: Event): void => {
      if (ref.current?.open && !ref.current.contains(event.target as globalThis.Node)) ref.current.open = false;
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && ref.current?.open) {
        ref.current.open = false;
        ref.current.querySelector("summary")?.focus();
      }
    };
    document.addEventListener("click", away);
    document.addEventListener("keydown", escape);
    return () => {
      document.removeEventListener("click", away);
      document.removeEventListener("keydown", escape);
    };
  }, []);
  const item = (name: string, act: () => void): JSX.Element => (
    <li>
      <button
        type="button"
        onClick={() => {
          if (ref.current) ref.current.open = false;
          act();
        }}
      >
        {name}
      </button>
    </li>
  );
  const first = (kind: string): HTMLButtonElement | null =>
    document.querySelector<HTMLButtonElement>(`main .card .end button[aria-label$="${kind}"]`);
  return (
    <details class="menu" ref={ref}>
      <summary class="btn">Share</summary>
      <ul>
        {item("Copy permalink", () => void copy(location.href, "the permalink"))}
        {shared && item("Copy as command", () => void copy(asLines(shared.request), "the command"))}
        {shared && item("Copy as Python", () => void copy(asPython(shared.request), "the Python program"))}
        {shared?.answer &&
          item("Download JSON", () =>
            download(`${shared.request.verb}.json`, JSON.stringify(shared.answer, null, 2), "application/json"),
          )}
        {shared?.answer && item("Download CSV", () => first("CSV")?.click())}
        {shared?.answer && item("Download SVG", () => first("SVG")?.click())}
      </ul>
    </details>
  );
}

export function App({ views }: { views: readonly View[] }): JSX.Element {
  const place = usePlace();
  const view = views.find((one) => one.id === place.view) ?? views[0]!;
  const [shared, share] = useState<Shared | null>(null);
  const [engine, setEngine] = useState<string>("");
  const [reached, setReached] = useState(true);
  const [message, setMessage] = useState("");
  useEffect(() => onReach(setReached), []);
  const catalogue = useCatalogue();
  const binary = (place.query.units ?? stored("assay-units")) !== "GB";
  useBinary(binary);
  useDrops();
  const theme = place.query.theme ?? document.documentElement.dataset.theme ?? "light";
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  useEffect(() => {
    void theEngine().then(({ kind }) =>
      setEngine(kind === "server" ? "Engine on this machine" : "Engine in this browser"),
    );
    let timer = 0;
    return onToast((text) => {
      setMessage(text);
      window.clearTimeout(timer);
      timer = window.setTimeout(() => setMessage(""), 2400);
    });
  }, []);
  const before = useRef(view.id);
  useEffect(() => {
    document.title = `${view.name} · Assay`;
    document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (before.current !== view.id) {
      before.current = view.id;
      share(null);
      window.scrollTo(0, 0);
    }
  }, [view.id]);
  const carried = Object.fromEntries(
    ["theme", "units"].flatMap((key) => (place.query[key] ? [[key, place.query[key]]] : [])),
  );
  const other = theme === "dark" ? "light" : "dark";
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the answer
      </a>
      <header class="top">
        <div class="top-in">
          <a class="brand" href={write({ view: views[0]!.id, query: carried })}>
            <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
              <path d="M2 17 8 5h4l6 12" fill="none" stroke="var(--accent)" stroke-width="2.4" />
              <path d="M1 12.5h18" stroke="var(--ink)" stroke-width="1.4" />
            </svg>
            Assay
          </a>
          <nav class="nav" aria-label="Views">
            {views.map((one) => (
              <a
                key={one.id}
                href={write({ view: one.id, query: carried })}
                aria-current={one === view ? "page" : undefined}
              >
                {one.name}
              </a>
            ))}
          </nav>
          <div class="tools">
            {engine && (
              <span class={`engine${reached ? "" : " off"}`} role="status">
                <i aria-hidden="true" />
                {reached ? engine : "The engine does not answer"}
              </span>
            )}
            <button
              type="button"
              class="btn quiet"
              aria-label={`Bytes in ${binary ? "GiB" : "GB"}; change to ${binary ? "GB" : "GiB"}`}
              onClick={() => {
                store("assay-units", binary ? "GB" : "GiB");
                change({ units: binary ? "GB" : "GiB" }, true);
              }}
            >
              {binary ? "GiB" : "GB"}
            </button>
            <button
              type="button"
              class="btn quiet"
              aria-label={`Change to the ${other} theme`}
              onClick={() => {
                store("assay-theme", other);
                change({ theme: other }, true);
              }}
            >
              {other === "dark" ? "Dark" : "Light"}
            </button>
            <Menu shared={shared} />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <view.Body key={view.id} place={place} share={share} />
      </main>
      <footer class="foot">
        {catalogue && <span>Assay {catalogue.version}</span>}
        {catalogue && (
          <span>
            {catalogue.chips.length} chips, {catalogue.models.length} models, each number with its source
          </span>
        )}
        <span>Nothing leaves this {engine.endsWith("machine") ? "machine" : "page"}</span>
        <a href={write({ view: "plan", query: { ...carried, tour: "1" } })}>A tour of three questions</a>
        {views.some((one) => one.id === "accuracy") && (
          <a href={write({ view: "accuracy", query: carried })}>How accurate is it?</a>
        )}
      </footer>
      <Tour place={place} look={carried} />
      <div class="toast" role="status" hidden={!message}>
        {message}
      </div>
      <Patterns />
    </>
  );
}

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // a reader who forbids storage keeps the choice in the address
  }
}
