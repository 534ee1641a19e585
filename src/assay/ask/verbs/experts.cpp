#include "assay/ask/verbs/experts.h"

#include "assay/model/accounting.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/option_values.h"

namespace assay::verbs {

Result<void> read_dispatch(const Request& request, const model::Transformer& model, training::Dispatch& out) {
  const auto text = request.value("dispatch");
  if (!text) return {};
  if (model::most_expert_load(model) == 1.0)
    return fail("--dispatch", fmt::format("{} has no experts to choose from", model.id), "drop --dispatch");
  out = *text == "expert" ? training::Dispatch::per_expert : training::Dispatch::per_node;
  return {};
}

Result<void> read_expert_axes(const Request& request, std::optional<lower::ExpertAxes>& out) {
  static constexpr Word<lower::ExpertAxes> words[] = {{"data", {}},
                                                      {"tensor", {true, false}},
                                                      {"context", {false, true}},
                                                      {"tensor,context", {true, true}},
                                                      {"context,tensor", {true, true}}};
  return read_word(request, "ep-over", words, out);
}

Result<void> check_experts(std::int64_t ways, const std::optional<lower::ExpertAxes>& over, std::int64_t tensor,
                           std::int64_t context, const model::Transformer& model) {
  lower::Parallelism p;
  p.expert = p.data = ways;
  if (over) {
    p.expert_over = *over;
    p.tensor = tensor;
    p.context = context;
    p.data = std::max<std::int64_t>(1, p.expert_data());
  }
  return lower::check_parallelism(p, model);
}

}  // namespace assay::verbs
