import type { JSX } from "preact";
import type { TrainResults } from "../../engine/schema";
import { v } from "../../engine/request";
import { Card } from "../../parts/card";
import { Num, Track, verdictWord } from "../../parts/basics";
import type { Node } from "../../parts/basics";
import { alike, bytes, capital } from "../../text/format";
import { PartList, StackedBar } from "../bars";
import { trainMemory } from "../words";

type Memory = TrainResults["memory"];
const partsOf = (memory: Memory): { key: string; name: string; value: number; fill: string }[] =>
  trainMemory.map(({ key, name, fill }) => ({
    key,
    name,
    fill,
    value: v((memory as unknown as Record<string, { value: number | null; unit: string }>)[key]) || 0,
  }));

export function MemoryCard({ results }: { results: TrainResults }): JSX.Element {
  const memory = results.memory;
  const parts = partsOf(memory);
  const write = alike(v(memory.total), "B");
  const stages = results.memory_by_stage ?? [];
  const moments = results.memory_over_the_step ?? [];
  const capacity = v(memory.capacity);
  const node = (part: { name: string; value: number }): string | Node => {
    if (part.name === "Optimizer") {
      return {
        name: "optimizer",
        value: part.value,
        unit: "B",
        formula: "master weights + moments",
        from: [
          { name: "master weights", value: v(memory.of_which_master_weights), unit: "B", repeated: true },
          { name: "moments", value: v(memory.of_which_moments), unit: "B", repeated: true },
        ],
      };
    }
    return part.name === "Activations" ? "activations of microbatches in flight" : part.name.toLowerCase();
  };
  return (
    <Card
      title="Memory of the fullest chip"
      note={stages.length > 1 ? `at its fullest moment, stage ${memory.fullest_stage}` : "at its fullest moment"}
      drawing
      table={() => [
        ["part", "bytes"],
        ...parts.map((part) => [part.name, part.value]),
        ["total", v(memory.total)],
        ["capacity", capacity],
      ]}
    >
      <StackedBar
        parts={parts}
        total={v(memory.total)}
        interval={results.memory_interval}
        limit={{ at: capacity, label: `${bytes(capacity)} a chip`, hard: true }}
        label={`memory: ${bytes(v(memory.total))} of ${bytes(capacity)}, ${verdictWord[memory.verdict]}`}
      />
      <PartList parts={parts} write={write} node={node} />
      {stages.length > 1 ? (
        <table class="rows tightrows small">
          <caption>By stage, against the capacity</caption>
          <tbody>
            {stages.map((stage) => (
              <tr key={stage.stage}>
                <td>Stage {stage.stage}</td>
                <td class="wide">
                  <Track
                    value={v(stage.total)}
                    most={Math.max(capacity, v(memory.total)) * 1.04}
                    fill="var(--edge)"
                    at={capacity}
                  />
                </td>
                <td class="n">{write(v(stage.total))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        moments.length > 1 && (
          <table class="rows tightrows small">
            <caption>Allocated over the step</caption>
            <tbody>
              {moments.map((moment) => (
                <tr key={moment.moment}>
                  <td>{capital(moment.moment)}</td>
                  <td class="wide">
                    <Track
                      value={v(moment.allocated)}
                      most={Math.max(capacity, v(memory.total)) * 1.04}
                      fill="var(--edge)"
                      at={capacity}
                    />
                  </td>
                  <td class="n">{write(v(moment.allocated))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      )}
      {memory.on_the_host && (
        <p class="after muted">
          On the host: <Num>{bytes(v(memory.on_the_host))}</Num>
          {memory.host_capacity && ` of ${bytes(v(memory.host_capacity))}`} a chip.
        </p>
      )}
    </Card>
  );
}
