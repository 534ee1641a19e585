// A question of training small enough to search without bounds.
#pragma once
#include "assay/predict/search/training/search.h"

namespace assay::testing::training_search {

inline constexpr std::int64_t sequence = 2048;

inline model::Transformer tiny_model() {
  model::Transformer model;
  model.id = "tiny";
  model.d_model = 512;
  model.vocabulary = 8192;
  model::Layer layer;
  model::Attention attention;
  attention.heads = attention.kv_heads = 8;
  attention.head_dim = attention.value_dim = 64;
  layer.attention = attention;
  model::FeedForward mlp;
  mlp.width = 2048;
  layer.feed_forward = mlp;
  for (int i = 0; i < 4; ++i) model.decoder.add(layer);
  return model;
}

/// Ten layers, every second one with experts that take several times as long: chunks decide which stages have them.
inline model::Transformer alternating_model() {
  model::Transformer model = tiny_model();
  const model::Layer plain = model.decoder.kinds.front();
  model::Layer experts = plain;
  experts.feed_forward->experts = 8;
  experts.feed_forward->experts_per_token = 8;
  model.decoder = {};
  for (int i = 0; i < 5; ++i) {
    model.decoder.add(plain);
    model.decoder.add(experts);
  }
  return model;
}

inline constexpr training::Offload every_offload[] = {training::Offload::none, training::Offload::optimizer,
                                                      training::Offload::activations, training::Offload::both};

struct SearchCase {
  model::Transformer model = tiny_model();
  hardware::Cluster cluster;
  training::TrainingQuestion question;

  explicit SearchCase(const char* where)
      : cluster(*hardware::parse_cluster(where, hardware::Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.sequences = 32;
    question.chips = static_cast<double>(cluster.chips());
  }
};

}  // namespace assay::testing::training_search
