#include "assay/predict/search/serving/speculation.h"

#include <cmath>
#include <numeric>

namespace assay::search {
namespace {

serving::ServingStrategy strategy_of_draft(const Draft& draft, const serving::ServingStrategy& strategy) {
  serving::ServingStrategy out;
  if (draft.shares_outer) {  // a layer like the others, on every stage for its own sequences
    out = strategy;
    out.pipeline = 1;
    out.data = strategy.data * strategy.pipeline;
    return out;
  }
  out.tensor = strategy.tensor;
  for (const model::Layer& layer : draft.model.decoder.kinds) {
    if (layer.attention) out.tensor = std::gcd(out.tensor, layer.attention->heads);
    if (layer.feed_forward) out.tensor = std::gcd(out.tensor, layer.feed_forward->width);
  }
  out.data = strategy.chips() / out.tensor;
  return out;
}

/// A decode step of the draft model for the requests of the large one.
serving::ServingProfile draft_profile(const serving::ServingQuestion& question, const Draft& draft,
                                      const serving::ServingStrategy& strategy) {
  serving::ServingQuestion of_draft = question;
  of_draft.setup.model = &draft.model;
  return serving::make_serving_profile(of_draft.setup, strategy, 1, serving::decode_keys(of_draft));
}

/// Bytes on one chip of a module's weights before its layer: the projection of a state and an embedding.
Bytes projection_bytes(const serving::ServingQuestion& question, const Draft& draft,
                       const serving::ServingStrategy& strategy) {
  const auto width = static_cast<double>(draft.model.d_model);
  const Bytes all = storage(question.setup.formats.most(), 2.0 * width * width);
  return draft.shares_outer ? all / static_cast<double>(strategy.tensor) : Bytes();
}

Bytes draft_bytes(const serving::ServingQuestion& question, const Draft& draft,
                  const serving::ServingStrategy& strategy, const serving::ServingProfile& drafted, double batch) {
  const Bytes own = drafted.weights - (draft.shares_outer ? drafted.outer : Bytes());
  return own + projection_bytes(question, draft, strategy) + (drafted.cache + drafted.states) * drafted.held(batch);
}

}  // namespace

double expected_tokens(double acceptance, std::int64_t length) {
  double sum = 1.0, all_right = 1.0;
  for (std::int64_t i = 0; i < length; ++i) sum += all_right *= acceptance;
  return sum;
}

Draft prediction_module(const model::Transformer& model) {
  Draft draft{model, true};
  draft.model.decoder = {};
  draft.model.decoder.add(model.decoder.kinds[model.decoder.order.back()]);
  return draft;
}

Result<double> batch_beside_draft(const serving::ServingQuestion& question, const Draft& draft,
                                  const hardware::Cluster& cluster, const serving::ServingStrategy& strategy) {
  ASSAY_TRY(links, serving::serving_links(question.setup, strategy, cluster));
  const serving::ServingProfiles profiles = serving::serving_profiles(question, strategy, links);
  const serving::ServingStrategy way = strategy_of_draft(draft, strategy);
  const serving::ServingProfile drafted = draft_profile(question, draft, way);
  const auto fits = [&](double batch) {
    return serving::serving_memory(question, profiles, batch).total() +
               draft_bytes(question, draft, way, drafted, batch) <=
           question.capacity;
  };
  // Counts whole sequences of every device; more sequences never take less memory.
  const double unit = profiles.decode.unit * static_cast<double>(strategy.pipeline);
  double fewest = 0.0, most = std::floor(serving::serving_memory(question, profiles, unit).max_batch / unit) + 1.0;
  while (most - fewest > 1.0) {
    const double middle = std::floor((fewest + most) / 2.0);
    (fits(middle * unit) ? fewest : most) = middle;
  }
  return fewest * unit;
}

Result<Speculation> speculate(const serving::ServingQuestion& question, const Draft& draft,
                              const hardware::Cluster& cluster, const serving::ServingStrategy& strategy,
                              const LoopChoices& choices) {
  Speculation out;
  out.draft_strategy = strategy_of_draft(draft, strategy);
  ASSAY_TRY(links, serving::serving_links(question.setup, strategy, cluster));
  ASSAY_TRY(draft_links, serving::serving_links(question.setup, out.draft_strategy, cluster));
  serving::ServingSetup setup = question.setup;
  setup.model = &draft.model;
  setup.effects.step = setup.effects.sequence = Seconds(0);
  const serving::ServingProfile drafted = draft_profile(question, draft, out.draft_strategy);
  const Seconds draft_step =
      serving::serving_time(setup, out.draft_strategy, drafted, draft_links, choices.batch).estimate +
      projection_bytes(question, draft, out.draft_strategy) / setup.rates.hbm;
  out.draft_memory = draft_bytes(question, draft, out.draft_strategy, drafted, choices.batch);
  for (std::int64_t length : choices.lengths) {
    const serving::ServingProfile checked =
        serving::make_serving_profile(question.setup, strategy, length + 1, serving::decode_keys(question, length));
    SpeculativeLoop loop;
    loop.length = length;
    loop.draft_step = draft_step;
    loop.verify_step =
        choices.step_scale * serving::verify_time(question.setup, strategy, checked, links, choices.batch).estimate;
    loop.loop = static_cast<double>(length) * draft_step + loop.verify_step;
    loop.tokens = expected_tokens(choices.acceptance, length);
    out.loops.push_back(loop);
    if (loop.per_token() < out.loops[out.best].per_token()) out.best = out.loops.size() - 1;
  }
  return out;
}

}  // namespace assay::search
