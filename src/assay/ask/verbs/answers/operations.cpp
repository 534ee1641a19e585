// Results of operations and collectives. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view roofline = R"keys(
$critical_size: {
    name: text, value: number|null, whole: number|null, approximate: number|null, intensity_limit: <FLOP/B>|null,
    verdict?: text},
operation?: text, chip: text, chips: count, unit: text, memory: text, flops: <FLOP>, exact_flops?: <FLOP>, bytes: <B>,
peak: <FLOP/s>, bandwidth: <B/s>, levels: [{name: text, bandwidth: <B/s>, critical_intensity: <FLOP/B>}],
intensity: <FLOP/B>|null, critical_intensity: <FLOP/B>, compute_time: <s>, memory_time: <s>, time: range<s>,
upper_over_lower: number, limiter: text, headroom: <>|null, achieved: <FLOP/s>, peak_share: number,
padding?: {m: number, k: number, n: number, flops: <FLOP>, utilisation: number, compute_time: <s>},
tile?: {
    smallest_square: number, m?: number, k?: number, n?: number, intensity_without_store?: <FLOP/B>,
    compute_bound?: flag},
calibration?: {
    basis: text, own_measurement: flag, regime: text, measured: text, arithmetic?: <s>, memory: <s>, launch: <s>,
    dirty_cache?: <B>, tile?: {m: number, n: number, split_k: number, waves: number}, adding?: <s>, cores?: number,
    casting?: <s>},
at?: {name: text, value: number}, critical_size?: $critical_size,
sweep?: [{
    *: count, flops: <FLOP>, bytes: <B>, intensity: <FLOP/B>, compute_time: <s>, memory_time: <s>, time: range<s>,
    achieved: <FLOP/s>, limiter: text}],
elements_per_second?: number, flops_per_chip?: <FLOP>, bytes_per_chip?: <B>,
operations?: [{operation: text, intensity: <FLOP/B>, time: range<s>, limiter: text, critical_size?: $critical_size}]
)keys";

extern const std::string_view systolic = R"keys(
$cycles: {total: count, load: count, fill: count, steady: count, stall: count, drain: count},
array: text, double_buffered: flag, tiles: count, cycles: $cycles, steady_cycles_per_tile: count,
flops_per_cycle_peak: <FLOP>, flops: <FLOP>, utilisation: number, padding_waste: number, idle_share: number,
utilisation_limit: number, simulated?: {...$cycles, max_error: number, equals_closed_form: flag}, clock?: <Hz>,
time?: <s>, achieved?: <FLOP/s>
)keys";

extern const std::string_view transfer = R"keys(
cluster: text, bytes: <B>, hosts: count, bytes_per_host: <B>, hops: count, first_byte: <s>, bandwidth_time: <s>,
bandwidth: <B/s>, time: range<s>, limiter: text,
stages: [{name: text, bytes?: <B>, lanes?: number, bandwidth?: <B/s>, hops?: count, time: <s>}],
ports?: {disjoint_paths: count, on_shortest_paths: count}, flops?: <FLOP>,
stream?: {tiles: count, tile: <B>, buffers: count, time: <s>, per_tile: <s>, limiter: text, busy: number},
residency?: {bytes_per_chip: <B>, capacity: <B>, fits: flag}, meanwhile?: {time: <s>, hidden: flag, exposed: <s>}
)keys";

extern const std::string_view collective = R"keys(
collective: text, cluster: text, devices: number, bytes: <B>, bytes_per_group: <B>, shard_bytes: <B>, algorithm: text,
hops: number, time: range<s>, bandwidth_time: <s>, latency_time: <s>, approximate_time: <s>, limiter: text,
bytes_per_link: <B>, algorithm_bandwidth: <B/s>, approximate_bandwidth: <B/s>, bus_bandwidth: <B/s>,
destinations?: {of_a_token: number, share: number, approximate_share: number}, latency_bound_below?: <B>,
with_idle_axes?: {axes: text, time: <s>, if: text}, bottleneck?: text,
levels?: [{
    name: text, groups: number, lanes: number, bandwidth: <B/s>, collective_bandwidth: <B/s>, bytes_into_child: <B>,
    bytes_into_children: <B>, time: <s>, in_network_reduction: flag}],
simulated_time?: <s>,
simulated?: {
    time: <s>, busiest_link_bytes: <B>, mean_link_load: number, events: count, chunks_per_shard: count,
    algorithm: text},
without_in_network_reduction?: {time: <s>, gain: number},
sweep?: [{
    bytes: <B>, time: <s>, lower: <s>, algorithm_bandwidth: <B/s>, bus_bandwidth: <B/s>, imbalance?: number,
    chips?: count, sharded_by?: count, share?: number, approximate_share?: number}],
gain_of_both_ways?: number, over_all_gather?: number,
blocks?: [{hop: count, devices: [[{block: count, from: [count]}]]}]
)keys";

extern const std::string_view shard = R"keys(
$memory: {total: <B>, verdict: $fits_or_not},
expression: text, mesh: text, devices: count, propagated?: {result: text, considered: count, why: text},
local_shapes: map [count|text], bytes_per_device?: <B>,
tensors: [{
    tensor: text, local_shape: [count|text], bytes_per_device?: <B>, array_bytes?: <B>, total_bytes?: <B>,
    replication: count, share: number, padded?: flag}],
memory_time?: <s>, case?: count,
steps?: [{text: text, kind: text, collective: flag, axes: text, bytes: <B>, critical: flag, time?: <s>}],
collective_bytes?: <B>, flops_per_device?: <FLOP>, compute_time?: <s>, collective_time?: <s>, time?: range<s>,
limiter?: text, backward?: [{text: text, kind: text, bytes: <B>}], memory?: $memory,
alternatives?: [{steps: text, collective_bytes: <B>, time?: <s>, memory?: $memory, arguments: arguments}],
overlap?: {
    collective: text, chunks: count, product: <s>, blocking: <s>, overlapped: <s>, speedup: number,
    timeline: $timeline},
check?: {max_error: number, bytes_moved: <B>, bytes_predicted: <B>, ok: flag}
)keys";

extern const std::string_view layer = R"keys(
$memory: {total: <B>, verdict: $fits_or_not},
cluster: text, mesh?: text, fits: flag, shardings?: map text,
steps?: [{text: text, kind: text, axes: text, bytes: <B>, time: <s>}],
memory?: {*: <B>, stored: <B>, working: <B>, total: <B>, capacity: <B>, fits: flag, verdict: $fits_or_not},
compute_time?: <s>, memory_time?: <s>, weight_read_time?: <s>, collective_time?: <s>, time?: range<s>, limiter?: text,
alternatives?: [{shardings: text, time: <s>, collective_time: <s>, memory: $memory, why: text, arguments: arguments}],
search?: {considered: count, over_memory: count, equal_to_best: count}, shortfall?: <B>, memory_that_fits?: <B>,
critical_size?: {name: text, value: count},
sweep?: [{
    *: count, time: range<s>, compute_time: <s>, memory_time: <s>, collective_time: <s>, limiter: text,
    tokens_per_second?: <tokens/s>, memory: $memory, arguments: arguments}],
crossover?: {chips: count, cluster: text},
splits?: [{
    chips: count, cluster: text, one_direction: <s>|null, one_direction_limiter: text|null, two_directions: <s>|null,
    two_directions_limiter: text|null, faster: "one direction"|"two directions", memory: $memory, arguments: arguments}]
)keys";

extern const std::string_view scaling = R"keys(
$pass: {
    flops_per_chip: <FLOP>, collective_bytes: <B>, collectives: count, compute_time: <s>, weight_time: <s>,
    activation_time: <s>, communication_time: <s>, communication_in_series: <s>, time: range<s>, ratio: number|null},
$collectives: [{pass: text, collective: text, tensor: text, over: text, bytes: <B>, needed: flag}],
$over_weights: {
    ways: count, links: text, bandwidth: <B/s>, approximate_bandwidth: <B/s>, intensity: <FLOP/B>,
    min_tokens_per_chip: <tokens>, approximate_min_tokens_per_chip: <tokens>, min_batch: <tokens>,
    approximate_min_batch: <tokens>, max_chips?: number, max_pods?: number, compute_bound?: flag, ratio?: number,
    forward?: $pass, backward?: $pass, time_on_max_chips?: <s>, collectives?: $collectives},
cluster: text, chips: count, model: text, dtype: text, peak: <FLOP/s>,
layer: {
    d_model: count, d_ff: count, matrices: count, width_over_model: number, flops_per_token: <FLOP>,
    weight_bytes: <B>, share_of_parameters?: number, attention_dominates_from?: <tokens>, experts?: count,
    experts_per_token?: count, sparsity?: number, shared_experts?: number},
data_parallel?: $over_weights, fsdp?: $over_weights,
tensor_parallel?: {
    links: text, bandwidth: <B/s>, intensity: <FLOP/B>, max_ways: number, power_of_two_ways?: count,
    over_all_chips?: {
        ways: count, compute_bound: flag, ratio: number, forward: $pass, backward: $pass, collectives?: $collectives},
    ways?: count, within_limit?: flag, min_width?: number},
mixed?: {
    fsdp_links: text, tensor_links: text, axes_product: count, min_tokens_per_chip: <tokens>, min_batch: <tokens>,
    min_tokens_without_overlap: <tokens>, min_batch_without_overlap: <tokens>, gain_over_fsdp: number, fsdp?: number,
    tensor?: number, rounded_fsdp?: count, rounded_tensor?: count, ratio?: number, compute_bound?: flag,
    margin?: number},
memory: {
    bytes_per_parameter: <B>, capacity: <B>, capacity_of_all: <B>, largest_replicated_model: count,
    parameter_bytes?: <B>, optimizer_bytes?: <B>, state?: <B>, total?: <B>,
    replicated?: {bytes_per_chip: <B>, fits: flag}, sharded?: {bytes_per_chip: <B>, fits: flag}, min_chips?: count,
    min_nodes?: count, kept_per_layer?: text, kept_activations?: <B>},
training?: {
    parameters: count, flops_per_token: <FLOP>, token_time_on_one_chip: <s>, mfu: number, flops_per_second: <FLOP/s>,
    active_parameters?: count, tokens?: <tokens>, flops?: <FLOP>, time?: <s>, time_on_one_chip?: <s>,
    time_on_min_chips?: <s>, step_time?: <s>},
levels?: [{
    name: text, chips: count, bandwidth?: <B/s>, min_tokens_per_chip?: <tokens>,
    approximate_min_tokens_per_chip?: <tokens>, approximate_max_tensor?: number, max_tensor?: number}],
batch?: <tokens>, tokens_per_chip?: <tokens>, sequences?: number, a_sequence_for_every_chip?: flag,
best?: {fsdp: count, tensor: count, placed?: text, layer_time: <s>},
splits?: [{
    fsdp: count, tensor: count, compute_time: <s>, weight_time: <s>, activation_time: <s>, ratio: number,
    backward_ratio: number, layer_time: <s>, limiter: text, min_batch: <tokens>|null}],
limiter?: text,
across_slices?: {
    slices: count, bandwidth_per_chip: <B/s>, min_tokens_per_slice: <tokens>,
    approximate_min_tokens_per_slice: <tokens>, tokens_per_slice?: <tokens>, compute_bound?: flag},
expert_parallel?: {
    ways: count, experts_per_chip: number, nodes: count, ratio: number, compute_bound: flag, min_width: number,
    wide_min_width?: number, compute_time?: <s>, communication_time?: <s>},
split?: {
    fsdp: count, tensor: count, pipeline: count, model_parallel_ways: count, bandwidth?: <B/s>,
    min_tokens_per_chip?: <tokens>, approximate_min_tokens_per_chip?: <tokens>, min_batch: <tokens>|null,
    compute_bound?: flag, ratio?: number, forward?: $pass, backward?: $pass, placed?: text, collectives?: $collectives},
sweep?: [{
    batch?: <tokens>, tokens_per_chip: <tokens>, fsdp_ratio?: number, mixed_ratio?: number, fsdp: count,
    tensor: count, compute_time: <s>, communication_time: <s>, time: <s>, efficiency: number, limiter: text,
    cluster?: text, chips?: count, weak_batch?: <tokens>, weak_fsdp?: count, weak_tensor?: count, weak_time?: <s>,
    weak_efficiency?: number, weak_limiter?: text, training_time?: <s>}],
walk?: [{test: text, have: number|<*>, must_be: "at least"|"at most", limit: number|<*>|null, holds: flag, so: text}],
pipeline?: {stages: count, microbatches: count, bubble: number, bubble_over_work: number}
)keys";

extern const std::string_view solve = R"keys(
unknown: text, until: text, kind: text, value: count|null, exact: flag, request?: text,
tried: [{value: count, holds: flag}], nearest_that_fails?: count
)keys";

}  // namespace assay::verbs::answers
