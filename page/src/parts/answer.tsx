// The frame of every answer: skeleton, superseded, error and offline look the same on all views.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Answer, Asked, Refusal, Request } from "../engine/ask";
import { refused } from "../engine/ask";
import type { Verb } from "../engine/schema";
import { sentence } from "../text/format";
import { fieldName, said } from "../text/said";
import { Callout } from "./basics";
import { nearest } from "./panel";
import { copy } from "./share";

function Skeleton(): JSX.Element | null {
  const [late, set] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => set(true), 150);
    return () => window.clearTimeout(timer);
  }, []);
  if (!late) return null;
  return (
    <div class="bones" aria-hidden="true">
      <i class="bone title" />
      <i class="bone facts-bone" />
      <div class="g2">
        <i class="bone" />
        <i class="bone" />
      </div>
    </div>
  );
}

function Wrong({
  refusal,
  request,
  fix,
}: {
  refusal: Refusal;
  request: Request;
  fix?: (name: string) => void;
}): JSX.Element {
  const { kind, where, what, hint } = refusal.error;
  if (kind === "internal") {
    const text = refusal.request ?? JSON.stringify(request);
    return (
      <>
        <div class="head">
          <h1>The engine made a mistake of its own.</h1>
          <p class="sub">We are sorry. The last answer stays below; this request brought it about.</p>
        </div>
        <Callout
          kind="no"
          actions={
            <button type="button" class="btn" onClick={() => void copy(text, "the request")}>
              Copy request
            </button>
          }
        >
          <p>{sentence(what)}</p>
        </Callout>
        <pre class="code">{text}</pre>
      </>
    );
  }
  const names = nearest(hint);
  return (
    <>
      <div class="head">
        <h1>{said(what)}</h1>
        <p class="sub">Nothing was priced: what cannot be read is never replaced by a guess.</p>
      </div>
      <Callout
        kind="no"
        actions={
          fix &&
          names.length > 0 &&
          names.map((name) => (
            <button type="button" key={name} class="btn" onClick={() => fix(name)}>
              Use {name}
            </button>
          ))
        }
      >
        <p>
          {where && <b>{fieldName(where)}: </b>}
          {hint ? said(hint) : "Change it on the left, or take an example."}
        </p>
      </Callout>
      <details class="more engine-said">
        <summary class="btn quiet">What the engine said</summary>
        <pre class="code">{JSON.stringify(refusal, null, 2)}</pre>
      </details>
    </>
  );
}

export function AnswerFrame<V extends Verb>({
  asked,
  request,
  fix,
  children,
}: {
  asked: Asked<V>;
  request: Request;
  fix?: (name: string) => void;
  children: (answer: Answer<V>) => ComponentChildren;
}): JSX.Element {
  const { reply, answer, busy, offline } = asked;
  const wrong = reply && refused(reply) ? reply : undefined;
  return (
    <section class={`ans${busy && reply ? " busy" : ""}`} aria-label="Answer" aria-busy={busy}>
      <div class="bar-busy" />
      {offline && (
        <Callout kind="tight">
          <p>
            <b>{sentence(offline)}</b> Asking again in 2 s; what is entered stays.
          </p>
        </Callout>
      )}
      {!reply && <Skeleton />}
      {wrong && <Wrong refusal={wrong} request={request} fix={fix} />}
      {answer && (!wrong || wrong.error.kind === "internal") && children(answer)}
      {answer && wrong && wrong.error.kind !== "internal" && (
        <div class="last-good" inert>
          <p class="muted">The last answer, to what was asked before:</p>
          {children(answer)}
        </div>
      )}
    </section>
  );
}
export const Head = ({ children, sub }: { children: ComponentChildren; sub?: ComponentChildren }): JSX.Element => (
  <div class="head">
    <h1 aria-live="polite">{children}</h1>
    {sub && <div class="sub">{sub}</div>}
  </div>
);
export const refusalOf = <V extends Verb>(asked: Asked<V>): Refusal | undefined =>
  asked.reply && refused(asked.reply) ? asked.reply : undefined;
