// A profile of a real run: drop its file, see where the time of the device went. The file goes to the engine alone.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Asked, Request } from "../../engine/ask";
import { askAbout, refused } from "../../engine/ask";
import { v } from "../../engine/request";
import type { ProfileResults } from "../../engine/schema";
import { AnswerFrame, Head } from "../../parts/answer";
import { Callout, Fact, Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { setFiles, useFiles } from "../../parts/drop";
import { Scroll } from "../../parts/scroll";
import { capital, int, percent, quantity, sentence, time } from "../../text/format";
import { change } from "../../url";
import type { Place } from "../../url";
import { PartList, StackedBar } from "../bars";
import { Advice } from "./advice";
import { Against } from "./against";
import { Comparison } from "./comparison";
import { ProgramAnswer } from "./program";

type Operation = NonNullable<ProfileResults["operations"]>[number];

/** Asks about the files whenever they, the chip, or what they are compared with change. */
function useProfile(
  files: readonly File[],
  on: string,
  against: string,
): { asked: Asked<"profile">; request: Request<"profile"> } {
  const [asked, set] = useState<Asked<"profile">>({ busy: false });
  const request: Request<"profile"> = {
    verb: "profile",
    arguments: { file: files.map((file) => file.name), ...(on ? { on } : {}), ...(against ? { against } : {}) },
  };
  useEffect(() => {
    if (files.length === 0) return;
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
  }, [files, on, against]);
  return { asked, request };
}

export function ProfileView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const files = useFiles();
  const on = place.query.on ?? "";
  const against = place.query.against ?? "";
  const { asked, request } = useProfile(files, on, against);
  useEffect(() => {
    if (files.length > 0) share({ request: request as Request, answer: asked.answer as Answer | undefined });
  }, [asked.answer, files, on, against]);
  return (
    <div class="view wide">
      <Drop files={files} take={setFiles} />
      {files.length > 0 && (
        <AnswerFrame asked={asked} request={request as Request}>
          {(answer) =>
            answer.results.program ? (
              <ProgramAnswer answer={answer} on={on} />
            ) : (
              <ProfileAnswer answer={answer} on={on} against={against} />
            )
          }
        </AnswerFrame>
      )}
    </div>
  );
}

function Drop({ files, take }: { files: readonly File[]; take: (files: readonly File[]) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const chosen = (list: FileList | null | undefined): void => {
    if (list && list.length > 0) take([...list]);
  };
  return (
    <section class="card drop" aria-label="The profile">
      <div>
        <h2>{files.length > 0 ? files.map((file) => file.name).join(", ") : "Where did the time of a real run go?"}</h2>
        <p class="muted">
          Drop what a profiler wrote: a trace of PyTorch or JAX (JSON, xplane), or an SQLite export of Nsight Systems,
          compressed or not, up to 64 MB. Several ranks of one run are shown side by side; two other files are compared
          as before and after. Or drop a compiled program: HLO or StableHLO text.
        </p>
      </div>
      <label class="btn file primary">
        Choose files
        <input
          ref={input}
          class="sr"
          type="file"
          multiple
          onChange={() => {
            chosen(input.current?.files);
            if (input.current) input.current.value = "";
          }}
        />
      </label>
    </section>
  );
}

const colours = ["s1", "s3", "s2", "s4", "s6", "s5", "s7", "s8"];
const colour = (at: number): string => `var(--${colours[at % colours.length]})`;

function ProfileAnswer({
  answer,
  on,
  against,
}: {
  answer: Answer<"profile">;
  on: string;
  against: string;
}): JSX.Element {
  const r = answer.results;
  const total = v(r.total_time);
  const parts = [
    { name: "Computation", value: v(r.computation_time), fill: "var(--s1)" },
    { name: "Exposed communication", value: v(r.exposed_communication_time), fill: "var(--s2)" },
    { name: "Exposed copies", value: v(r.exposed_copy_time), fill: "var(--s3)" },
    { name: "Idle", value: v(r.idle_time), fill: "var(--s4)" },
  ];
  return (
    <>
      <Head sub={<span>{[r.device_name, `${int(r.events ?? 0)} events`].filter(Boolean).join(" · ")}</span>}>
        {sentence(answer.headline)}
      </Head>
      <Facts results={r} />
      {!r.chip && <ChipWanted on={on} />}
      <div class="g2">
        <Card
          title="Where the time went"
          note={r.file}
          drawing
          table={() => [["part", "seconds"], ...parts.map((part) => [part.name, part.value])]}
        >
          <StackedBar parts={parts} total={total} label={`${time(total)} by what the device did`} />
          <PartList parts={parts} write={time} node={() => undefined} />
        </Card>
        <Categories results={r} />
      </div>
      <Advice results={r} />
      <Against results={r} against={against} />
      {r.comparison && <Comparison comparison={r.comparison} />}
      <Operations operations={r.operations ?? []} />
      <div class={(r.ranks?.length ?? 0) > 1 && (r.gaps?.length ?? 0) > 0 ? "g2" : "cards"}>
        <Ranks results={r} />
        <Gaps results={r} />
      </div>
      {(answer.notes ?? []).map((note) => (
        <p key={note} class="muted">
          {sentence(note)}
        </p>
      ))}
    </>
  );
}

function Facts({ results: r }: { results: ProfileResults }): JSX.Element {
  const steps = r.step_time;
  return (
    <div class="facts">
      <Fact question="How busy is the device?" big={percent(r.busy_share ?? Number.NaN)}>
        <p>
          {time(v(r.busy_time))} of {time(v(r.total_time))}
        </p>
      </Fact>
      <Fact question="How long is a step?" big={steps ? time(v(steps.median)) : "not marked"}>
        {steps && (
          <p>
            {int(steps.count)} found, from {time(v(steps.shortest))} to {time(v(steps.longest))}
          </p>
        )}
      </Fact>
      <Fact question="How fast are products?" big={r.products ? quantity(v(r.products.while_running), "FLOP/s") : "–"}>
        {r.products && (
          <p>
            while they run; {quantity(v(r.products.achieved), "FLOP/s")} over the whole time
            {r.products.peak_share !== undefined && `, ${percent(r.products.peak_share)} of the peak`}
          </p>
        )}
      </Fact>
      <Fact question="Does it wait for the host?" big={r.host_bound_time ? time(v(r.host_bound_time)) : "unknown"}>
        <p>
          {r.host_bound_time ? "of idle time before a kernel that was launched late" : "the profile has no launches"}
        </p>
      </Fact>
    </div>
  );
}

const ChipWanted = ({ on }: { on: string }): JSX.Element => (
  <Callout kind="info">
    <p>
      The profile does not name a chip of the catalogue.{" "}
      <label>
        Name it to see shares of its peak rates:{" "}
        <input
          class="in narrow"
          value={on}
          placeholder="h200-sxm"
          onChange={(event) => change({ on: event.currentTarget.value })}
        />
      </label>
    </p>
  </Callout>
);

function Categories({ results: r }: { results: ProfileResults }): JSX.Element {
  const categories = r.categories ?? [];
  const most = Math.max(...categories.map((one) => v(one.time)), 0);
  return (
    <Card
      title="Kernels by category"
      note={`${time(v(r.kernel_time))} of kernels`}
      table={() => [
        ["category", "kind", "kernels", "seconds", "share"],
        ...categories.map((one) => [one.category, one.kind ?? "", one.count, v(one.time), one.share ?? ""]),
      ]}
    >
      <table class="rows tightrows">
        <thead>
          <tr>
            <th>Category</th>
            <th class="n">Kernels</th>
            <th class="wide" />
            <th class="n">Time</th>
            <th class="n">Share</th>
          </tr>
        </thead>
        <tbody>
          {categories.map((one, at) => (
            <tr key={`${one.category} ${one.kind}`}>
              <td>{capital([one.category, one.kind].filter(Boolean).join(", "))}</td>
              <td class="n">{int(one.count)}</td>
              <td class="wide">
                <Track value={v(one.time)} most={most} fill={colour(at)} />
              </td>
              <td class="n">{time(v(one.time))}</td>
              <td class="n">{percent(one.share ?? Number.NaN)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

const reaches = (one: Operation): string =>
  one.bound === "memory"
    ? `${percent(one.bandwidth_share ?? Number.NaN)} of bandwidth`
    : one.peak_share !== undefined
      ? `${percent(one.peak_share)} of peak`
      : "";

function Operations({ operations }: { operations: readonly Operation[] }): JSX.Element {
  const [all, showAll] = useState(false);
  const first = 12;
  const shown = all ? operations : operations.slice(0, first);
  return (
    <Card
      title="The slowest operations"
      note="all calls of one operation with the same shapes are one row"
      table={() => [
        ["operation", "kernel", "shapes", "category", "calls", "seconds", "flop", "bytes", "bound", "reaches"],
        ...operations.map((one) => [
          one.label,
          one.kernel,
          one.shapes ?? "",
          one.category,
          one.calls,
          v(one.time),
          one.flops ? v(one.flops) : "",
          one.bytes ? v(one.bytes) : "",
          one.bound ?? "",
          reaches(one),
        ]),
      ]}
    >
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Operation</th>
              <th>Shapes</th>
              <th>Category</th>
              <th class="n">Calls</th>
              <th class="n">Time</th>
              <th class="n">Share</th>
              <th>Bound by</th>
              <th class="n">Reaches</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one) => (
              <tr key={`${one.label} ${one.shapes} ${one.kernel}`}>
                <td title={one.kernel}>{one.label}</td>
                <td class="mono tiny wrapped">{one.shapes ?? ""}</td>
                <td>{[one.category, one.kind].filter(Boolean).join(", ")}</td>
                <td class="n">{int(one.calls)}</td>
                <td class="n">{time(v(one.time))}</td>
                <td class="n">{percent(one.share ?? Number.NaN)}</td>
                <td>{one.bound ?? ""}</td>
                <td class="n">{reaches(one)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {operations.length > first && (
        <button type="button" class="btn after" onClick={() => showAll(!all)}>
          {all ? "Show only the slowest" : `Show all ${int(operations.length)}`}
        </button>
      )}
    </Card>
  );
}

function Ranks({ results: r }: { results: ProfileResults }): JSX.Element | null {
  const ranks = r.ranks ?? [];
  if (ranks.length < 2) return null;
  const most = Math.max(...ranks.map((one) => v(one.total_time)));
  return (
    <Card title="Ranks" note={r.straggler && `rank ${r.straggler.rank ?? r.straggler.device}: ${r.straggler.because}`}>
      <table class="rows tightrows">
        <thead>
          <tr>
            <th>Rank</th>
            <th class="wide">Computation</th>
            <th class="n" />
            <th class="n">Exposed communication</th>
            <th class="n">Idle</th>
          </tr>
        </thead>
        <tbody>
          {ranks.map((one) => (
            <tr key={`${one.file} ${one.device}`}>
              <td>{one.rank ?? one.device}</td>
              <td class="wide">
                <Track value={v(one.computation_time)} most={most} fill="var(--s1)" />
              </td>
              <td class="n">{time(v(one.computation_time))}</td>
              <td class="n">{time(v(one.exposed_communication_time))}</td>
              <td class="n">{time(v(one.idle_time))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Gaps({ results: r }: { results: ProfileResults }): JSX.Element | null {
  const first = 8;
  const gaps = r.gaps ?? [];
  if (gaps.length === 0) return null;
  return (
    <Card title="The longest gaps" note="while nothing ran on the device">
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th class="n">Gap</th>
              <th>Before</th>
              <th>Why</th>
            </tr>
          </thead>
          <tbody>
            {gaps.slice(0, first).map((one) => (
              <tr key={v(one.start)}>
                <td class="n">{time(v(one.time))}</td>
                <td>{one.before}</td>
                <td>{one.host_bound ? "launched late by the host" : "waited for other work on the device"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}
