#include "assay/predict/search/training/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::search {
namespace {

/// Every choice as the strategy makes it, within what the software can express.
TrainingChoices fixed_choices(const training::Strategy& s, const PlanRules& rules) {
  const lower::Parallelism& p = s.parallelism;
  TrainingChoices out;
  out.rules = rules;
  out.data = p.data;
  out.fsdp = p.fsdp;
  out.tensor = p.tensor;
  out.pipeline = p.pipeline;
  out.context = p.context;
  out.expert = p.expert;
  out.expert_over = p.expert_over;
  out.zero = p.zero;
  out.micro_batch = s.micro_batch;
  if (p.pipeline > 1) {
    out.interleave = s.interleave;
    out.schedule = s.schedule;
  }
  out.recompute = s.recompute;
  out.residual = p.residual;
  out.context_scheme = p.context_scheme;
  out.layout = s.layout;
  out.offloads = {s.offload};
  return out;
}

/// Choices that are opened together.
using Opening = void (*)(TrainingChoices&);

template <auto Degree, auto Data>
void open_degree(TrainingChoices& c) {
  (c.*Degree).reset();
  (c.*Data).reset();
  c.layout.reset();
  // What the other degree brings or forbids.
  c.residual.reset();
  c.context_scheme.reset();
  c.zero.reset();
  c.schedule.reset();
  c.interleave.reset();
}

constexpr Opening openings[] = {
    open_degree<&TrainingChoices::tensor, &TrainingChoices::data>,
    open_degree<&TrainingChoices::tensor, &TrainingChoices::fsdp>,
    open_degree<&TrainingChoices::pipeline, &TrainingChoices::data>,
    open_degree<&TrainingChoices::pipeline, &TrainingChoices::fsdp>,
    open_degree<&TrainingChoices::context, &TrainingChoices::data>,
    open_degree<&TrainingChoices::context, &TrainingChoices::fsdp>,
    open_degree<&TrainingChoices::fsdp, &TrainingChoices::data>,
    [](TrainingChoices& c) {
      c.expert.reset();
      c.expert_over.reset();
      c.layout.reset();
    },
    [](TrainingChoices& c) { c.zero.reset(); },
    [](TrainingChoices& c) { c.micro_batch.reset(); },
    [](TrainingChoices& c) {
      c.schedule.reset();
      c.interleave.reset();
    },
    [](TrainingChoices& c) { c.recompute.reset(); },
    [](TrainingChoices& c) { c.residual.reset(); },
    [](TrainingChoices& c) { c.context_scheme.reset(); },
    [](TrainingChoices& c) { c.layout.reset(); },
};

std::string change_of(const training::Strategy& from, const training::Strategy& to) {
  std::string out;
  const auto add = [&](std::string_view option, const auto& before, const auto& after) {
    if (before != after) out += fmt::format("{}--{} {}", out.empty() ? "" : " ", option, after);
  };
  const lower::Parallelism &a = from.parallelism, &b = to.parallelism;
  add("dp", a.data, b.data);
  add("fsdp", a.fsdp, b.fsdp);
  add("tp", a.tensor, b.tensor);
  add("pp", a.pipeline, b.pipeline);
  add("cp", a.context, b.context);
  add("ep", a.expert, b.expert);
  if (a.expert_over != b.expert_over) add("ep-over", lower::expert_axes_text(a), lower::expert_axes_text(b));
  add("zero", a.zero, b.zero);
  add("micro-batch", from.micro_batch, to.micro_batch);
  if (b.pipeline > 1) {
    const auto none = std::string_view();
    add("schedule", a.pipeline > 1 ? clock::schedule_name(from.schedule) : none, clock::schedule_name(to.schedule));
    add("interleave", a.pipeline > 1 ? from.interleave : 1, to.interleave);
  }
  add("recompute", lower::name(from.recompute), lower::name(to.recompute));
  add("offload", training::name(from.offload), training::name(to.offload));
  const auto residual = [](const lower::Parallelism& p) {
    return p.residual == lower::ResidualScheme::sequence     ? "sequence"
           : p.residual == lower::ResidualScheme::replicated ? "replicated"
                                                             : "model";
  };
  if (b.tensor > 1) add("residual", std::string_view(residual(a)), std::string_view(residual(b)));
  if (b.context > 1) {
    const auto scheme = [](const lower::Parallelism& p) {
      return std::string_view(p.context_scheme == lower::ContextScheme::exchange ? "all-to-all" : "ring");
    };
    add("context-scheme", a.context > 1 ? scheme(a) : "ring", scheme(b));
  }
  if (out.empty() && b.devices() > 1) out = "--order " + training::axis_order(b, to.layout);
  return out;
}

}  // namespace

Result<std::vector<Neighbour>> better_neighbours(const NeighbourQuestion& in, const Candidate& given, bool fits) {
  const Bytes capacity = in.cluster.chip.hbm().capacity.value;
  std::vector<Neighbour> out;
  const auto try_choices = [&](const TrainingChoices& choices) -> Result<void> {
    const Seconds slowest = fits ? given.cost.estimate : Seconds(HUGE_VAL);
    const auto found = search_training(in.question, in.sequence, in.cluster, choices, {capacity, 1, true, slowest});
    if (!found || found->best.empty()) return {};
    const Candidate& best = found->best.front();
    if (fits && !(best.cost.estimate < given.cost.estimate * (1.0 - 1e-6))) return {};
    std::string change = change_of(given.strategy, best.strategy);
    const bool known = std::any_of(out.begin(), out.end(), [&](const Neighbour& n) { return n.change == change; });
    if (!known && !change.empty()) out.push_back({std::move(change), best});
    return {};
  };
  for (const Opening open : openings) {
    TrainingChoices choices = fixed_choices(given.strategy, in.choices.rules);
    open(choices);
    ASSAY_CHECK(try_choices(choices));
  }
  for (const training::Offload offload : in.choices.offloads) {
    TrainingChoices choices = fixed_choices(given.strategy, in.choices.rules);
    choices.offloads = {offload};
    ASSAY_CHECK(try_choices(choices));
  }
  std::stable_sort(out.begin(), out.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.candidate.cost.estimate < b.candidate.cost.estimate;
  });
  return out;
}

}  // namespace assay::search
