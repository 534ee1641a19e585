#include "assay/profile/compare/explains.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/text.h"

namespace assay::compare {
namespace {

using Kind = MeasuredCall::Kind;

bool is_of(const MeasuredCall& call, const trace::Vocabulary& vocabulary, std::string_view category) {
  return vocabulary.categories[call.category].id == category;
}

/// Rows and columns of a matrix of weights, the smaller one first.
using Matrix = std::pair<std::int64_t, std::int64_t>;
Matrix matrix(std::int64_t a, std::int64_t b) { return {std::min(a, b), std::max(a, b)}; }

std::set<Matrix> matrices_of(const RecoveredModel& model) {
  const std::int64_t hidden = model.hidden, heads = model.heads * model.head_dim,
                     keys = model.kv_heads * model.head_dim,
                     values = model.heads * (model.value_dim > 0 ? model.value_dim : model.head_dim);
  std::set<Matrix> out;
  for (const std::int64_t width : {heads,
                                   keys,
                                   values,
                                   2 * keys,
                                   heads + keys,
                                   heads + 2 * keys,
                                   model.intermediate,
                                   2 * model.intermediate,
                                   heads + 2 * keys + model.intermediate,
                                   heads + 2 * keys + 2 * model.intermediate,
                                   heads + model.intermediate,
                                   model.dense_width,
                                   2 * model.dense_width,
                                   model.shared,
                                   2 * model.shared,
                                   model.vocabulary,
                                   model.experts,
                                   model.q_rank,
                                   model.kv_rank,
                                   model.kv_rank + model.rope_dim})
    if (width > 0) out.insert(matrix(hidden, width));
  if (model.kv_rank > 0) out.insert(matrix(model.kv_rank, model.heads * (model.head_dim - model.rope_dim) + values));
  if (model.q_rank > 0) out.insert(matrix(model.q_rank, heads));
  return out;
}

/// Whether two sizes of a product are those of one of the matrices: forward, or one of both gradients.
bool is_one_of(const std::set<Matrix>& matrices, const MeasuredCall& call) {
  const auto &a = call.dims[0], &b = call.dims[1];
  if (a.empty() || b.empty()) return false;
  const std::int64_t m = a.size() > 1 ? a[a.size() - 2] : 1, k = a.back(), n = b.back();
  return matrices.contains(matrix(k, n)) || matrices.contains(matrix(m, n)) || matrices.contains(matrix(m, k));
}

}  // namespace

Result<void> check_prediction(const MeasuredStep& measured, const Prediction& prediction, const Matching& matching,
                              const trace::Vocabulary& vocabulary) {
  if (matching.by_class) return {};
  Flops ran, found, planned;
  double known = 0, unknown = 0, layers = 0, attention = 0;
  const auto steps = static_cast<double>(matching.steps);
  for (std::size_t i = 0; i < measured.calls.size(); ++i) {
    const MeasuredCall& call = measured.calls[i];
    if (call.kind == Kind::attention && !call.backward) ++attention;
    if (call.kind == Kind::other && is_of(call, vocabulary, "matmul")) unknown += static_cast<double>(call.duration);
    if (call.kind != Kind::product) continue;
    known += static_cast<double>(call.duration);
    ran += call.flops;
    if (!matching.places(matching.calls[i]).empty()) found += call.flops;
  }
  for (const PredictedLine& line : prediction.lines) {
    const double runs = steps * static_cast<double>(line.runs);
    if (line.op == program::Op::product) planned += runs * line.flops;
    if (line.op == program::Op::attention && line.phase == program::Phase::forward) layers += runs;
  }
  const auto refuse = [&](std::string why) {
    return fail(
        "--against", fmt::format("{}: {}", contradiction, std::move(why)),
        "ask for the model, layers, batch and sequence that ran; alone, --against takes those that shapes imply");
  };
  constexpr double most = 1.5, few = 0.1, covered = 0.9, least = 0.5;
  const bool complete = known > covered * (known + unknown);
  if (planned > Flops(0) && (ran > most * planned || (complete && most * ran < planned)))
    return refuse(fmt::format("the products of a step have {}, and the request's {}", human(ran / steps),
                              human(planned / steps)));
  // As many times as often is a layer in more or fewer microbatches.
  const double times = std::max(attention, layers) / std::min(attention, layers);
  if (attention > 0 && layers > 0 && std::abs(times - std::round(times)) > few)
    return refuse(fmt::format("a step runs attention {:.3g} times, and the request's {:.3g} times", attention / steps,
                              layers / steps));
  if (found < least * ran)
    return refuse(fmt::format("only {:.0f} % of the FLOP of its products are in products of the request's sizes",
                              100.0 * (found / ran)));
  return {};
}

Result<void> check_recovered(const MeasuredStep& measured, const RecoveredModel& model,
                             const trace::Vocabulary& vocabulary, const std::string& file) {
  const std::set<Matrix> matrices = matrices_of(model);
  Flops all, explained;
  double time = 0, explained_time = 0;
  for (const MeasuredCall& call : measured.calls) {
    const auto length = static_cast<double>(call.duration);
    const bool unknown = call.kind == Kind::other && !call.fused &&
                         (is_of(call, vocabulary, "matmul") || is_of(call, vocabulary, "convolution"));
    if (call.kind == Kind::other && !unknown) continue;
    const bool heads = call.kind == Kind::product && call.dims[0].size() == 3 && call.dims[1].size() == 3;
    const bool fits = call.kind == Kind::attention || call.kind == Kind::attention_gradient || heads ||
                      (call.kind == Kind::product && is_one_of(matrices, call));
    time += length;
    explained_time += fits ? length : 0.0;
    if (call.kind != Kind::product) continue;
    all += call.flops;
    if (fits) explained += call.flops;
  }
  constexpr double most_flops = 0.8, most_time = 0.5;
  const double flops_share = all > Flops(0) ? explained / all : 0.0,
               time_share = time > 0.0 ? explained_time / time : 0.0;
  if (flops_share >= most_flops && time_share >= most_time) return {};
  return fail(
      file,
      fmt::format("no model is named: layers of width {} explain {:.0f} % of the FLOP of products, and {:.0f} % of "
                  "the time of products, attention and convolutions",
                  model.hidden, 100.0 * flops_share, 100.0 * time_share),
      "give the request: --against 'train MODEL ...'");
}

}  // namespace assay::compare
