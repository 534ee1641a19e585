// A compiled program: what it counts to, what it takes on a cluster, and the model behind it.
import type { JSX } from "preact";
import type { Answer } from "../../engine/ask";
import { v } from "../../engine/request";
import { Head } from "../../parts/answer";
import { Fact, Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { bytes, int, percent, quantity, sentence, time } from "../../text/format";
import { change } from "../../url";

export function ProgramAnswer({ answer, on }: { answer: Answer<"profile">; on: string }): JSX.Element {
  const r = answer.results;
  const p = r.program!;
  return (
    <>
      <Head sub={<span>{`${p.module} · ${int(p.instructions)} instructions on ${int(p.devices)} devices`}</span>}>
        {sentence(answer.headline)}
      </Head>
      <div class="facts">
        <Fact question="How much arithmetic?" big={quantity(v(p.flops), "FLOP")}>
          <p>{bytes(v(p.bytes))} through memory</p>
        </Fact>
        <Fact question="How long does it take?" big={p.estimate ? time(v(p.estimate)) : "name a cluster"}>
          <label>
            <span class="sr">Cluster</span>
            <input
              class="in"
              value={on}
              placeholder="h100-sxm:8"
              onChange={(event) => change({ on: event.currentTarget.value })}
            />
          </label>
        </Fact>
        <Fact question="How much memory?" big={p.memory.peak ? bytes(v(p.memory.peak)) : "not scheduled"}>
          <p>
            {bytes(v(p.memory.arguments))} of arguments
            {p.memory.fits !== undefined && (p.memory.fits ? ", fits" : ", does not fit")}
          </p>
        </Fact>
        <Fact
          question="How much communication?"
          big={bytes(p.collectives.reduce((sum, one) => sum + v(one.received), 0))}
        >
          <p>received by a device in {int(p.collectives.length)} kinds of collectives</p>
        </Fact>
      </div>
      {r.command && (
        <Card title="The model behind it">
          <pre class="code">{r.command}</pre>
        </Card>
      )}
      <Kernels results={r} />
      {(answer.notes ?? []).map((note) => (
        <p key={note} class="muted">
          {sentence(note)}
        </p>
      ))}
    </>
  );
}

function Kernels({ results: r }: { results: Answer<"profile">["results"] }): JSX.Element {
  const first = 15;
  const kernels = r.kernels ?? [];
  const most = Math.max(...kernels.map((one) => one.share ?? 0), 0);
  return (
    <Card
      title="The costliest kernels"
      table={() => [
        ["name", "class", "calls", "flop", "bytes", "seconds", "bound"],
        ...kernels.map((one) => [
          one.name,
          one.class,
          one.calls,
          one.flops ? v(one.flops) : "",
          v(one.bytes),
          one.time ? v(one.time) : "",
          one.bound ?? "",
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Kernel</th>
              <th>Class</th>
              <th>Shapes</th>
              <th class="n">Calls</th>
              <th class="n">FLOP</th>
              <th class="n">Bytes</th>
              <th class="n">Time</th>
              <th class="wide" />
              <th>Bound by</th>
            </tr>
          </thead>
          <tbody>
            {kernels.slice(0, first).map((one) => (
              <tr key={one.name}>
                <td>{one.name}</td>
                <td>{one.class}</td>
                <td class="mono tiny wrapped">{one.shapes}</td>
                <td class="n">{int(one.calls)}</td>
                <td class="n">{one.flops ? quantity(v(one.flops), "FLOP", 3) : ""}</td>
                <td class="n">{bytes(v(one.bytes))}</td>
                <td class="n">{one.time ? time(v(one.time)) : ""}</td>
                <td class="wide">
                  {one.share !== undefined && <Track value={one.share} most={most} fill="var(--s1)" />}
                </td>
                <td>{one.bound ? `${one.bound}${one.share ? `, ${percent(one.share)}` : ""}` : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
