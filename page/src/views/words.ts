// The engine's keys in the words of the page, each with its one colour.
import { mix } from "../draw/svg";

export interface Named {
  key: string;
  name: string;
  fill: string;
}
const named = (key: string, name: string, fill: string): Named => ({ key, name, fill });

export const trainMemory: readonly Named[] = [
  named("parameters", "Parameters", mix("s3", 100)),
  named("gradients", "Gradients", mix("s3", 70)),
  named("optimizer", "Optimizer", mix("s3", 42)),
  named("activations", "Activations", mix("s5", 100)),
  named("logits_and_loss", "Logits and loss", mix("s5", 62)),
  named("communication_buffers", "Communication buffers", mix("muted", 85)),
  named("workspace", "Workspace", mix("muted", 65)),
  named("allocator_overhead", "Allocator overhead", mix("muted", 45)),
  named("driver_context", "Driver context", mix("muted", 28)),
];
export const serveMemory: readonly Named[] = [
  named("weights", "Weights", mix("s3", 100)),
  named("draft_weights", "Draft weights", mix("s3", 60)),
  named("kv_cache", "KV cache", mix("s5", 100)),
  named("workspace", "Workspace", mix("s5", 62)),
  named("captured_graphs", "Captured graphs", mix("muted", 85)),
  named("communication_library", "Communication library", mix("muted", 62)),
  named("allocator_overhead", "Allocator overhead", mix("muted", 45)),
  named("driver_context", "Driver context", mix("muted", 28)),
];
/** Parts of a step, with their names in the derivation. */
export const stepParts: readonly (Named & { derivation: string })[] = [
  { ...named("compute", "Compute", "var(--s1)"), derivation: "compute" },
  { ...named("tensor_collectives", "Tensor collectives", "var(--s2)"), derivation: "tensor collectives" },
  { ...named("context_collectives", "Context collectives", mix("s2", 80)), derivation: "context collectives" },
  { ...named("expert_collectives", "Expert collectives", mix("s2", 66)), derivation: "expert collectives" },
  { ...named("weights_exposed", "Weights not hidden", mix("s2", 54)), derivation: "exposed weights traffic" },
  { ...named("gradients_exposed", "Gradients not hidden", mix("s2", 42)), derivation: "exposed gradients" },
  { ...named("host_link_exposed", "Host link not hidden", mix("s6", 60)), derivation: "exposed host link" },
  { ...named("stage_handover", "Stage handover", mix("s4", 60)), derivation: "stage handover" },
  { ...named("pipeline_bubble", "Pipeline bubble", "var(--s4)"), derivation: "pipeline bubble" },
  { ...named("update", "Optimizer update", "var(--s3)"), derivation: "update" },
  { ...named("overhead", "Fixed cost, stragglers", "var(--s6)"), derivation: "overhead" },
];
const limits: Record<string, { name: string; fill: string }> = {
  compute: { name: "Arithmetic", fill: "var(--s1)" },
  memory: { name: "Memory traffic", fill: "var(--s3)" },
  network: { name: "Network", fill: "var(--s2)" },
  waiting: { name: "Waiting", fill: "var(--s4)" },
  host: { name: "Host link", fill: "var(--s6)" },
  "memory capacity": { name: "Memory capacity", fill: "var(--s3)" },
};
export const limitName = (key: string): string => limits[key]?.name ?? key.charAt(0).toUpperCase() + key.slice(1);
export const limitFill = (key: string): string => limits[key]?.fill ?? "var(--muted)";
/** The same inside a sentence: "and the network limits it". */
export const limitWords = (key: string): string => (key === "network" ? "the network" : limitName(key).toLowerCase());
