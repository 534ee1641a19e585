#include "assay/program/lower/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "assay/base/text.h"

namespace assay::lower {
namespace {

constexpr std::string_view part_names[] = {
    "norms",   "rotary", "scores",   "attention", "attention-products", "ffn-products", "second-products",
    "ffn-act", "router", "dispatch", "scans",     "residual",           "reductions",   "exchanges"};
static_assert(std::size(part_names) == forward_parts);

constexpr ForwardPart part_at(std::size_t i) { return static_cast<ForwardPart>(i); }

}  // namespace

std::string_view name(ForwardPart part) { return part_names[static_cast<std::size_t>(part)]; }

std::string name(Recompute recompute) {
  for (const RecomputePolicy& policy : recompute_policies)
    if (policy.parts == recompute) return std::string(policy.name);
  std::string list;
  for (std::size_t i = 0; i < forward_parts; ++i)
    if (recompute.covers(part_at(i))) list += fmt::format("{}{}", list.empty() ? "" : ",", part_names[i]);
  return list;
}

Result<Recompute> parse_recompute(std::string_view text, std::string_view where) {
  for (const RecomputePolicy& policy : recompute_policies)
    if (policy.name == text) return policy.parts;
  Recompute list;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const auto* known = std::find(std::begin(part_names), std::end(part_names), word);
    if (known == std::end(part_names)) {
      std::vector<std::string_view> policies;
      for (const RecomputePolicy& policy : recompute_policies) policies.push_back(policy.name);
      return fail(std::string(where), fmt::format("unknown recomputation policy {}", in_quotes(word)),
                  fmt::format("one of {}; or a list of parts to recompute: {}", fmt::join(policies, ", "),
                              fmt::join(part_names, ", ")),
                  Error::Kind::usage);
    }
    list = list.with(part_at(static_cast<std::size_t>(known - std::begin(part_names))));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

Recompute parts_of(const program::Program& program, const program::Step& step, int id, std::int64_t products_before) {
  using enum ForwardPart;
  if (step.op == program::Op::product) {
    const program::ProgramTensor& weight = program.tensor(step.in[1]);
    const bool feeds = weight.find(model::LogicalDim::width) >= 0 || weight.find(model::LogicalDim::experts) >= 0;
    const Recompute kind = Recompute::of({feeds ? feed_forward_products : attention_products});
    return products_before % 2 == 1 ? kind.with(second_products) : kind;
  }
  const bool sums = step.op == program::Op::collective && program::facts(step.collective).sums;
  const Recompute kind = Recompute::of({sums ? reductions : program::facts(step.op).part});
  return step.op == program::Op::attention && id != step.out[0] ? kind.with(scores) : kind;
}

bool is_gathered(const program::Program& program, const program::Step& step, int id) {
  if (step.op == program::Op::slice || (step.op == program::Op::collective && program::gathers(step.collective)))
    return true;
  // Tokens gathered and then copied for their experts, or quantised, count as gathered.
  if (step.op == program::Op::dispatch || step.op == program::Op::cast) {
    const std::int16_t producer = program.tensor(step.in[0]).producer;
    const program::Step* const source = producer < 0 ? nullptr : &program.steps[static_cast<std::size_t>(producer)];
    if (source && source->op != program::Op::slice && is_gathered(program, *source, step.in[0])) return true;
  }
  return program.tensor(id).tensor_class == program::TensorClass::used_weight;
}

}  // namespace assay::lower
