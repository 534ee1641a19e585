// Results of what the catalogue knows. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view chips = R"keys(
id?: text, name?: text, vendor?: text, family?: text, architecture?: text, peak?: map <FLOP/s>,
cores?: {kind?: text, count?: <>, base_clock?: <Hz>, boost_clock?: <Hz>, warps?: <>, registers_per_thread?: <>},
matrix_unit?: {
    count?: <>, rows?: <>, columns?: <>, clock?: <Hz>, tile_m?: <>, tile_k?: <>, tile_n?: <>,
    flops_per_cycle?: <FLOP>, cores_per_matmul?: <>},
vector_unit?: {
    partitions?: <>, lanes?: <>, alus?: <>, fma?: flag, clock?: <Hz>, registers?: <>, register_loads?: <>,
    register_stores?: <>, latency?: <>, cross_lane_units?: <>},
memory?: map {capacity?: <B>, bandwidth?: <B/s>, per?: text},
network?: {
    scale_up?: {
        kind?: text, technology?: text, links?: <>, link_bandwidth?: <B/s>, hop_latency?: <s>, pod?: text,
        shapes?: [text], wrap_rule?: text, wrap_length?: <>, twisted?: flag, domain?: <>, switches?: <>,
        switch_ports?: <>, in_network_reduction?: flag},
    scale_out?: {
        bandwidth?: <B/s>, technology?: text, level?: [{name?: text, bandwidth?: <B/s>, degree?: <>, switches?: <>}],
        nics_per_host?: <>, nic_bandwidth?: <B/s>, switch_ports?: <>, in_network_reduction?: flag}},
host?: {chips?: <>, pcie?: <B/s>, peer?: <B/s>, memory?: <B>, memory_bandwidth?: <B/s>, shape?: text, trays?: <>},
efficiency?: {matrix?: <>, memory?: <>, network?: <>, latency?: <s>},
price?: [{value: <USD/s>, date: text, provider: text, kind: text, region?: text}],
derived?: {
    matrix_unit_flops_per_cycle?: <FLOP>, matrix_unit_cells?: count, matrix_unit_rate?: <FLOP/s>,
    matrix_rate_from_units?: <FLOP/s>, flops_per_cycle_from_peak?: <FLOP>, matrix_rate_per_core?: <FLOP/s>,
    vector_alus?: count, vector_alus_per_core?: count, vector_rate?: <FLOP/s>, vector_rate_per_core?: <FLOP/s>,
    vector_fma_rate?: <FLOP/s>, lane_reduction_steps?: count, sublane_reduction_steps?: count,
    sublane_reduction_cycles?: count, matrix_over_vector?: number, speedup_over_bf16?: map number,
    capacity_per_chip?: map <B>, bandwidth_over_hbm?: map number, critical_intensity?: map map <FLOP/B>,
    link_bandwidth_both_ways?: <B/s>, scale_up_egress?: <B/s>, pod_chips?: count, chips_per_tray?: number,
    flops_per_dollar?: <FLOP/USD>, bytes_per_dollar?: <B/USD>, memory_per_dollar?: <B*s/USD>,
    by_price?: [{provider?: text, date?: text, flops_per_dollar?: <FLOP/USD>, bytes_per_dollar?: <B/USD>}],
    vector_rate_at_base_clock?: <FLOP/s>, threads_per_core_at_most_registers?: count, switch_capacity?: <B/s>,
    scale_out_switch_over_scale_up_switch?: number, node_egress?: <B/s>, speedup_over_fp32?: map number},
sources?: $sources, peak_sparse?: map <FLOP/s>, power?: {chip?: <W>, system?: <W>},
chips?: [{
    id: text, name: text, dtype: text, peak: <FLOP/s>, memory: <B>, bandwidth: <B/s>, critical_intensity: <FLOP/B>,
    scale_up: text, price: <USD/s>|null}],
side_by_side?: [{part: text, *: text|number|<*>|null}]
)keys";

extern const std::string_view clusters = R"keys(
cluster: text, chip: text, chips: count, slices: count, hosts: count, chips_per_node: count, cores: count,
flops_per_second: <FLOP/s>, flops_per_second_by_dtype: map <FLOP/s>, memory: <B>, memory_bandwidth: <B/s>,
twisted?: flag, axes: [{name: text, size: count, ring: flag, bandwidth: <B/s>, bandwidth_both_ways: <B/s>}],
levels: [{
    name: text, degree: count, chips: count, units: count, bandwidth: <B/s>, bandwidth_per_chip: <B/s>,
    bandwidth_per_node: <B/s>, bandwidth_per_unit: <B/s>, switches: count|null, switches_per_unit: count|null,
    switch_capacity: <B/s>|null, switch_capacity_per_unit: <B/s>|null, links_per_switch_pair: count|null,
    in_network_reduction: flag}],
links?: count, switches?: count, diameter?: count, mean_distance?: number, bisection_bandwidth?: <B/s>,
bisection_bandwidth_both_ways?: <B/s>, egress_per_chip?: <B/s>, scale_out_per_chip?: <B/s>,
scale_out_per_host?: <B/s>, scale_out_per_node?: <B/s>, scale_out?: <B/s>, price?: <USD/s>, prices?: $prices,
power?: <W>
)keys";

extern const std::string_view models = R"keys(
id?: text, name?: text, maker?: text, family?: text,
parameters?: {
    total: count, active: count, embedding: count, attention: count, mlp: count, norm: count, head?: count,
    active_matrix: count, experts?: count, shared_experts?: count, router?: count, state_space?: count,
    positions?: count},
weight_bytes?: <B>, weight_formats?: {all?: text, bits_per_parameter: number, quantised?: text, others?: text},
flops_per_token?: {
    forward: <FLOP>, backward: <FLOP>, train: <FLOP>, matmul: <FLOP>, attention?: <FLOP>, sequence?: count,
    mask?: text, exact?: {forward: <FLOP>, backward: <FLOP>, train: <FLOP>}, state_space?: <FLOP>},
kv_bytes_per_token?: <B>, kv_bytes_per_sequence?: <B>, activation_bytes_per_token?: map <B>, layers?: count,
d_model?: count, heads?: count, kv_heads?: count, head_dim?: count, d_ff?: count, vocabulary?: count, context?: count,
streams?: count, tied?: flag, dtype?: text,
layer_kinds?: [{
    layers: count, mixer: text, feed_forward: text, parameters: count, active: count, matrix: count,
    keys_per_query?: number, attention_flops_per_token?: <FLOP>, stack?: text, weights?: [text], shared?: count}],
defaults?: [text],
published?: {
    parameters: text, source: text, agrees: flag, of_these_not_counted?: count, not_counted?: text,
    stated_within?: number},
sources?: $sources, value_dim?: count, q_rank?: count, kv_rank?: count, rope_dim?: count, experts?: count,
experts_per_token?: count, sparsity?: number, expert_width?: count, shared_width?: count,
state_bytes_per_sequence?: <B>, kv_cache?: <B>,
sweep?: [{
    sequence: count, forward: <FLOP>, attention: <FLOP>, attention_share: number, kv_bytes_per_sequence: <B>,
    prefill_intensity?: <FLOP/B>, decode_intensity?: <FLOP/B>}],
models?: [{
    id: text, layers: count, d_model: count, heads: count|null, kv_heads: count|null, parameters: count,
    active: count, kv_bytes_per_token: <B>}],
encoder_layers?: count, outer_weights?: [text],
checkpoint?: {
    tensors: count, elements: count, bytes: <B>, dtypes: map count, weights?: count, difference?: count,
    groups: [{name: text, tensors: count, elements: count, dtype: text}]}
)keys";

extern const std::string_view software = R"keys(
$properties: [{option: text, value: text, where: text, note: text, source: text}],
id?: text, name?: text, unmodelled?: text, left_out?: text, serve?: $properties,
defaults?: {
    step_tokens?: number, chunk_layers?: number, recompute?: text, reports?: text, pipeline_keeps_weights?: flag,
    vocabulary?: number, stages_in_turn?: flag, sequences?: number},
versions?: [{id: text, date: text}], names_in_tables?: [text], sources?: [{title: text, url: text}],
software?: [{id: text, name: text, does: text, versions: text, properties: count}], usual_training_software_on?: text,
train?: $properties, training_plans?: [{rule: text, value: text, where: text, note: text, source: text}],
recompute?: [{word: text, means: text}]
)keys";

}  // namespace assay::verbs::answers
