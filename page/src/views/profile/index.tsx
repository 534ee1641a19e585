// A profile of a real run: drop its file, see where the time of the device went. The file goes to the engine alone.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAskAbout } from "../../engine/ask";
import { v } from "../../engine/request";
import type { ProfileResults } from "../../engine/schema";
import { AnswerFrame, Head } from "../../parts/answer";
import { Callout, Fact, Track } from "../../parts/basics";
import { Card } from "../../parts/card";
import { setFiles, useFiles } from "../../parts/drop";
import { toast } from "../../parts/share";
import { Scroll } from "../../parts/scroll";
import { alike, capital, int, percent, quantity, sentence, share as part, time } from "../../text/format";
import { change } from "../../url";
import type { Place } from "../../url";
import { PartList, StackedBar } from "../bars";
import { Advice } from "./advice";
import { Against } from "./against";
import { Comparison } from "./comparison";
import { ProgramAnswer } from "./program";

type Operation = NonNullable<ProfileResults["operations"]>[number];

export function ProfileView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const files = useFiles();
  const on = place.query.on ?? "";
  const against = place.query.against ?? "";
  const request: Request<"profile"> = {
    verb: "profile",
    arguments: { file: files.map((file) => file.name), ...(on ? { on } : {}), ...(against ? { against } : {}) },
  };
  const asked = useAskAbout(request, files);
  useEffect(() => {
    if (files.length > 0) share({ request: request as Request, answer: asked.answer as Answer | undefined });
  }, [asked.answer, files, on, against]);
  return (
    <div class={`view wide${files.length > 0 ? "" : " cards"}`}>
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

/** Profiles that come with the page, for who has none at hand. */
const samples: readonly { name: string; what: string; files: readonly string[] }[] = [
  {
    name: "A training run in PyTorch",
    what: "GPT-2 XL, six layers, on one H200",
    files: ["gpt2-xl-6l-train.kineto.json.gz"],
  },
  {
    name: "Before and after torch.compile",
    what: "the same run, kernel by kernel",
    files: ["gpt2-xl-6l-train.kineto.json.gz", "gpt2-xl-6l-train-compiled.kineto.json.gz"],
  },
  { name: "A program in JAX", what: "the gradient of four layers, as xplane", files: ["mlp4-grad.xplane.pb.gz"] },
];
async function takeSample(names: readonly string[]): Promise<void> {
  try {
    setFiles(
      await Promise.all(
        names.map(async (name) => {
          const response = await fetch(`samples/${name}`);
          if (!response.ok) throw new Error(name);
          return new File([await response.arrayBuffer()], name);
        }),
      ),
    );
  } catch {
    toast("The sample cannot be loaded");
  }
}

function Drop({ files, take }: { files: readonly File[]; take: (files: readonly File[]) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const chosen = (list: FileList | null | undefined): void => {
    if (list && list.length > 0) take([...list]);
  };
  const choose = (
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
  );
  if (files.length > 0)
    return (
      <section class="card drop" aria-label="The profile">
        <div>
          <h2>{files.map((file) => file.name).join(", ")}</h2>
          <p class="muted">Drop other files to read them instead, or two files to compare before and after.</p>
        </div>
        <div class="row">
          {choose}
          <button type="button" class="btn" onClick={() => take([])}>
            Close
          </button>
        </div>
      </section>
    );
  return (
    <>
      <Head
        sub={
          <span>
            Busy and idle time, the slowest operations against their limits, and what would help, of your own run.
          </span>
        }
      >
        Where did the time of a real run go?
      </Head>
      <section class="card drop zone" aria-label="The profile">
        <h2>Drop a profile here</h2>
        {choose}
        <ul class="takes">
          <li>a trace of PyTorch or JAX: JSON or xplane</li>
          <li>an SQLite export of Nsight Systems</li>
          <li>one file of each rank of a run, or two runs as before and after</li>
          <li>a compiled program: HLO or StableHLO text</li>
        </ul>
        <p class="muted">Compressed or not, up to 64 MiB. Files go to the engine alone and are not kept.</p>
      </section>
      <h2 class="under">Or look at one of these</h2>
      <div class="samples">
        {samples.map(({ name, what, files }) => (
          <button type="button" class="card" key={name} onClick={() => void takeSample(files)}>
            <b>{name}</b>
            <span class="muted">{what}</span>
          </button>
        ))}
      </div>
    </>
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
          <PartList parts={parts} write={alike(total, "s")} node={() => undefined} />
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
  const write = alike(most, "s");
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
              <td class="n">{write(v(one.time))}</td>
              <td class="n">{part(one.share)}</td>
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
  const write = alike(Math.max(0, ...operations.map((one) => v(one.time))), "s");
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
                <td class="n">{write(v(one.time))}</td>
                <td class="n">{part(one.share)}</td>
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
  const write = alike(most, "s");
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
              <td class="n">{write(v(one.computation_time))}</td>
              <td class="n">{write(v(one.exposed_communication_time))}</td>
              <td class="n">{write(v(one.idle_time))}</td>
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
  const write = alike(Math.max(...gaps.map((one) => v(one.time))), "s");
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
                <td class="n">{write(v(one.time))}</td>
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
