#include "assay/search/speculation.h"

#include <cmath>
#include <numeric>

namespace assay {
namespace {

ServingStrategy strategy_of_draft(const Transformer& draft, const ServingStrategy& strategy) {
  ServingStrategy out;
  out.tensor = strategy.tensor;
  for (const Layer& layer : draft.decoder.kinds) {
    if (layer.attention) out.tensor = std::gcd(out.tensor, layer.attention->heads);
    if (layer.feed_forward) out.tensor = std::gcd(out.tensor, layer.feed_forward->width);
  }
  out.data = strategy.chips() / out.tensor;
  return out;
}

/// A decode step of the draft for the same requests.
ServingProfile draft_profile(const ServingQuestion& question, const Transformer& draft,
                             const ServingStrategy& strategy) {
  ServingQuestion of_draft = question;
  of_draft.setup.model = &draft;
  return make_serving_profile(of_draft.setup, strategy, 1, decode_keys(of_draft));
}

double draft_bytes(const ServingProfile& drafted, double batch) {
  return drafted.weight_bytes + (drafted.cache_bytes + drafted.state_bytes) * batch;
}

}  // namespace

double expected_tokens(double acceptance, std::int64_t length) {
  double sum = 1.0, all_right = 1.0;
  for (std::int64_t i = 0; i < length; ++i) sum += all_right *= acceptance;
  return sum;
}

Transformer prediction_module(const Transformer& model) {
  Transformer draft = model;
  draft.decoder = {};
  draft.decoder.add(model.decoder.kinds[model.decoder.order.back()]);
  draft.encoder.reset();
  return draft;
}

Result<double> batch_beside_draft(const ServingQuestion& question, const Transformer& draft, const Cluster& cluster,
                                  const ServingStrategy& strategy) {
  ASSAY_TRY(links, serving_links(question.setup, strategy, cluster));
  const ServingProfiles profiles = serving_profiles(question, strategy, links);
  const ServingProfile drafted = draft_profile(question, draft, strategy_of_draft(draft, strategy));
  const auto fits = [&](double batch) {
    return serving_memory(question, profiles, batch).total() + draft_bytes(drafted, batch) <= question.capacity;
  };
  // In whole sequences of every device; more of them never take less memory.
  const double unit = profiles.decode.unit * static_cast<double>(strategy.pipeline);
  double some = 0.0, many = std::floor(serving_memory(question, profiles, unit).max_batch / unit) + 1.0;
  while (many - some > 1.0) {
    const double middle = std::floor((some + many) / 2.0);
    (fits(middle * unit) ? some : many) = middle;
  }
  return some * unit;
}

Result<Speculation> speculate(const ServingQuestion& question, const Transformer& draft, const Cluster& cluster,
                              const ServingStrategy& strategy, double batch, double acceptance,
                              const std::vector<std::int64_t>& lengths) {
  Speculation out;
  out.draft_strategy = strategy_of_draft(draft, strategy);
  ASSAY_TRY(links, serving_links(question.setup, strategy, cluster));
  ASSAY_TRY(draft_links, serving_links(question.setup, out.draft_strategy, cluster));
  ServingSetup setup = question.setup;
  setup.model = &draft;
  const ServingProfile drafted = draft_profile(question, draft, out.draft_strategy);
  const double draft_step = serving_time(setup, out.draft_strategy, drafted, draft_links, batch).estimate;
  out.draft_memory = draft_bytes(drafted, batch);
  for (std::int64_t length : lengths) {
    const ServingProfile checked =
        make_serving_profile(question.setup, strategy, length + 1, decode_keys(question, length));
    SpeculativeLoop loop;
    loop.length = length;
    loop.draft_step = draft_step;
    loop.verify_step = verify_time(question.setup, strategy, checked, links, batch).estimate;
    loop.loop = static_cast<double>(length) * draft_step + loop.verify_step;
    loop.tokens = expected_tokens(acceptance, length);
    out.loops.push_back(loop);
    if (loop.per_token() < out.loops[out.best].per_token()) out.best = out.loops.size() - 1;
  }
  return out;
}

}  // namespace assay
