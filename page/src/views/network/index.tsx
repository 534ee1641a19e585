import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import { filled, requestOf, resize, v, withArguments } from "../../engine/request";
import type { CollectiveResults } from "../../engine/schema";
import { Axes, Chart, Drawing, Label, Line, Mark, points } from "../../draw/svg";
import { logTicks, logarithmic } from "../../draw/scale";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import { Between, Figures, Num } from "../../parts/basics";
import { Card, NotesCard } from "../../parts/card";
import { Derived, Tree } from "../../parts/derivation";
import { Select, TextField } from "../../parts/fields";
import { ClusterFields } from "../../parts/model";
import { Examples, Panel, problemAt } from "../../parts/panel";
import { Scroll } from "../../parts/scroll";
import { bytes, int, percent, si, sig, time, timeRange } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { HopsCard } from "./hops";
import { TopologyCard } from "./topology";

const defaults: Query = { kind: "all-gather", on: "tpu-v5e:4x4", bytes: "32MiB", axes: "Y" };
const kinds = [
  "all-gather",
  "reduce-scatter",
  "all-reduce",
  "all-to-all",
  "ragged-all-to-all",
  "permute",
  "broadcast",
  "reduce",
  "point-to-point",
];
const examples: readonly [string, Query][] = [
  ["A line of four TPU v5e", defaults],
  ["A ring of eight TPU v5p", { kind: "all-reduce", on: "tpu-v5p:8x8x8", bytes: "256MiB", axes: "X" }],
  ["All three axes at once", { kind: "all-gather", on: "tpu-v5p:8x8x8", bytes: "1GiB" }],
  ["A node of eight H100", { kind: "all-reduce", on: "h100-sxm:8", bytes: "1GB" }],
  ["256 H100 over the tree", { kind: "all-reduce", on: "h100-sxm:256", bytes: "1GB" }],
  ["Experts: all-to-all", { kind: "all-to-all", on: "h100-sxm:64", bytes: "256MB" }],
];

export function NetworkView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const given = filled(place.query, defaults);
  const request = requestOf("collective", given);
  const asked = useAsk(withArguments(request, { explain: "all" }));
  const ready = asked.answer && !asked.busy;
  const sweep = useAsk(ready ? withArguments(request, { vary: "bytes=1kB..10GB" }) : null);
  const hops = useAsk(ready && asked.answer!.results.devices <= 64 ? withArguments(request, { simulate: true }) : null);
  const cluster = useAsk(given.on ? { verb: "clusters", arguments: { cluster: given.on } } : null);
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const refusal = refusalOf(asked);
  const set = (part: Query): void => change({ ...given, ...part, open: "" });
  return (
    <div class="view">
      <Panel
        request={request as Request}
        summary={`${given.kind} of ${given.bytes} · ${given.on}${given.axes ? ` over ${given.axes}` : ""}`}
      >
        <Select
          label="Collective"
          value={given.kind ?? ""}
          choices={kinds.map((value) => ({ value }))}
          onChange={(kind) => set({ kind })}
          problem={problemAt(refusal, "kind")}
        />
        <TextField
          label="Bytes"
          side="of the whole array"
          value={given.bytes ?? ""}
          onChange={(value) => set({ bytes: value })}
          halve={(factor) => resize(given.bytes ?? "", factor)}
          problem={problemAt(refusal, "bytes")}
          hint="32MiB, or an array: bf16[2048,8192]"
        />
        <ClusterFields on={given.on ?? ""} refusal={refusal} onChange={(on) => set({ on, axes: "" })} />
        <TextField
          label="Axes"
          value={given.axes ?? ""}
          placeholder="all"
          onChange={(axes) => set({ axes })}
          problem={problemAt(refusal, "axes")}
          hint="X, or X,Y; Y=4 for four neighbours"
        />
        <Examples
          of={examples.map(([name, part]) => ({
            name,
            chosen: part.kind === given.kind && part.on === given.on && (part.axes ?? "") === (given.axes ?? ""),
            choose: () => set({ axes: "", ...part }),
          }))}
        />
      </Panel>
      <AnswerFrame asked={asked} request={request as Request}>
        {(answer) => (
          <NetworkAnswer
            answer={answer}
            sweep={sweep.answer?.results.sweep}
            blocks={hops.busy ? undefined : hops.answer?.results.blocks}
            simulated={hops.busy ? undefined : hops.answer?.results}
            cluster={cluster.answer}
          />
        )}
      </AnswerFrame>
    </div>
  );
}

function NetworkAnswer({
  answer,
  sweep,
  blocks,
  simulated,
  cluster,
}: {
  answer: Answer<"collective">;
  sweep: CollectiveResults["sweep"];
  blocks: CollectiveResults["blocks"];
  simulated: CollectiveResults | undefined;
  cluster: Answer<"clusters"> | undefined;
}): JSX.Element {
  const r = answer.results;
  const rows: [string, string][] = [
    ["Algorithm", r.algorithm],
    ["Hops", int(r.hops)],
    ["Ideal hardware", timeRange(v(r.time.lower), v(r.time.upper))],
    ["Time of the bytes", time(v(r.bandwidth_time))],
    ["Time of the hops", time(v(r.latency_time))],
    ["Bytes over the busiest link", bytes(v(r.bytes_per_link))],
    ["Algorithm bandwidth", si(v(r.algorithm_bandwidth), "B/s")],
    ["Bus bandwidth", si(v(r.bus_bandwidth), "B/s")],
    ...(r.latency_bound_below
      ? [["Hops take longer than bytes below", bytes(v(r.latency_bound_below))] as [string, string]]
      : []),
    ...(simulated?.simulated
      ? [
          ["Simulated chunk by chunk", time(v(simulated.simulated.time))] as [string, string],
          ["Mean load of links then", percent(simulated.simulated.mean_link_load)] as [string, string],
        ]
      : []),
    ...(r.without_in_network_reduction
      ? [
          [
            "Without reduction in switches",
            `${time(v(r.without_in_network_reduction.time))}, ${sig(1 + r.without_in_network_reduction.gain)}× as long`,
          ] as [string, string],
        ]
      : []),
  ];
  return (
    <Derived
      trees={answer.derivation}
      extra={[{ name: "estimate", value: v(r.time.estimate), unit: "s", interval: r.time.interval }]}
    >
      <Head
        sub={
          <>
            <Between interval={r.time.interval} />
            {r.with_idle_axes && (
              <span>
                with idle axes {r.with_idle_axes.axes}: {time(v(r.with_idle_axes.time))}, if {r.with_idle_axes.if}
              </span>
            )}
          </>
        }
      >
        <Num of="estimate">{time(v(r.time.estimate))}</Num> to {r.collective} {bytes(v(r.bytes))} over {int(r.devices)}{" "}
        chips, and {r.limiter} limits it.
      </Head>
      <div class="g2 l">
        <div class="cards">
          {sweep && sweep.length > 1 && <SweepCard sweep={sweep} at={v(r.bytes)} estimate={v(r.time.estimate)} />}
          {blocks && blocks.length > 1 && blocks[0]!.devices.length <= 16 && (
            <HopsCard blocks={blocks} kind={r.collective} algorithm={r.algorithm} />
          )}
          {(r.levels?.length ?? 0) > 0 && (
            <Card
              title="Levels of the network"
              note={r.bottleneck && `${r.bottleneck} limits it`}
              table={() => [
                ["level", "groups", "bandwidth", "bytes_into_child", "time_s"],
                ...r.levels!.map((level) => [
                  level.name,
                  level.groups,
                  v(level.bandwidth),
                  v(level.bytes_into_child),
                  v(level.time),
                ]),
              ]}
            >
              <Scroll>
                <table class="rows small">
                  <thead>
                    <tr>
                      <th>Level</th>
                      <th class="n">Groups</th>
                      <th class="n">Bandwidth</th>
                      <th class="n">Bytes into each</th>
                      <th class="n">Time</th>
                      <th>Reduces in switches</th>
                    </tr>
                  </thead>
                  <tbody>
                    {r.levels!.map((level) => (
                      <tr key={level.name}>
                        <td>{level.name}</td>
                        <td class="n">{int(level.groups)}</td>
                        <td class="n">{si(v(level.bandwidth), "B/s")}</td>
                        <td class="n">{bytes(v(level.bytes_into_child))}</td>
                        <td class="n">{time(v(level.time))}</td>
                        <td>{level.in_network_reduction ? "yes" : "no"}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Scroll>
            </Card>
          )}
          {answer.derivation && (
            <section class="card" aria-label="Derivation">
              <header>
                <h2>Derivation</h2>
              </header>
              <Tree />
            </section>
          )}
        </div>
        <div class="cards">
          {cluster && <TopologyCard results={cluster.results} />}
          <Card title="In numbers" table={() => [["figure", "value"], ...rows]}>
            <Figures rows={rows} />
          </Card>
          <NotesCard answer={answer} />
        </div>
      </div>
    </Derived>
  );
}

function SweepCard({
  sweep,
  at,
  estimate,
}: {
  sweep: NonNullable<CollectiveResults["sweep"]>;
  at: number;
  estimate: number;
}): JSX.Element {
  return (
    <Card
      title="Bandwidth against size"
      note="bytes of the array over the estimated time"
      drawing
      table={() => [
        ["bytes", "time_s", "lower_s", "algorithm_bandwidth", "bus_bandwidth"],
        ...sweep.map((one) => [
          v(one.bytes),
          v(one.time),
          v(one.lower),
          v(one.algorithm_bandwidth),
          v(one.bus_bandwidth),
        ]),
      ]}
    >
      <Chart
        draw={(width) => {
          const height = 300;
          const frame = { left: 66, right: width - 16, top: 26, bottom: height - 46 };
          const sizes = [...sweep.map((one) => v(one.bytes)), at];
          const [x0, x1] = [Math.min(...sizes), Math.max(...sizes)];
          const ideal = sweep.map((one) => v(one.bytes) / v(one.lower));
          const rates = [...sweep.map((one) => v(one.bytes) / v(one.time)), at / estimate];
          const [y0, y1] = [Math.min(...rates) / 1.5, Math.max(...rates, ...ideal.slice(-1)) * 1.6];
          const x = logarithmic(x0, x1, frame.left, frame.right);
          const y = logarithmic(y0, y1, frame.bottom, frame.top);
          return (
            <Drawing
              width={width}
              height={height}
              label={`bandwidth against size; ${bytes(at)} reach ${si(at / estimate, "B/s")}`}
            >
              <Axes
                frame={frame}
                x={x}
                y={y}
                xTicks={logTicks(x0, x1, width < 520 ? 4 : 8)}
                yTicks={logTicks(y0, y1, 6)}
                xUnit="B"
                yUnit=""
                xTitle="bytes of the array"
                yTitle="B/s"
                upright
              />
              <polyline
                points={points(sweep.map((one, i) => [x(v(one.bytes)), y(Math.min(ideal[i]!, y1))] as const))}
                fill="none"
                stroke="var(--edge)"
                stroke-width={1.25}
                stroke-dasharray="3 3"
              />
              <polyline
                points={points(sweep.map((one) => [x(v(one.bytes)), y(v(one.bytes) / v(one.time))] as const))}
                fill="none"
                stroke="var(--s2)"
                stroke-width={2.25}
              />
              <Line x1={x(at)} y1={frame.top} x2={x(at)} y2={frame.bottom} stroke="var(--ink)" dash="4 3" width={1} />
              <Mark
                shape="circle"
                x={x(at)}
                y={y(at / estimate)}
                r={6}
                fill="var(--ink)"
                stroke="var(--surface)"
                stroke-width={2}
              />
              <Label
                x={x(at) + (x(at) > width * 0.5 ? -10 : 10)}
                y={y(at / estimate) + 18}
                role="b"
                halo
                anchor={x(at) > width * 0.5 ? "end" : "start"}
              >{`${bytes(at)}: ${si(at / estimate, "B/s")}`}</Label>
            </Drawing>
          );
        }}
      />
      <div class="legend">
        <span>
          <svg width="22" height="12" aria-hidden="true">
            <path d="M0 6h22" stroke="var(--s2)" stroke-width="2.25" />
          </svg>
          estimate
        </span>
        <span>
          <svg width="22" height="12" aria-hidden="true">
            <path d="M0 6h22" stroke="var(--edge)" stroke-width="1.25" stroke-dasharray="3 3" />
          </svg>
          ideal hardware
        </span>
      </div>
    </Card>
  );
}
