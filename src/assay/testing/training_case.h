// The model, cluster and strategies that tests of training share.
#pragma once
#include "assay/predict/collective/placement.h"
#include "assay/predict/training/step.h"
#include "assay/program/lower/strategy.h"

namespace assay::testing {

inline model::Transformer small_model(std::int64_t experts = 0) {
  model::Transformer model;
  model.id = "small";
  model.d_model = 1024;
  model.vocabulary = 32768;
  model::Layer layer;
  model::Attention attention;
  attention.heads = 16;
  attention.kv_heads = 8;
  attention.head_dim = attention.value_dim = 64;
  layer.attention = attention;
  model::FeedForward mlp;
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
inline model::Transformer alternating_model() {
  model::Transformer model = small_model(8);
  const model::Layer plain = model.decoder.kinds.front();
  model::Layer experts = model.decoder.kinds.back();
  experts.feed_forward->width = plain.feed_forward->width;
  model.decoder = {};
  for (int i = 0; i < 8; ++i) model.decoder.add(plain), model.decoder.add(experts);
  return model;
}

struct TrainingCase {
  model::Transformer model;
  hardware::Cluster cluster;
  training::TrainingQuestion question;

  TrainingCase(const char* where, double sequences, std::int64_t experts = 0)
      : model(small_model(experts)), cluster(*hardware::parse_cluster(where, hardware::Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.sequences = sequences;
    question.chips = static_cast<double>(cluster.chips());
  }
};

inline training::Strategy strategy_of(std::int64_t data, std::int64_t fsdp, std::int64_t tensor,
                                      std::int64_t context = 1, std::int64_t expert = 1) {
  training::Strategy s;
  s.parallelism.data = data;
  s.parallelism.fsdp = fsdp;
  s.parallelism.tensor = tensor;
  s.parallelism.context = context;
  s.parallelism.expert = expert;
  return s;
}

/// Every step of a program by itself on a placed mesh, without what profiles and links keep.
inline std::vector<Seconds> plain_step_times(const program::Program& program, const kernel::KernelRates& rates,
                                             const collective::Placement* placement, const program::Mesh& placed_mesh,
                                             double network_share, const collective::Routing& routing = {}) {
  std::vector<Seconds> times;
  times.reserve(program.steps.size());
  for (const program::Step& step : program.steps) {
    if (!program::is_collective(step.op)) {
      const kernel::KernelTime time =
          step.op == program::Op::slice ? kernel::KernelTime{} : kernel::kernel_time(rates, program, step);
      times.push_back(time.estimate);
      continue;
    }
    program::AxisSet axes = 0;  // the program's axes by role on the placed mesh
    for (std::size_t i = 0; i < program.mesh.axes.size(); ++i)
      if (step.axes >> i & 1u)
        axes |= program::axis_bit(placed_mesh.find(program::name(*program.mesh.axes[i].role)).value_or(0));
    if (!placement) {
      times.emplace_back();
      continue;
    }
    collective::CollectiveGroup group = placement->group(axes);
    if (program.tensor(step.in[0]).find(model::LogicalDim::experts) >= 0) group.routing = routing;
    const collective::CollectiveCost<Plain> cost =
        collective::collective_cost(Plain{}, step.collective, collective::array_bytes(program, step), group);
    times.push_back(cost.bandwidth / network_share + cost.latency);
  }
  return times;
}

inline constexpr std::int64_t sequence = 2048;

}  // namespace assay::testing
