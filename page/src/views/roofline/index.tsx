import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Shared } from "../../app";
import { useCatalogue } from "../../catalogue";
import type { Answer, Asked, Request } from "../../engine/ask";
import { refused, useAskAll } from "../../engine/ask";
import { filled, shortChip, v } from "../../engine/request";
import type { RooflineResults } from "../../engine/schema";
import { Mark, dashes, shapes } from "../../draw/svg";
import { AnswerFrame, Head } from "../../parts/answer";
import { Between, Num } from "../../parts/basics";
import type { Node } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Derived, Tree } from "../../parts/derivation";
import { Combo, Slider, TextField } from "../../parts/fields";
import { Panel, problemAt } from "../../parts/panel";
import { Scroll } from "../../parts/scroll";
import { int, percent, quantity, si, time, timeRange } from "../../text/format";
import { change } from "../../url";
import type { Place, Query } from "../../url";
import { limitName, limitWords } from "../words";
import { RoofChart } from "./chart";

const defaults: Query = { op: "bf16[B,8192] @ bf16[8192,28672]", on: "h100-sxm,tpu-v5e", at: "256" };
const operations: readonly [string, string][] = [
  ["Feed-forward product, bf16", "bf16[B,8192] @ bf16[8192,28672]"],
  ["The same, int8 weights", "bf16[B,8192] @ int8[8192,28672]"],
  ["The same in fp8", "fp8[B,8192] @ fp8[8192,28672]"],
  ["Square product", "bf16[B,B] @ bf16[B,B]"],
  ["Attention of a prompt", "attention(bf16[1,64,B,128], bf16[1,8,B,128], causal)"],
  ["Attention of a decode step", "attention(bf16[64,64,1,128], bf16[64,8,B,128])"],
  ["Softmax", "softmax(bf16[B,8192])"],
];
const most = 4;
const colours = ["s1", "s2", "s3", "s4"];
/** The letter that is varied: the first that has no number. */
function freeLetter(op: string, sizes: string): string | null {
  const given = new Set(sizes.split(",").map((one) => one.split("=")[0]?.trim()));
  const inside = [...op.matchAll(/\[([^\]]*)\]/g)].flatMap((match) => match[1]!.split(","));
  return inside.map((one) => one.trim()).find((one) => /^[A-Z]\w*$/.test(one) && !given.has(one)) ?? null;
}

export interface Chip {
  id: string;
  name: string;
  colour: string;
  shape: (typeof shapes)[number];
  dash: string;
  at?: RooflineResults;
  sweep: { size: number; intensity: number; achieved: number; estimate: number }[];
}

export function RooflineView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const given = filled(query, defaults);
  const op = given.op ?? "";
  const sizes = given.sizes ?? "";
  const letter = freeLetter(op, sizes);
  const size = Math.max(1, Number(given.at || 256));
  const ids = (given.on ?? "").split(",").filter(Boolean).slice(0, most);
  const fixed = letter ? [sizes, `${letter}=${size}`].filter(Boolean).join(",") : sizes;
  const extra = {
    ...(given.memory ? { memory: given.memory } : {}),
    ...(given.compute ? { compute: given.compute } : {}),
  };
  const points = useAskAll(
    ids.map((on): Request<"roofline"> => ({
      verb: "roofline",
      arguments: { op, on, ...(fixed ? { sizes: fixed } : {}), ...extra, explain: "all" },
    })),
  );
  const curves = useAskAll(
    letter
      ? ids.map((on): Request<"roofline"> => ({
          verb: "roofline",
          arguments: { op, on, ...(sizes ? { sizes } : {}), ...extra, vary: `${letter}=1..65536` },
        }))
      : [],
  );
  const last = useRef<Answer<"roofline"> | undefined>(undefined);
  const first = points[0];
  if (first && !refused(first)) last.current = first;
  const asked: Asked<"roofline"> = { reply: first ?? last.current, answer: last.current, busy: first === undefined };
  const request: Request<"roofline"> = {
    verb: "roofline",
    arguments: { op, on: ids[0] ?? "", ...(fixed ? { sizes: fixed } : {}), ...extra },
  };
  const refusal = points.flatMap((one) => (one && refused(one) ? [one] : []))[0];
  useEffect(
    () => share({ request: request as Request, answer: last.current as Answer | undefined }),
    [first, JSON.stringify(request)],
  );
  const set = (part: Query, replace = false): void => change({ ...given, ...part, open: "" }, replace);
  const catalogue = useCatalogue();
  const chips = ids.map((id, i): Chip => {
    const point = points[i];
    const curve = curves[i];
    return {
      id,
      name: catalogue?.chips.find((one) => one.id === id)?.name ?? id,
      colour: `var(--${colours[i]})`,
      shape: shapes[i]!,
      dash: dashes[i]!,
      at: point && !refused(point) ? point.results : undefined,
      sweep:
        letter && curve && !refused(curve)
          ? (curve.results.sweep ?? []).map((one) => ({
              size: Number((one as unknown as Record<string, number>)[letter]),
              intensity: v(one.intensity),
              achieved: v(one.flops) / v(one.time.estimate),
              estimate: v(one.time.estimate),
            }))
          : [],
    };
  });
  const critical = curves.map((curve) => (curve && !refused(curve) ? curve.results.critical_size : undefined));
  return (
    <div class="view">
      <Panel request={request as Request} summary={`${op} · ${ids.join(", ")}`}>
        <TextField
          label="Operation"
          value={op}
          onChange={(value) => set({ op: value })}
          problem={problemAt(refusal, "op")}
          hint="a letter without a number is varied"
        />
        <div class="list">
          {operations.map(([name, text]) => (
            <button type="button" key={text} aria-pressed={text === op} onClick={() => set({ op: text, sizes: "" })}>
              {name}
            </button>
          ))}
        </div>
        {letter && (
          <Slider
            label={`${letter}`}
            output={int(size)}
            from={0}
            to={16}
            step={1}
            value={Math.round(Math.log2(size))}
            text={`${size}`}
            hint="or drag the point"
            onChange={(power, done) => set({ at: String(2 ** power) }, !done)}
          />
        )}
        {letter && (
          <TextField
            label={`Exactly ${letter} =`}
            value={String(size)}
            onChange={(value) => set({ at: /^\d+$/.test(value) ? value : "256" })}
          />
        )}
        <TextField
          label="Numbers for other letters"
          value={sizes}
          placeholder="D=4096,F=16384"
          onChange={(value) => set({ sizes: value })}
          problem={problemAt(refusal, "sizes")}
        />
        <fieldset>
          <legend>Chips, at most four</legend>
          {ids.map((id, i) => (
            <div class="check" key={id}>
              <svg width="16" height="14" aria-hidden="true">
                <Mark shape={shapes[i]!} x={8} y={7} r={4.5} fill={`var(--${colours[i]})`} />
              </svg>
              <span class="grow">{catalogue?.chips.find((one) => one.id === id)?.name ?? id}</span>
              {ids.length > 1 && (
                <button
                  type="button"
                  class="btn quiet mini"
                  aria-label={`Remove ${id}`}
                  onClick={() => set({ on: ids.filter((one) => one !== id).join(",") })}
                >
                  Remove
                </button>
              )}
            </div>
          ))}
        </fieldset>
        {ids.length < most && (
          <Combo
            label="Add a chip"
            value=""
            problem={problemAt(refusal, "on")}
            choices={(catalogue?.chips ?? [])
              .filter((one) => !ids.includes(one.id))
              .map((one) => ({ value: one.id, name: one.name, note: si(one.peak.value, "FLOP/s") }))}
            onChange={(id) => set({ on: [...ids, id].join(",") })}
          />
        )}
      </Panel>
      <AnswerFrame asked={refusal && !first ? { reply: refusal, busy: false } : asked} request={request as Request}>
        {(answer) => (
          <RooflineAnswer
            answer={answer}
            chips={chips}
            letter={letter}
            size={size}
            critical={critical}
            onSize={(value, done) => set({ at: String(value) }, !done)}
          />
        )}
      </AnswerFrame>
    </div>
  );
}

function RooflineAnswer({
  answer,
  chips,
  letter,
  size,
  critical,
  onSize,
}: {
  answer: Answer<"roofline">;
  chips: Chip[];
  letter: string | null;
  size: number;
  critical: (RooflineResults["critical_size"] | undefined)[];
  onSize: (size: number, done: boolean) => void;
}): JSX.Element {
  const r = answer.results;
  const estimate = v(r.time.estimate);
  const [shownTree, showTree] = useState(false);
  const node = (results: RooflineResults): Node => ({
    name: `time on ${results.chip}`,
    value: v(results.time.estimate),
    unit: "s",
    interval: results.time.interval,
    formula: "as calibrated for the family, beside ideal hardware: max(arithmetic, memory traffic)",
    from: [
      {
        name: "arithmetic at the peak",
        value: v(results.compute_time),
        unit: "s",
        formula: "FLOP / peak",
        from: [
          { name: "FLOP", value: v(results.flops), unit: "FLOP", source: results.operation ?? "" },
          { name: "peak", value: v(results.peak), unit: "FLOP/s", source: results.peak.source ?? results.unit },
        ],
      },
      {
        name: "memory traffic at full bandwidth",
        value: v(results.memory_time),
        unit: "s",
        formula: "bytes / bandwidth",
        from: [
          { name: "bytes", value: v(results.bytes), unit: "B", source: results.operation ?? "" },
          {
            name: "bandwidth",
            value: v(results.bandwidth),
            unit: "B/s",
            source: results.bandwidth.source ?? results.memory,
          },
        ],
      },
      ...(results.calibration
        ? [{ name: "launch", value: v(results.calibration.launch), unit: "s", source: results.calibration.basis }]
        : []),
    ],
  });
  const first = critical[0];
  return (
    <Derived
      trees={answer.derivation}
      extra={[{ name: "estimate", value: estimate, unit: "s", interval: r.time.interval }]}
    >
      <Head
        sub={
          <>
            <Between interval={r.time.interval} />
            <span>ideal hardware {timeRange(v(r.time.lower), v(r.time.upper))}</span>
            {first?.whole && letter ? (
              <span>
                arithmetic limits it from {letter} = <b>{int(first.whole)}</b> on
              </span>
            ) : first && !first.value && letter ? (
              <span>{first.verdict ?? "no size changes what limits it"}</span>
            ) : null}
          </>
        }
      >
        {letter ? `With ${letter} = ${int(size)} ` : ""}
        {limitWords(r.limiter)} limits it on one {shortChip(r.chip)}: <Num of="estimate">{time(estimate)}</Num>.
      </Head>
      <RoofChart chips={chips} letter={letter} size={size} onSize={onSize} />
      <Card
        title="Side by side"
        table={() => [
          [
            "chip",
            "time_s",
            "low_s",
            "high_s",
            "limited_by",
            "ideal_lower_s",
            "ideal_upper_s",
            "flops_per_s",
            "of_peak",
            "intensity",
            "critical_size",
          ],
          ...chips.map((chip, i) => [
            chip.id,
            v(chip.at?.time.estimate),
            v(chip.at?.time.interval?.low),
            v(chip.at?.time.interval?.high),
            chip.at?.limiter ?? "",
            v(chip.at?.time.lower),
            v(chip.at?.time.upper),
            v(chip.at?.flops) / v(chip.at?.time.estimate),
            v(chip.at?.flops) / v(chip.at?.time.estimate) / v(chip.at?.peak),
            v(chip.at?.intensity),
            critical[i]?.value ?? null,
          ]),
        ]}
      >
        <Scroll>
          <table class="rows small">
            <thead>
              <tr>
                <th>Chip</th>
                <th class="n">Time</th>
                <th>80 % interval</th>
                <th>Limited by</th>
                <th class="n">Ideal</th>
                <th class="n">Reached</th>
                <th class="n">Of peak</th>
                <th class="n">Intensity</th>
                {letter && <th class="n">Critical {letter}</th>}
              </tr>
            </thead>
            <tbody>
              {chips.map((chip, i) => (
                <tr key={chip.id}>
                  <td>
                    <svg class="inline" width="16" height="12" aria-hidden="true">
                      <Mark shape={chip.shape} x={7} y={6} r={4.5} fill={chip.colour} />
                    </svg>
                    {chip.name}
                  </td>
                  {chip.at ? (
                    <>
                      <td class="n">
                        <b>
                          <Num of={node(chip.at)}>{time(v(chip.at.time.estimate))}</Num>
                        </b>
                      </td>
                      <td>
                        <Between interval={chip.at.time.interval} share={false} />
                      </td>
                      <td>{limitName(chip.at.limiter)}</td>
                      <td class="n muted">{timeRange(v(chip.at.time.lower), v(chip.at.time.upper))}</td>
                      <td class="n">{si(v(chip.at.flops) / v(chip.at.time.estimate), "FLOP/s")}</td>
                      <td class="n">{percent(v(chip.at.flops) / v(chip.at.time.estimate) / v(chip.at.peak))}</td>
                      <td class="n">{chip.at.intensity ? quantity(v(chip.at.intensity), "FLOP/B", 3) : "–"}</td>
                      {letter && <td class="n">{critical[i]?.whole ? int(critical[i]?.whole) : "–"}</td>}
                    </>
                  ) : (
                    <td class="muted" colSpan={letter ? 8 : 7}>
                      this chip cannot run it
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </Card>
      <Card
        title="Memory levels"
        note={`of ${chips[0]?.name ?? ""}: the intensity from which each stops to limit`}
        table={() => [
          ["level", "bytes_per_s", "critical_intensity"],
          ...r.levels.map((level) => [level.name, v(level.bandwidth), v(level.critical_intensity)]),
        ]}
      >
        <Scroll>
          <table class="rows small">
            <thead>
              <tr>
                <th>Level</th>
                <th class="n">Bandwidth</th>
                <th class="n">Critical intensity</th>
                <th>Source</th>
              </tr>
            </thead>
            <tbody>
              {r.levels.map((level) => (
                <tr key={level.name}>
                  <td>{level.name}</td>
                  <td class="n">{si(v(level.bandwidth), "B/s")}</td>
                  <td class="n">{quantity(v(level.critical_intensity), "FLOP/B", 3)}</td>
                  <td class="muted mono tiny">{level.bandwidth.source}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </Card>
      <section class="card" aria-label="Derivation">
        <header>
          <h2>Derivation</h2>
          <span class="end">
            <button type="button" class="btn quiet" aria-expanded={shownTree} onClick={() => showTree(!shownTree)}>
              {shownTree ? "Close" : "Open"}
            </button>
          </span>
        </header>
        {shownTree && answer.derivation && <Tree />}
      </section>
    </Derived>
  );
}
