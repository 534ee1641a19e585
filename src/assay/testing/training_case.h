// The model, cluster and strategies that tests of training share.
#pragma once
#include "assay/estimate/overlap.h"
#include "assay/lower/strategy.h"
#include "assay/training/step.h"

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

/// Sixteen layers, every second one with experts, as Jamba and Llama 4 have them.
inline Transformer alternating_model() {
  Transformer model = small_model(8);
  const Layer plain = model.decoder.kinds.front();
  Layer experts = model.decoder.kinds.back();
  experts.feed_forward->width = plain.feed_forward->width;
  model.decoder = {};
  for (int i = 0; i < 8; ++i) model.decoder.add(plain), model.decoder.add(experts);
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

/// Every step of a program by itself on a placed mesh, without what profiles and links keep.
inline StepTimes plain_step_times(const Program& program, const KernelRates& rates, const Placement* placement,
                                  const Mesh& placed_mesh, double network_share, const Routing& routing = {}) {
  StepTimes times;
  times.estimate.reserve(program.steps.size());
  for (const Step& step : program.steps) {
    if (!is_collective(step.op)) {
      const KernelTime time = step.op == Op::slice ? KernelTime{} : kernel_time(rates, program, step);
      times.estimate.push_back(time.estimate);
      continue;
    }
    AxisSet axes = 0;  // the program's axes by name on the placed mesh
    for (std::size_t i = 0; i < program.mesh.axes.size(); ++i)
      if (step.axes >> i & 1u) axes |= axis_bit(placed_mesh.find(whole_axis(program.mesh.axes[i].name)).value_or(0));
    if (!placement) {
      times.estimate.emplace_back();
      continue;
    }
    CollectiveGroup group = placement->group(axes);
    if (program.tensor(step.in[0]).find(LogicalDim::experts) >= 0) group.routing = routing;
    const CollectiveCost<Plain> cost =
        collective_cost(Plain{}, collective_of(step.op), array_bytes(program, step), group);
    times.estimate.push_back(cost.bandwidth / network_share + cost.latency);
  }
  return times;
}

inline constexpr std::int64_t sequence = 2048;

}  // namespace assay
