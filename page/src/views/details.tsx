import type { JSX } from "preact";
import type { Answer, Request } from "../engine/ask";
import { refused, useAsk } from "../engine/ask";
import { withArguments } from "../engine/request";
import { launchers, programs } from "../engine/schema";
import { Callout } from "../parts/basics";
import { Tree } from "../parts/derivation";
import { Segments } from "../parts/fields";
import { copy, download } from "../parts/share";
import { Tabs } from "../parts/tabs";
import { Scroll } from "../parts/scroll";
import { sentence } from "../text/format";
import { change } from "../url";
import type { Query } from "../url";

const shell = { value: "", name: "Shell" };

/** The program whose properties the answer assumes, or the first. */
function usual(verb: "train" | "serve", software: string | undefined): string {
  const list = programs[verb];
  const name = (software ?? "").split("@")[0];
  return (list.find((one) => one.software === name) ?? list[0])!.value;
}

function Launch({
  request,
  software,
  query,
}: {
  request: Request<"train"> | Request<"serve">;
  software: string | undefined;
  query: Query;
}): JSX.Element {
  const program = query.emit || usual(request.verb, software);
  const launcher = query.launcher ?? "";
  const asked = useAsk(
    withArguments(request as Request<"train">, { emit: program, ...(launcher ? { launcher } : {}) }),
  );
  const { reply } = asked;
  const launch = reply && !refused(reply) ? reply.results.launch : undefined;
  return (
    <div class={asked.busy && reply ? "busy-part" : ""}>
      <div class="row spaced">
        <Segments
          label="Program"
          hideLabel
          value={program}
          choices={programs[request.verb]}
          onChange={(emit) => change({ emit }, true)}
        />
        <Segments
          label="Launcher"
          hideLabel
          value={launcher}
          choices={[shell, ...launchers]}
          onChange={(value) => change({ launcher: value }, true)}
        />
        {launch && (
          <span class="end row">
            <button type="button" class="btn" onClick={() => void copy(launch.script, "the launch file")}>
              Copy
            </button>
            <button
              type="button"
              class="btn"
              onClick={() =>
                download(`launch-${program}${launcher === "k8s" ? ".yaml" : ".sh"}`, launch.script, "text/plain")
              }
            >
              Download
            </button>
          </span>
        )}
      </div>
      {reply && refused(reply) && (
        <Callout kind="tight">
          <p>
            <b>{sentence(reply.error.what)}</b> {reply.error.hint && sentence(reply.error.hint)}
          </p>
        </Callout>
      )}
      {launch && (
        <>
          <pre class="code" tabIndex={0} aria-label="Launch file">
            {launch.script}
          </pre>
          <details class="more">
            <summary class="btn quiet">
              Why each of {launch.options.length} options of {launch.program} {launch.version}
            </summary>
            <Scroll>
              <table class="rows small">
                <thead>
                  <tr>
                    <th>Option</th>
                    <th>Value</th>
                    <th>Reason</th>
                  </tr>
                </thead>
                <tbody>
                  {launch.options.map((one, i) => (
                    <tr key={i}>
                      <td class="mono">{one.option}</td>
                      <td class="mono">{one.value}</td>
                      <td class="muted">{one.reason}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          </details>
        </>
      )}
      {!reply && <p class="muted">Being written…</p>}
    </div>
  );
}

const Notes = ({ answer }: { answer: Answer }): JSX.Element => (
  <ul class="notes">
    <li>
      <b>{sentence(answer.headline)}</b>
    </li>
    {(answer.notes ?? []).map((note) => (
      <li key={note}>{sentence(note)}</li>
    ))}
  </ul>
);
const Json = ({ answer }: { answer: Answer }): JSX.Element => (
  <pre class="code tall" tabIndex={0} aria-label="Answer as JSON">
    {JSON.stringify(answer, null, 2)}
  </pre>
);

export function Details({
  answer,
  request,
  query,
}: {
  answer: Answer<"train"> | Answer<"serve">;
  request: Request<"train"> | Request<"serve">;
  query: Query;
}): JSX.Element {
  return (
    <Tabs
      label="Details"
      chosen={query.tab ?? "why"}
      choose={(tab) => change({ tab: tab === "why" ? "" : tab }, true)}
      tabs={[
        {
          id: "why",
          name: "Derivation",
          body: () => <Tree />,
        },
        {
          id: "launch",
          name: "Launch files",
          body: () => <Launch request={request} software={answer.results.software} query={query} />,
        },
        { id: "notes", name: "Notes and assumptions", body: () => <Notes answer={answer as Answer} /> },
        { id: "json", name: "JSON", body: () => <Json answer={answer as Answer} /> },
      ]}
    />
  );
}
