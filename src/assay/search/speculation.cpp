#include "assay/search/speculation.h"

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

Result<Speculation> speculate(const ServingQuestion& question, const Transformer& draft, const Cluster& cluster,
                              const ServingStrategy& strategy, double batch, double acceptance,
                              const std::vector<std::int64_t>& lengths) {
  Speculation out;
  out.draft_strategy = strategy_of_draft(draft, strategy);
  ASSAY_TRY(links, serving_links(question.setup, strategy, cluster));
  ASSAY_TRY(draft_links, serving_links(question.setup, out.draft_strategy, cluster));
  ServingSetup setup = question.setup;
  setup.model = &draft;
  ServingQuestion of_draft = question;
  of_draft.setup.model = &draft;
  const ServingProfile drafted = make_serving_profile(setup, out.draft_strategy, 1, decode_keys(of_draft));
  const double draft_step = serving_time(setup, out.draft_strategy, drafted, draft_links, batch).estimate;
  out.draft_memory = drafted.weight_bytes + (drafted.cache_bytes + drafted.state_bytes) * batch;
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
