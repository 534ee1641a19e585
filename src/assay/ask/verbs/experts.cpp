#include "assay/ask/verbs/experts.h"

#include "assay/model/accounting.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

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
  const auto text = request.value("ep-over");
  if (!text) return {};
  lower::ExpertAxes over;
  for (const std::string& part : split(*text, ',')) {
    const std::string axis(trim(part));
    if (axis == "tp" || axis == "tensor")
      over.tensor = true;
    else if (axis == "cp" || axis == "context")
      over.context = true;
    else if (axis != "dp" && axis != "fsdp" && axis != "data")
      return fail("--ep-over", fmt::format("{} is none of dp, fsdp, tp, cp", in_quotes(axis)), "e.g. --ep-over tp",
                  Error::Kind::usage);
  }
  out = over;
  return {};
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
