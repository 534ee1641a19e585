// Results of executed programs. The grammar is in answers.h.
#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view run = R"keys(
$pair: {kind: text, measured: <s>, predicted: <s>, over_predicted: number|null},
$result: {name: text, tensor: text, type: text, local_shape: [count], max_error: number|null, values: any|null},
program?: text, mode?: "auto"|"explicit"|"manual", mesh?: text, devices?: count, outputs?: [$result],
gradients?: [$result],
steps?: [{
    pass: text, line: count|null, text: text, kind: text, axes: text, inserted: flag, flops: <FLOP>, received: <B>,
    time?: <s>, measured?: <s>}],
flops_per_device?: <FLOP>, compute_time?: <s>, collective_time?: <s>,
check?: {
    max_error: number|null, compared: flag, disagreement: number, bytes_moved: <B>, bytes_predicted: <B>, ok: flag},
shown?: [{after: text, tensor: text, devices: [{device: text, values: any}]}], run?: "train"|"serve", model?: text,
parameters?: count, engine?: "virtual"|"mpi"|"cuda", device?: text, memory?: <B>, network?: text,
text?: {name: text, bytes: count, tokens: count, vocabulary: count}, strategy?: text, microbatches?: count,
first_loss?: number, last_loss?: number, time?: <s>, moved?: <B>, predicted_bytes?: <B>, between_stages?: <B>,
host?: {to: <B>, from: <B>, predicted: <B>}, in_background?: <s>, waited_for?: <s>,
ranks?: [{rank: count, computing: <s>, moving: <s>, waiting: <s>, waiting_behind: <s>, waiting_for_stages: <s>}],
overlap?: {
    blocking: <s>, overlapped: <s>, arithmetic: <s>, moving: <s>, hidden: <s>, hidden_share: number, speedup: number,
    predicted?: {blocking: <s>, overlapped: <s>, moving: <s>, hidden: <s>}, timeline: $timeline},
updates?: [{step: count, loss: number, gradient_norm: number, time: <s>}],
one_device?: {largest_difference: number, tolerance: number, equal: flag},
compared?: [{
    strategy: text, devices: count, largest_difference: number, time: <s>, moved: <B>, predicted_bytes: <B>,
    losses: [number]}],
prediction?: {
    on: text, by_kind?: [$pair], long_steps?: [$pair], prefill?: [$pair], decode?: [$pair],
    steps?: [{sequences: count, new_tokens: count, tokens: count, measured: <s>, predicted: <s>}]},
trained?: flag, iterations?: count, prefills?: count, decodes?: count, mean_batch?: number, generated?: count,
prefill_time?: <s>, decode_time?: <s>, tokens_per_second?: <tokens/s>, drafted?: count, accepted?: count,
requests?: [{prompt: text, answer: text, prompt_tokens: count, new_tokens: count, started: count, finished: count}],
calls?: [{
    iteration: count, call: "prefill"|"insert"|"generate", request?: count, tokens?: count, slot?: count, cache?: <B>,
    sequences?: count}],
work?: [{tokens: count, without_cache: <FLOP>, with_cache: <FLOP>}],
threads?: {
    queue: count, time: <s>, prefill_busy: <s>, generate_busy: <s>, both_busy: <s>, waited_for_room: <s>,
    waited_for_prompts: <s>,
    activities: [{
        thread: "prefill"|"generate", call: "prefill"|"insert"|"generate", request?: count, slot?: count,
        sequences?: count, start: <s>, end: <s>}]},
pages?: {
    page: <tokens>, most: count, most_shared: count, copies: count, unused_share: number,
    moments: [{iteration: count, tables: [{request: count, tokens: count, pages: [count]}]}]},
handed_over?: <B>, predicted_cache?: <B>, tokens_equal?: flag, largest_shortfall?: number, interrupted?: flag
)keys";

}  // namespace assay::verbs::answers
