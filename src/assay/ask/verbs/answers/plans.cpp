// Results of plans of training and serving. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view train = R"keys(
model: text, cluster: text, chips: count, software: text, software_properties?: $software, batch: <tokens>,
sequences: number, sequence_length: count,
strategy: {
    dp: count, fsdp: count, tp: count, pp: count, cp: count, ep: count, zero: count, micro_batch: count,
    microbatches: number, interleave: count, schedule: text, recompute: text, offload: text, sequence_parallel: flag,
    mesh: text, placement?: text, layers_by_stage?: text, ep_over?: text},
step_time: range<s>, limiter: text, limits: [{limit: text, time: <s>, distance: number}], mfu: number, hfu: number,
tokens_per_second: <tokens/s>, tokens_per_second_per_chip: <tokens/s>, flops_per_second_per_chip: <FLOP/s>,
memory: {
    parameters: <B>, gradients: <B>, optimizer: <B>, of_which_master_weights: <B>, of_which_moments: <B>,
    activations: <B>, logits_and_loss: <B>, communication_buffers: <B>, workspace: <B>, allocated: <B>,
    allocator_overhead: <B>, reserved: <B>, driver_context: <B>, total: <B>, fullest_stage: count, capacity: <B>,
    margin: text, budget: <B>, fits: flag, verdict: $verdict, on_the_host?: <B>, host_capacity?: <B>, reason?: text},
memory_over_the_step?: [{
    moment: text, time: <s>, microbatches_held: number, states: <B>, activations: <B>, logits_and_workspace: <B>,
    communication_buffers: <B>, allocated: <B>}],
memory_interval?: interval<B>,
breakdown: {
    compute: <s>, of_which_recompute: <s>, tensor_collectives: <s>, context_collectives: <s>, expert_collectives: <s>,
    weights_exposed: <s>, stage_handover: <s>, pipeline_bubble: <s>, gradients_exposed: <s>, update: <s>,
    overhead?: <s>, host_link_exposed?: <s>},
breakdown_by_kind: [{phase: text, kind: text, time: <s>, flops: <FLOP>|null, share_of_peak: number|null}],
bubble: number,
thresholds: {
    compute_over_weights_traffic?: number, microbatch_where_weights_traffic_limits?: <tokens>,
    compute_over_tensor_traffic?: number, largest_tensor_parallelism?: number, compute_over_memory_traffic: number,
    memory_left: <B>, batch_where_gradients_limit?: <tokens>},
alternatives: [{strategy: text, step_time: <s>, slower_by: number, why: text, ...$plan}],
search: {considered: count, evaluated: count, feasible: count},
open_space?: {step_time: <s>, gain?: number, strategy: text},
memory_by_stage?: [{
    stage: count, parameters: <B>, gradients: <B>, optimizer: <B>, activations: <B>, logits_and_loss: <B>,
    buffers_and_workspace: <B>, total: <B>}],
steps?: number, training_time?: range<s>|null, chip_hours?: number|null, cost?: <USD>|null, energy?: <J>|null,
prices?: $prices,
program_totals?: {
    flops: <FLOP>, product_flops: <FLOP>, attention_flops: <FLOP>, repeated_flops: <FLOP>, memory_bytes: <B>,
    collective_bytes: <B>},
program?: [{
    line: count|null, block: text, text: text, critical: flag, when: text, resource: text, kind: text,
    flops: <FLOP>|null, bytes: <B>, time: <s>|null, exposed: <s>|null, part_of: count|null}],
trained_parameters?: count,
sizes?: [{
    cluster: text, chips: count, step_time?: <s>, tokens_per_second?: <tokens/s>, training_time?: <s>, cost?: <USD>,
    scaling_efficiency?: number, meets_deadline?: flag, strategy?: text, interval?: interval<s>, memory?: $memory,
    arguments?: arguments, why_not?: text}],
sensitivity?: [{
    rate: text, value: <*>, elasticity: number, lower_elasticity: number, step_time_if_doubled: <s>,
    best_if_doubled?: <s>, break_even?: <*>, break_even_factor?: number, limiter_then?: text, takeover?: <*>,
    takeover_factor?: number, strategy_then?: text, fits_if_doubled?: flag}],
memory_sensitivity?: {
    capacity: <B>, strategy_fits_down_to: <B>, factor: number, something_fits_down_to?: <B>,
    least_memory_strategy?: text, step_time_if_unlimited?: <s>, unlimited_needs?: <B>, unlimited_strategy?: text},
timeline?: $timeline, launch?: $launch, from?: $from,
changes?: [{change: text, step_time: <s>, faster_by: number, why: text, ...$plan}],
pareto?: [{
    cluster: text, chips: count, step_time: <s>, tokens_per_second: <tokens/s>, training_time?: <s>, cost?: <USD>,
    strategy: text, ...$plan}],
goodput?: {
    goodput: number, failures_every: <s>, checkpoint_bytes: <B>, checkpoint_time: <s>, checkpoint_interval: <s>},
encoder_sequence_length?: count
)keys";

extern const std::string_view serve = R"keys(
$phase: {
    tokens_per_second: <tokens/s>, tokens_per_second_per_chip: <tokens/s>, limiter: text, compute_time: <s>,
    memory_time: <s>, network_time: <s>, kernels_at_their_rooflines: <s>, mfu: number, bandwidth_utilisation: number,
    attention_intensity?: <FLOP/B>},
$percentiles: {mean: <s>, p50: <s>, p90: <s>, p99: <s>},
$steps: [{
    block: text, layers: number, per_layer: number, step: text, over: text, flops: <FLOP>, bytes: <B>, time: <s>,
    time_of_all: <s>, limiter: text}],
model: text, cluster: text, chips: count, batch?: number, software?: text,
strategy?: {
    dp: count, tp: count, pp: count, ep: count, weights_2d: count, cache: text, batch_per_replica: number,
    placement?: text, ep_over?: text, weights?: text},
prefill?: {
    time: range<s>, ...$phase, fresh_tokens: <tokens>, fresh_share: number, cache?: text, time_at_mfu?: <s>,
    prompts_at_once?: number},
decode?: {step_time: range<s>, ...$phase, cost_per_million_tokens?: <USD>},
memory?: {
    weights: <B>, kv_cache: <B>, workspace: <B>, allocator_overhead?: <B>, driver_context?: <B>,
    communication_library?: <B>, captured_graphs?: <B>, total: <B>, capacity: <B>, margin: text, budget: <B>,
    fits: flag, verdict: $verdict, max_batch: number, draft?: <B>, context_in_flight?: <tokens>, mean_kv_cache?: <B>,
    reserved_and_not_used?: number, page?: <tokens>, overflow_probability?: number},
bounds?: {
    weights: <B>, weights_read: <B>, kv_cache: <B>, kv_cache_of_a_sequence: <B>, total: <B>, chips_for_total: number,
    sequences_that_outweigh_weights?: number, weights_time: <s>, kv_cache_time: <s>, memory_time: <s>,
    compute_time: <s>, step_time: <s>, tokens_per_second: <tokens/s>, tokens_per_second_per_chip: <tokens/s>,
    full_memory_time: <s>, full_memory_time_of_output: <s>,
    network?: {
        axis_bandwidth: <B/s>, hbm_over_network: number, intensity: <FLOP/B>, prefill_tp_limit: number,
        decode_tp_limit: number}},
critical_batch?: number,
served?: {
    requests_per_second: number, output_tokens_per_second: <tokens/s>, output_tokens_per_second_per_chip: <tokens/s>,
    tokens_per_second: <tokens/s>, time_per_token: <s>, time_to_last_token: <s>, mixed_step_time: range<s>,
    limiter: text, prompt_tokens_per_step: <tokens>, share_of_steps: number, sequences_per_step: number,
    cost_per_million_output_tokens?: <USD>, cost_per_million_tokens?: <USD>},
batch_run?: {sequences_at_once: number, time: <s>, time_per_token: <s>, tokens_per_second: <tokens/s>},
with_prefill?: {
    prefill_servers_per_decode_server: number, finished_per_step: number, cache_tokens_freed_per_step: <tokens>,
    balanced_chunk: <tokens>,
    disaggregated?: {
        prefill_strategy: text, prompts_at_once: number, prefill_time: <s>, prompts_per_second: number,
        prefill_servers_per_decode_server: number, requests_per_second_per_chip: number,
        tokens_per_second_per_chip: <tokens/s>, cost_per_million_tokens?: <USD>}},
chip_time_per_token?: <s>, cost_per_million_tokens?: <USD>,
pareto?: [{
    batch: number, chips: count, latency: <s>, throughput: <tokens/s>, throughput_per_chip: <tokens/s>, ttft: <s>,
    strategy: text, limiter: text, cost?: <USD>, ...$plan}],
search?: {strategies: count, placements: count, dropped: count, points: count}, prices?: $prices,
load?: {
    requests_per_second: number, policy: text, replicas: count, most_sequences: number,
    saturation_requests_per_second: number, utilisation: number, stable: flag, sequences_in_flight?: number,
    requests_that_wait_for_a_place?: number, prefill_share?: number, time_to_first_token?: $percentiles,
    time_per_token?: $percentiles, time_to_last_token?: <s>, tokens_per_second?: <tokens/s>,
    cost_per_million_tokens?: <USD>,
    simulated?: {
        requests: count, seed: count, stable: flag, sequences_in_flight: number,
        requests_that_wait_for_a_place: number, prefill_share: number, time_to_first_token: $percentiles,
        time_per_token: $percentiles, time_to_last_token: <s>, preemptions_per_request: number},
    prefill_servers?: count, cache_transfer_time?: <s>, copies_needed?: number, meets?: flag,
    most_requests_per_second_that_meet?: number},
comparison?: [{
    cluster: text, chips: count, formats?: text, meets: flag, fits?: flag, batch?: number, latency?: <s>, ttft?: <s>,
    throughput?: <tokens/s>, throughput_per_chip?: <tokens/s>, cost?: <USD>, tokens_per_dollar?: <tokens/USD>,
    strategy?: text, why?: text, most_requests_per_second?: number, interval?: interval<s>, memory?: $memory,
    arguments?: arguments}],
front_of_all?: [{
    cluster: text, chips: count, formats?: text, batch: number, latency: <s>, ttft: <s>,
    throughput_per_chip: <tokens/s>, cost?: <USD>, strategy: text, ...$plan}],
speculation?: {
    draft_length: count, acceptance: number, tokens_per_loop: <tokens>, draft_step_time: <s>, verify_step_time: <s>,
    loop_time: <s>, time_per_token: <s>, tokens_per_second: <tokens/s>, speedup: number, draft_strategy: text,
    draft_memory: <B>, fits: flag,
    lengths?: [{
        draft_length: count, tokens_per_loop: <tokens>, verify_step_time: <s>, loop_time: <s>, time_per_token: <s>}]},
would_fit_here?: {weights: text, strategy: text, time_per_token: <s>},
would_fit?: {cluster: text, strategy: text, time_per_token: <s>},
fits?: [{
    format: text, weights: <B>, kv_bytes_per_token: <B>, kv_cache_of_a_sequence: <B>, chips_for_weights: number,
    least_chips: count, smallest_slice?: text, slice_chips?: count, left_for_caches?: <B>, caches?: count,
    slice_for_batch?: text, slice_for_batch_chips?: count, max_batch_here?: number}],
longest_context?: <tokens>, smallest_slice?: {cluster: text, chips: count, strategy: text, time_per_token: <s>},
collectives?: [{block: text, layers: number, collective: text, over: text, per_layer: number, bytes: <B>}],
decode_steps?: $steps, prefill_steps?: $steps,
sweep?: [{
    batch: count, kv_cache: <B>, total: <B>, bound: <s>, tokens_per_second_at_bound: <tokens/s>, step_time: <s>,
    tokens_per_second: <tokens/s>, served_tokens_per_second: <tokens/s>, compute_time: <s>, memory_time: <s>,
    weights_time: <s>, cache_time: <s>, network_time: <s>, limiter: text, fits: flag, cost?: <USD>}],
impossible?: text, software_properties?: $software, launch?: $launch, from?: $from,
helps?: [{
    change: text, chips: number, tokens_per_second: <tokens/s>, output_gain: number, time_per_token: <s>,
    time_gain: number, time_to_first_token: <s>, strategy: text, interval?: interval<s>, memory: $memory,
    arguments?: arguments}],
changes?: [{
    change: text, tokens_per_second: <tokens/s>, gain: number, time_per_token: <s>, time_to_first_token: <s>, ...$plan}],
floors?: {time_to_first_token: <s>, time_to_first_token_bound: <s>, time_per_token: <s>, time_per_token_bound: <s>},
would_meet?: {
    cluster: text, strategy: text, batch: number, time_to_first_token: <s>, time_per_token: <s>, weights?: text,
    kv?: text},
fastest?: {cluster: text, strategy: text, batch: number, time_to_first_token: <s>, time_per_token: <s>},
prefix_cache?: {
    requests: count, block: <tokens>, distinct_blocks: count, memory_of_all: <B>, prompt_tokens: <tokens>,
    hit_tokens: <tokens>, hit_share: number, evicted_blocks: count, saved_flops: <FLOP>, requests_per_second?: number,
    memory?: <B>, host?: {memory: <B>, hit_share: number, loaded_tokens: <tokens>},
    routing?: {replicas: count, in_turn: number, by_prefix: number}, sizes: [{memory: <B>, hit_share: number}],
    tree: [{tokens: <tokens>, requests: count, parent?: count}]},
cache_by_length?: [{tokens: count, cache: <B>, as_published: <B>}],
lengths?: [{requests: text, prompt: <tokens>, output: <tokens>, time_to_first_token: <s>}],
products?: [{
    block: text, layers: number, product: text, flops: <FLOP>, bytes: <B>, intensity: <FLOP/B>, compute_time: <s>,
    memory_time: <s>, limiter: text, critical_batch: number|text, experts_touched?: number}]
)keys";

}  // namespace assay::verbs::answers
