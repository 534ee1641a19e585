// Results of executed programs. The grammar is in answers.h.
#include "assay/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view run = R"keys(
$result: {
    name: text, tensor: text, type: text, local_shape: [count], max_error: number|null, values: any|null},
program: text, mode: "auto"|"explicit"|"manual", mesh: text, devices: count, outputs: [$result], gradients?: [$result],
steps: [{
    pass: text, line: count|null, text: text, kind: text, axes: text, inserted: flag, flops: <FLOP>, received: <B>,
    time?: <s>}],
flops_per_device: <FLOP>, compute_time?: <s>, collective_time?: <s>,
check: {
    max_error: number|null, compared: flag, disagreement: number, bytes_moved: <B>, bytes_predicted: <B>, ok: flag},
shown?: [{after: text, tensor: text, devices: [{device: text, values: any}]}]
)keys";

}  // namespace assay::verbs::answers
