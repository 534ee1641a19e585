// The model, cluster and strategies that tests of training share.
#pragma once
#include "assay/schedule/training.h"

namespace assay {

inline Transformer small_model(std::int64_t experts = 0) {
  Transformer model;
  model.id = "small";
  model.d_model = 1024;
  model.vocabulary = 32768;
  Layer layer;
  Attention attention;
  attention.heads = 16, attention.kv_heads = 8, attention.head_dim = attention.value_dim = 64;
  layer.attention = attention;
  FeedForward mlp;
  mlp.width = 4096;
  layer.feed_forward = mlp;
  model.decoder.add(layer);
  if (experts > 0) {
    layer.feed_forward->experts = experts;
    layer.feed_forward->experts_per_token = 2;
    layer.feed_forward->width = 1024;
  }
  for (int i = 0; i < 7; ++i) model.decoder.add(layer);
  return model;
}

struct TrainingCase {
  Transformer model;
  Cluster cluster;
  TrainingQuestion question;

  TrainingCase(const char* where, double sequences, std::int64_t experts = 0)
      : model(small_model(experts)), cluster(*parse_cluster(where, Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.sequences = sequences;
    question.chips = static_cast<double>(cluster.chips());
  }
};

inline Strategy strategy_of(std::int64_t data, std::int64_t fsdp, std::int64_t tensor, std::int64_t context = 1,
                            std::int64_t expert = 1) {
  Strategy s;
  s.parallelism.data = data, s.parallelism.fsdp = fsdp, s.parallelism.tensor = tensor;
  s.parallelism.context = context, s.parallelism.expert = expert;
  return s;
}

inline constexpr std::int64_t sequence = 2048;

}  // namespace assay
