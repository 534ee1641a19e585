// Results of profiles. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view profile = R"keys(
$category: {category: text, kind?: text, count: count, time: <s>, share?: number},
$times: {
    total_time: <s>, busy_time: <s>, idle_time: <s>, computation_time: <s>, communication_time: <s>,
    exposed_communication_time: <s>, copy_time: <s>, exposed_copy_time: <s>, computation_without_fills: <s>,
    busy_share?: number, hidden_communication?: number, overlap_without_fills?: number},
$side: {
    file: text, steps: count, time: <s>, computation_time: <s>, exposed_communication_time: <s>,
    exposed_copy_time: <s>, idle_time: <s>},
$counts: {flops: <FLOP>, element_wise_flops: <FLOP>, transcendentals: number, bytes: <B>},
$pair: {
    label?: text, shapes?: text, category: text, kind?: text, calls_before: number, calls_after: number, before: <s>,
    after: <s>, change: <s>},
file: text, rank?: count, device?: count, device_name?: text, chip?: text, events?: count, total_time?: <s>,
busy_time?: <s>, idle_time?: <s>, computation_time?: <s>, communication_time?: <s>, exposed_communication_time?: <s>,
copy_time?: <s>, exposed_copy_time?: <s>, computation_without_fills?: <s>, busy_share?: number,
hidden_communication?: number, overlap_without_fills?: number, host_bound_time?: <s>, kernel_time?: <s>,
products?: {flops: <FLOP>, achieved: <FLOP/s>, while_running: <FLOP/s>, time: <s>, peak_share?: number},
recomputation?: {alone: $times, without: $times},
linked?: {...$times, recomputation?: {alone: $times, without: $times}},
step_time?: {count: count, median: <s>, shortest: <s>, longest: <s>, spread?: number},
steps?: [{
    name: text, time: <s>, computation_time: <s>, exposed_communication_time: <s>, exposed_copy_time: <s>,
    idle_time: <s>}],
categories?: [$category],
operations?: [{
    label: text, operation?: text, kernel: text, shapes?: text, category: text, kind?: text, calls: count,
    kernels: count, time: <s>, share?: number, time_per_call: <s>, shortest: <s>, longest: <s>, flops?: <FLOP>,
    achieved?: <FLOP/s>, bytes?: <B>, bandwidth?: <B/s>, dtype?: text, peak_share?: number, bandwidth_share?: number,
    bound?: "compute"|"memory"|"latency"}],
gaps?: [{start: <s>, time: <s>, after: text, before: text, operation?: text, host_bound: flag}],
streams?: [{stream: text, events: count, busy_time: <s>, host_wait: <s>, kernel_wait: <s>, other_wait: <s>}],
ranks?: [{file: text, rank?: count, device: count, ...$times, host_bound_time?: <s>, categories: [$category]}],
straggler?: {rank?: count, device: count, computation_over_median: number, extra_time: <s>},
recovered?: {
    command: text, model: text, mesh?: text, batch: count, sequence: count, microbatches: count, layers: count,
    hidden: count, intermediate: count, heads: count, kv_heads: count, head_dim: count, vocabulary?: count,
    experts?: count, experts_per_token?: count, gated: flag, recomputes: flag, compiled: flag, attention?: text,
    optimizer?: text, optimizer_dtype?: text, lacks: [text]},
prediction?: {command: text, step: text, overhead: <s>, communication: <s>}, predicted_time?: <s>,
measured_time?: <s>, matched_share?: number, residual?: <s>, residual_share?: number,
gap?: [{
    kind: "kernels"|"around"|"missing"|"extra"|"communication"|"waiting"|"copies"|"host"|"pauses"|"gaps", class: text,
    step?: text, predicted: <s>, measured: <s>, difference: <s>, kernels: number, kernel?: text, remedy?: text}],
gap_steps?: [{
    block: text, step: text, class: text, runs: count, ran: number, predicted: <s>, measured: <s>, around: <s>,
    kernels: number, kernel?: text}],
comparison?: {
    per: "step"|"profile", before: $side, after: $side, change: <s>, relative_change?: number, categories: [$pair],
    operations: [$pair]},
program?: {
    module: text, format: "hlo"|"stablehlo", devices: count, computations: count, instructions: count,
    partitioned: flag, fused: flag, scheduled: flag, complete: flag, flops: <FLOP>, element_wise_flops: <FLOP>,
    transcendentals: number, bytes: <B>, counted_once: $counts, loops: [{body: text, trips: number}], on?: text,
    bounds?: {compute: <s>, memory: <s>, network: <s>, lower: <s>, upper: <s>}, estimate?: <s>,
    computation_time?: <s>, communication_time?: <s>, exposed_communication_time?: <s>, peak_share?: number,
    classes: [{class: text, calls: number, flops: <FLOP>, bytes: <B>, estimate?: <s>, share?: number}],
    collectives: [{
        kind: text, devices: count, calls: number, operand: <B>, received: <B>, becomes?: text, estimate?: <s>}],
    memory: {
        arguments: <B>, outputs: <B>, aliased: <B>, host?: <B>, temporaries?: <B>, peak?: <B>, capacity?: <B>,
        fits?: flag, at_peak?: [{name: text, shape: text, bytes: <B>}]}},
kernels?: [{
    name: text, class: text, operation: text, shapes: text, result: text, calls: number, flops?: <FLOP>,
    exact_flops?: <FLOP>, bytes: <B>, devices?: count, bound?: "compute"|"memory"|"network", lower?: <s>,
    estimate?: <s>, time?: <s>, share?: number}],
mesh?: [{axis: text, size: count, role?: text}],
model?: {
    hidden: count, feed_forward?: count, heads?: count, kv_heads?: count, head_dim?: count, layers: count,
    vocabulary?: count, experts?: count, expert_feed_forward?: count, experts_per_token?: count, tied: flag,
    parameters: number, copies: count, weight_type?: text, state_type?: text, batch?: count, sequence?: count,
    recompute?: "none"|"selective"|"full"},
weights?: [{role?: text, name?: text, shape: text, count: count, sharding?: text}], command?: text,
changes?: {before: text, after: text, rows: [{what: text, before: <*>, after: <*>, relative_change?: number}]},
layout?: {
    shape: text, dtype: text, element_bits: count, memory: text, elements: number, bytes: <B>, padded: text,
    padded_bytes: <B>, growth?: number, offset?: count, byte_offset?: <B>, order?: text}
)keys";

}  // namespace assay::verbs::answers
