// Results of checks against the book and measurements. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view validate = R"keys(
reported?: count, fitted?: count, unanswered?: count,
summary?: [{
    group: text, n: count, mape: number, median_ape: number, p90_ape: number, bias: number, within_10: number,
    within_20: number, rank_correlation: number|null, covered: number|null, rows: count|null, answered: number|null,
    default_mape: number|null, default_bias: number|null, groups?: count, mean_of_groups?: number}],
unanswered_because?: [{rows: count, why: text, first: text}], unanswered_rows?: [{id: text, group: text, why: text}],
cases?: [{
    id: text, group: text, what: text, measured: <*>, predicted: <*>, error: number, covered: flag|null,
    predicted_by_default: <*>|null, error_by_default: number|null, interval?: interval<*>,
    memory?: {verdict: "fits"|"tight"|"no"}, verb?: text, arguments?: arguments, result?: text}],
requests?: [{id: text, predicted: <*>, request: text, result: text}], mean_of_groups?: number,
without_each?: [{number: text, value: text, without: text, mean_of_groups: number, change: number}],
files?: [{file: text, bytes: <B>}], at_bounds?: [{file: text, name: text, value: text, bound: text}]
)keys";

extern const std::string_view book = R"keys(
passed?: count, failed?: count, left_out?: count, facts?: {checked: count, left_out: count, covered: count},
checks?: [{
    id: text, ok: flag, expected: <*>|number|text, got: <*>|number|flag|text|null, tolerance: text, request: text,
    path: text, note?: text, reason?: text}],
skipped?: [{id: text, why: text}],
figures?: [{
    chapter: text, title: text, request: text, verb: text, arguments: arguments,
    controls: [{argument: text, values: [text]}], picture?: "still"|"steps"}]
)keys";

extern const std::string_view measure = R"keys(
$errors: {median_ape: number, p90_ape: number, predicted_over_measured: number},
$launches: {launch: <s>, gap: <s>, ramp: <s>},
$attention: {share: number, softmax: any, passes: any},
chip?: text, name?: text, rows?: count,
machine?: {
    cores: count, peak_fp64: <FLOP/s>, peak_fp32: <FLOP/s>,
    memory: [{name: text, capacity: <B>, read: <B/s>, per: text}]},
fitted?: {
    products?: map <*>|number, burst?: $launches, sustained?: $launches, attention_forward?: $attention,
    attention_backward?: $attention, decode?: {share: number, crowded: any, item: any},
    streams?: {share: number, ramp: <s>},
    collectives?: [{kind: text, latency: <s>, member: <s>, share: number, pair: number, chunk: <s>}],
    shared_cores?: number},
learned?: {kernels: count, before: $errors, after: $errors},
held_out?: {
    kernels: count, before: $errors, after: $errors,
    step?: {
        command: text, measured: <s>, predicted_before: <s>, predicted_after: <s>,
        products_and_attention_off_before: <s>, products_and_attention_off_after: <s>}},
summary?: [{group: text, n: count, median_ape: number, p90_ape: number, bias: number, covered: number|null}],
contention?: [{op: text, bytes: <B>, ranks: count, alone: <s>, two_at_once: <s>, slower_by: number}],
stragglers?: [{rank: count, time: <s>, slower_by: number}], files?: [{file: text}], basis?: text,
cases?: [{group: text, what: text, measured: <s>, predicted: <s>, error: number}],
unread?: [{place: text, because: text}]
)keys";

extern const std::string_view sweep = R"keys(
$pick: {
    goal: text, among?: text, values: [<*>|number|count|flag|text|null], verb: text, arguments: arguments,
    headline: text},
$map: {
    goal: text, among?: text, unit: text, across: text, down: text, columns: [text],
    rows: [{name: text, values: [number|null]}]},
requests?: count, answered?: count, infeasible?: count, failed?: count, asked_now: count, rank?: count,
best?: [$pick], front?: [$pick], heat_map?: $map, heat_maps?: [$map],
faults?: [{error: text, requests: count, first: text}], files?: [text]
)keys";

}  // namespace assay::verbs::answers
