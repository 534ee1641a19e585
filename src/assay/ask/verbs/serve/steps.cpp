#include "assay/ask/verbs/serve/serve.h"

#include <algorithm>

namespace assay::verbs::serve {
namespace {

struct PointSteps {
  training::StageLinks links;
  serving::ServingProfiles profiles;
};
Result<PointSteps> steps_of(const ServeQuery& query, const serving::ServingPoint& point,
                            const Traced* explain = nullptr) {
  serving::ServingQuestion question = query.question;
  question.setup.explain = explain;
  ASSAY_TRY(links, serving::serving_links(question.setup, point.strategy, query.cluster));
  serving::ServingProfiles profiles = serving::serving_profiles(question, point.strategy, links);
  return PointSteps{std::move(links), std::move(profiles)};
}

report::Items step_rows(const std::vector<serving::PricedStep>& steps) {
  return report::rows_of(steps, [&](const serving::PricedStep& step) {
    return report::Members{{"block", step.block},
                           {"layers", step.layers},
                           {"per_layer", step.count},
                           {"step", step.what},
                           {"over", training::roles_text(step.over)},
                           {"flops", step.flops},
                           {"bytes", step.bytes},
                           {"time", step.time},
                           {"time_of_all", step.layers * step.count * step.time},
                           {"limiter", step.over != 0               ? "network"
                                       : step.compute > step.memory ? "compute"
                                                                    : "memory"}};
  });
}

/// Kernels from the routing of tokens to the sum of what their experts returned.
Seconds experts_time(const std::vector<serving::PricedStep>& steps) {
  Seconds sum;
  bool inside = false;
  for (const serving::PricedStep& step : steps) {
    inside = inside || step.op == program::Op::route || step.op == program::Op::dispatch;
    if (inside && step.op != program::Op::collective) sum += step.layers * step.count * step.time;
    if (step.op == program::Op::combine) inside = false;
  }
  return sum;
}

/// What of a chip's memory the server may use.
NumberOf<Traced, Bytes> usable_memory(const Traced& num, const ServeQuery& query) {
  const Bytes usable = query.question.capacity;
  const auto whole = num.given("memory", query.cluster.chip.hbm().capacity);
  if (usable == plain(whole)) return whole;
  return whole * num.given("share of the memory", usable / plain(whole), "--memory-share");
}

/// Times that were measured replace the estimate.
NumberOf<Traced, Seconds> scaled(const Traced& num, std::string_view name, NumberOf<Traced, Seconds> time,
                                 double scale) {
  if (scale == 1.0) return num.named(name, time);
  return num.named(name, time * num.given("measured over estimated", scale, "times that were given"));
}

}  // namespace

Result<DerivedSteps> derive_steps(const Traced& num, const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(steps, steps_of(query, point, &num));
  const serving::ServingQuestion& question = query.question;
  Origins origins(num);
  origins.add("memory of the chip", usable_memory(num, query));
  const training::DerivedLinks links = serving::derived_links(num, question.setup, point.strategy, query.cluster);
  const auto decode =
      serving::derive_serving_time(num, question.setup, point.strategy, steps.profiles.decode, links, point.batch);
  const auto prefill = serving::derive_prefill_time(num, question.setup, point.strategy, steps.profiles.prefill, links,
                                                    serving::prompts_of(question, steps.profiles.prefill.profile));
  // Prompts and sequences of steps that were measured take as long together as by themselves.
  const serving::ServedRate& served = point.served;
  const bool is_measured = query.step_time || query.prefill_time || query.mfu;
  const auto mixed = is_measured ? num.given("sequences alone", Seconds(served.beside), "times that were given") +
                                       num.given("prompts alone", Seconds(served.prompts), "times that were given")
                                 : serving::derive_step_with_prompts(num, question, point, steps.profiles, links);
  DerivedSteps out{scaled(num, "decode step", decode, point.step_scale),
                   scaled(num, "prefill", prefill, point.prefill_scale),
                   num.named("step with prompts", mixed),
                   {}};
  out.memory = num.named("memory", serving::derive_serving_memory(num, question, steps.profiles, point.batch).total());
  return out;
}

Result<ListedSteps> listed_steps(const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(steps, steps_of(query, point));
  const serving::ServingSetup& setup = query.question.setup;
  serving::ServingStrategy prefilled = point.strategy;
  prefilled.scheme = steps.profiles.prefill.scheme;
  return ListedSteps{serving::list_serving_step(setup, point.strategy, steps.profiles.decode, steps.links, point.batch),
                     serving::list_serving_step(setup, prefilled, steps.profiles.prefill.profile, steps.links,
                                                serving::prompts_of(query.question, steps.profiles.prefill.profile))};
}

Result<void> list_steps(const ServeQuery& query, const serving::ServingPoint& point, report::Members& out) {
  ASSAY_TRY(steps, listed_steps(query, point));
  out.emplace_back("decode_steps", step_rows(steps.decode));
  out.emplace_back("prefill_steps", step_rows(steps.prefill));
  if (query.question.setup.model->has_experts()) out.emplace_back("decode_experts", experts_time(steps.decode));
  return {};
}

}  // namespace assay::verbs::serve
