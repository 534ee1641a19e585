import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { refused, useAsk, useAskAll } from "../../engine/ask";
import { filled, requestOf, v, withArguments } from "../../engine/request";
import type { CollectiveResults, ShardResults } from "../../engine/schema";
import { AnswerFrame, Head, refusalOf } from "../../parts/answer";
import { Num } from "../../parts/basics";
import type { Node } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Derived } from "../../parts/derivation";
import { TextField } from "../../parts/fields";
import { Examples, Panel, problemAt } from "../../parts/panel";
import { Player } from "../../parts/player";
import { Scroll } from "../../parts/scroll";
import { bytes, int, sentence, si, time } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { limitWords } from "../words";
import { Grid } from "./grid";
import type { Frame } from "./grid";
import { devicesOf, drawn, holds, holdsDuring, parseMesh, parseStep, parseTensor, shardsOf } from "./notation";
import type { Axis, Coordinates, Tensor } from "./notation";

const defaults: Query = {
  expr: "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]",
  mesh: "X=4,Y=4",
  sizes: "I=8192,J=8192,K=8192",
  on: "tpu-v5e:4x4",
};
const examples: readonly [string, Query][] = [
  ["What each device holds", { expr: "A[I_XY, J]", mesh: "X=4,Y=4", sizes: "I=1024,J=4096", on: "" }],
  ["A resharding", { expr: "A[I_X, J] -> A[I, J_X]", mesh: "X=4,Y=2", sizes: "I=4096,J=4096", on: "" }],
  [
    "No communication",
    { expr: "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", mesh: "X=4,Y=4", sizes: "I=8192,J=8192,K=8192", on: "tpu-v5e:4x4" },
  ],
  [
    "Gather the contracted side",
    { expr: "A[I, J_X] * B[J, K] -> C[I, K]", mesh: "X=4,Y=4", sizes: "I=8192,J=8192,K=8192", on: "tpu-v5e:4x4" },
  ],
  ["Partial sums", defaults],
  [
    "Both sides on one axis",
    { expr: "A[I_X, J] * B[J, K_X] -> C[I_X, K]", mesh: "X=4,Y=4", sizes: "I=8192,J=8192,K=8192", on: "tpu-v5e:4x4" },
  ],
];
const most = 64;

/** Frames: each array before the plan, then what every step leaves; a collective over one axis hop by hop. */
function framesOf(
  results: ShardResults,
  axes: Axis[],
  devices: Coordinates[],
  hops: (CollectiveResults["blocks"] | undefined)[],
): Frame[] {
  const frames: Frame[] = [];
  const show = (
    title: string,
    step: number,
    tensor: Tensor,
    finer: [number, number] = [1, 1],
    blocks?: (device: Coordinates) => ReturnType<typeof holds>,
  ): void => {
    const dims = drawn([tensor]);
    const one = dims[0] === dims[1];
    frames.push({
      title,
      step,
      names: [tensor.dimensions[dims[0]]?.name ?? "", one ? "" : (tensor.dimensions[dims[1]]?.name ?? "")],
      rows: Math.max(shardsOf(tensor.dimensions[dims[0]], axes), finer[0]),
      columns: one ? 1 : Math.max(shardsOf(tensor.dimensions[dims[1]], axes), finer[1]),
      blocks: devices.map((device) => (blocks ? blocks(device) : holds(tensor, device, axes, dims))),
    });
  };
  const steps = (results.steps ?? []).map((step) => parseStep(step.text, axes));
  const inputs = results.tensors
    .map((one) => parseTensor(one.tensor, axes))
    .filter((one): one is Tensor => one !== null);
  const made = new Set(steps.length > 0 ? [results.tensors[results.tensors.length - 1]?.tensor.split("[")[0]] : []);
  for (const tensor of inputs)
    if (!made.has(tensor.name) || inputs.length === 1) show(`${tensor.text}, before the plan`, -1, tensor);
  steps.forEach((step, k) => {
    if (!step) return;
    const list = hops[k];
    const axis = axes.find((one) => one.name === results.steps?.[k]?.axes);
    if (step.source && axis && list && list.length > 1 && list[0]!.devices.length === axis.size) {
      const pair = { source: step.source, result: step.result };
      const dims = drawn([step.source, step.result]);
      const rows = (i: 0 | 1): number =>
        Math.max(shardsOf(step.source!.dimensions[dims[i]], axes), shardsOf(step.result.dimensions[dims[i]], axes)) *
        (step.source!.partial.includes(axis.name) &&
        i === 0 &&
        shardsOf(step.result.dimensions[dims[0]], axes) === shardsOf(step.source!.dimensions[dims[0]], axes) &&
        shardsOf(step.result.dimensions[dims[1]], axes) === shardsOf(step.source!.dimensions[dims[1]], axes)
          ? axis.size
          : 1);
      for (const hop of list.slice(1)) {
        const before = list[hop.hop - 1];
        show(
          `${results.steps![k]!.text}: hop ${hop.hop} of ${list.length - 1}`,
          k,
          step.result,
          [rows(0), rows(1)],
          (device) =>
            holdsDuring(
              pair,
              axis,
              hop.devices[device[axis.name] ?? 0] ?? [],
              before?.devices[device[axis.name] ?? 0],
              device,
              axes,
              dims,
            ),
        );
      }
    } else show(results.steps![k]!.text, k, step.result);
  });
  return frames;
}

export function ShardingView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const given = filled(query, defaults);
  const request = requestOf("shard", given);
  const asked = useAsk(request);
  useEffect(
    () => share({ request: request as Request, answer: asked.answer as Answer | undefined }),
    [asked.answer, JSON.stringify(request)],
  );
  const refusal = refusalOf(asked);
  const set = (part: Query): void => change({ ...given, ...part, plan: "", frame: "", open: "" });
  return (
    <div class="view">
      <Panel request={request as Request} summary={`${given.expr} · ${given.mesh}`}>
        <TextField
          label="Expression"
          value={given.expr ?? ""}
          onChange={(expr) => set({ expr })}
          problem={problemAt(refusal, "expr")}
          hint="subscripts are mesh axes, {U_X} marks partial sums"
        />
        <TextField
          label="Mesh"
          value={given.mesh ?? ""}
          onChange={(mesh) => set({ mesh })}
          problem={problemAt(refusal, "mesh")}
        />
        <TextField
          label="Sizes"
          value={given.sizes ?? ""}
          onChange={(sizes) => set({ sizes })}
          problem={problemAt(refusal, "sizes")}
        />
        <div class="two">
          <TextField
            label="Cluster"
            value={given.on ?? ""}
            placeholder="by bytes"
            onChange={(on) => set({ on })}
            problem={problemAt(refusal, "on")}
          />
          <TextField
            label="Format"
            value={given.dtype ?? ""}
            placeholder="bf16"
            onChange={(dtype) => set({ dtype })}
            problem={problemAt(refusal, "dtype")}
          />
        </div>
        <Examples
          of={examples.map(([name, part]) => ({
            name,
            shown: (
              <>
                {name}
                <small class="mono">{part.expr}</small>
              </>
            ),
            chosen: part.expr === given.expr && part.mesh === given.mesh,
            choose: () => set(part),
          }))}
        />
      </Panel>
      <AnswerFrame asked={asked} request={request as Request}>
        {(answer) => <ShardingAnswer answer={answer} given={given} request={request} place={place} />}
      </AnswerFrame>
    </div>
  );
}

function ShardingAnswer({
  answer,
  given,
  request,
  place,
}: {
  answer: Answer<"shard">;
  given: Query;
  request: Request<"shard">;
  place: Place;
}): JSX.Element {
  const r = answer.results;
  const axes = useMemo(() => parseMesh(r.mesh), [r.mesh]);
  const devices = useMemo(() => (axes.reduce((n, axis) => n * axis.size, 1) <= most ? devicesOf(axes) : []), [axes]);
  const steps = r.steps ?? [];
  // Hops are those of the cluster's own ring where the axis is one, else those of a line of as many chips.
  const simulated = useAskAll(
    steps.flatMap((step) => {
      const axis = axes.find((one) => one.name === step.axes);
      if (!step.collective || !axis || axis.size > 16) return [];
      const own: Request<"collective"> = {
        verb: "collective",
        arguments: { kind: step.kind, bytes: "1MB", on: given.on ?? "", axes: axis.name, simulate: true },
      };
      const line: Request<"collective"> = {
        verb: "collective",
        arguments: { kind: step.kind, bytes: "1MB", on: "tpu-v5e:16x16", axes: `X=${axis.size}`, simulate: true },
      };
      return given.on ? [own, line] : [line, line];
    }),
  );
  let next = 0;
  const hops = steps.map((step) => {
    const axis = axes.find((one) => one.name === step.axes);
    if (!step.collective || !axis || axis.size > 16) return undefined;
    const pair = [simulated[next], simulated[next + 1]];
    next += 2;
    return pair.flatMap((reply) =>
      reply && !refused(reply) && reply.results.blocks?.length && reply.results.blocks[0]!.devices.length === axis.size
        ? [reply.results.blocks]
        : [],
    )[0];
  });
  const frames = useMemo(
    () => (devices.length > 0 ? framesOf(r, axes, devices, hops) : []),
    [r, axes, devices, hops.map((one) => one?.length).join()],
  );
  const at = Math.min(frames.length - 1, Math.max(0, Number(place.query.frame ?? 0)));
  const frame = frames[at];
  const setFrame = (step: number): void => change({ frame: step === 0 ? "" : String(step) }, true);
  const timeNode: Node | undefined = r.time && {
    name: "time",
    value: v(r.time.estimate),
    unit: "s",
    interval: r.time.interval,
    formula: "as measured on such links; ideal hardware takes the longer of arithmetic and collectives",
    from: [
      ...(r.compute_time
        ? [
            {
              name: "arithmetic at the peak",
              value: v(r.compute_time),
              unit: "s",
              formula: "FLOP of a device / peak",
              from: r.flops_per_device
                ? [{ name: "FLOP of a device", value: v(r.flops_per_device), unit: "FLOP", source: r.expression }]
                : [],
            },
          ]
        : []),
      ...steps
        .filter((step) => step.time)
        .map((step) => ({
          name: step.text,
          value: v(step.time),
          unit: "s",
          formula: `${step.kind} of ${bytes(v(step.bytes))} received by a device`,
        })),
    ],
  };
  const done = steps
    .filter((step) => step.collective)
    .map((step) => `${step.kind} over ${step.axes.split("").join(" and ")}`);
  const whole = r.tensors[0];
  return (
    <Derived trees={answer.derivation}>
      <Head sub={<span class="expr mono">{r.expression}</span>}>
        {steps.length > 0 ? (
          <>
            {done.length > 0 ? `${sentence(done.join(", then "))} ` : "No communication. "}
            {r.time ? (
              <>
                <span class="nowrap">
                  <Num of={timeNode}>{time(v(r.time.estimate))}</Num>,
                </span>{" "}
                and {limitWords(r.limiter ?? "")} limits it.
              </>
            ) : (
              r.collective_bytes && `A device receives ${bytes(v(r.collective_bytes))}.`
            )}
          </>
        ) : whole?.bytes_per_device && whole.array_bytes ? (
          `Each of ${int(r.devices)} devices holds ${bytes(v(whole.bytes_per_device))} of ${bytes(v(whole.array_bytes))}.`
        ) : (
          sentence(answer.headline)
        )}
      </Head>
      <div class="g2 l">
        <Card title="What each device holds" note={frame?.title} drawing>
          {frame ? (
            <>
              {frames.length > 1 && <Player steps={frames.length} at={at} set={setFrame} label="Step of the plan" />}
              <Grid frame={frame} axes={axes} devices={devices} />
            </>
          ) : (
            <p class="muted">
              A mesh of at most {most} devices is drawn; this one has {int(r.devices)}.
            </p>
          )}
        </Card>
        <div class="cards">
          {steps.length > 0 && (
            <Card
              title="Plan"
              note="click a step to see it"
              table={() => [
                ["step", "kind", "axes", "bytes_received", "time_s"],
                ...steps.map((step) => [step.text, step.kind, step.axes, v(step.bytes), v(step.time) || null]),
              ]}
            >
              <div class="steps">
                {steps.map((step, k) => (
                  <button
                    type="button"
                    key={k}
                    aria-current={frame?.step === k ? "step" : undefined}
                    onClick={() =>
                      setFrame(
                        Math.max(
                          0,
                          frames.findIndex((one) => one.step === k),
                        ),
                      )
                    }
                  >
                    <span class="k">{k + 1}</span>
                    <span class="mono">{step.text}</span>
                    <span class="muted n">
                      {step.collective
                        ? bytes(v(step.bytes))
                        : r.flops_per_device && step.kind === "product"
                          ? si(v(r.flops_per_device), "FLOP")
                          : ""}
                      <br />
                      {step.time
                        ? time(v(step.time))
                        : step.kind === "product" && r.compute_time
                          ? time(v(r.compute_time))
                          : ""}
                    </span>
                  </button>
                ))}
              </div>
            </Card>
          )}
          <Card
            title="Arrays"
            table={() => [
              ["array", "local_shape", "bytes_per_device", "copies"],
              ...r.tensors.map((one) => [
                one.tensor,
                one.local_shape.join("x"),
                v(one.bytes_per_device),
                one.replication,
              ]),
            ]}
          >
            <Scroll>
              <table class="rows small">
                <thead>
                  <tr>
                    <th>Array</th>
                    <th class="n">Local shape</th>
                    <th class="n">A device</th>
                    <th class="n">Copies</th>
                  </tr>
                </thead>
                <tbody>
                  {r.tensors.map((one) => (
                    <tr key={one.tensor}>
                      <td class="mono tiny">{one.tensor}</td>
                      <td class="n">
                        {one.local_shape.map((side) => (typeof side === "number" ? int(side) : side)).join(" × ")}
                      </td>
                      <td class="n">{one.bytes_per_device ? bytes(v(one.bytes_per_device)) : "–"}</td>
                      <td class="n">{int(one.replication)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          </Card>
          {(r.alternatives?.length ?? 0) > 0 && (
            <Card
              title="Alternatives"
              note="other plans, the same result"
              end={
                place.query.plan && (
                  <button type="button" class="btn" onClick={() => change({ plan: "", frame: "" })}>
                    Cheapest plan
                  </button>
                )
              }
            >
              <table class="rows small">
                <thead class="sr">
                  <tr>
                    <th>Plan</th>
                    <th>Bytes and time</th>
                    <th>Show it</th>
                  </tr>
                </thead>
                <tbody>
                  {r.alternatives!.slice(0, 5).map((one) => (
                    <tr key={one.steps}>
                      <td>
                        {one.steps.split("; ").map((step) => (
                          <span class="mono tiny block" key={step}>
                            {step}
                          </span>
                        ))}
                      </td>
                      <td class="n top">
                        {bytes(v(one.collective_bytes))}
                        {one.time && (
                          <>
                            <br />
                            <span class="muted">{time(v(one.time))}</span>
                          </>
                        )}
                      </td>
                      <td class="n top">
                        <button
                          type="button"
                          class="btn"
                          onClick={() => change({ plan: String(one.arguments.plan), frame: "" })}
                        >
                          Show
                        </button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Card>
          )}
          {(r.backward?.length ?? 0) > 0 && (
            <Card title="The backward pass" note="what the same sharding needs for its gradients">
              <table class="rows small">
                <thead class="sr">
                  <tr>
                    <th>Step</th>
                    <th>Bytes</th>
                  </tr>
                </thead>
                <tbody>
                  {r.backward!.map((one) => (
                    <tr key={one.text}>
                      <td class="mono tiny">{one.text}</td>
                      <td class="n">{v(one.bytes) > 0 ? bytes(v(one.bytes)) : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Card>
          )}
          <Check request={request} />
        </div>
      </div>
    </Derived>
  );
}

/** The plan run on virtual devices: numbers and bytes against a plain product. */
function Check({ request }: { request: Request<"shard"> }): JSX.Element | null {
  const small =
    "sizes" in request.arguments &&
    String(request.arguments.sizes)
      .split(",")
      .every((one) => Number(one.split("=")[1]) <= 512);
  const asked = useAsk(small ? withArguments(request, { check: true }) : null);
  const check = asked.answer?.results.check;
  if (!small || !check) return null;
  return (
    <Card title="Checked">
      <p>
        Run on {int(asked.answer?.results.devices)} virtual devices:{" "}
        {check.ok ? "the result and the bytes are as planned" : "the result differs"} ({bytes(v(check.bytes_moved))}{" "}
        moved).
      </p>
    </Card>
  );
}
