// Results of executed programs. The grammar is in answers.h.
#include "assay/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view run = R"keys(
$pair: {kind: text, measured: <s>, predicted: <s>, over_predicted: number|null},
mesh?: text, devices?: count,
run?: "train"|"serve", model?: text, parameters?: count, engine?: "virtual"|"mpi",
text?: {name: text, bytes: count, tokens: count, vocabulary: count}, strategy?: text, microbatches?: count,
first_loss?: number, last_loss?: number, time?: <s>, moved?: <B>, predicted_bytes?: <B>, between_stages?: <B>,
steps?: [{step: count, loss: number, gradient_norm: number, time: <s>}],
check?: {largest_difference: number, tolerance: number, equal: flag},
compared?: [{
    strategy: text, devices: count, largest_difference: number, time: <s>, moved: <B>, predicted_bytes: <B>,
    losses: [number]}],
prediction?: {on: text, by_kind: [$pair], long_steps: [$pair]},
trained?: flag, iterations?: count, prefills?: count, decodes?: count, mean_batch?: number, generated?: count,
prefill_time?: <s>, decode_time?: <s>, tokens_per_second?: <tokens/s>, drafted?: count, accepted?: count,
requests?: [{
    prompt: text, answer: text, prompt_tokens: count, new_tokens: count, started: count, finished: count}],
tokens_equal?: flag
)keys";

}  // namespace assay::verbs::answers
