// The tasks of a program, run by plain loops over the planned memory: what the GPU is told to do is what virtual
// devices do.
#include "assay/execute/cuda/task_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "assay/execute/cuda/cuda_session.h"
#include "assay/execute/cuda/memory_plan.h"
#include "assay/execute/kernels/attention.h"
#include "assay/testing/small_programs.h"

namespace assay::execute {
namespace {

using namespace testing::small;

/// A llama: grouped heads, gated blocks, a last norm; or with the biases of a qwen.
model::Transformer llama(bool tied, bool biases = false) {
  model::Transformer m;
  m.id = "llama";
  m.d_model = 16;
  m.vocabulary = 24;
  m.tied = tied;
  model::Layer layer;
  layer.attention.emplace();
  layer.attention->heads = 4;
  layer.attention->kv_heads = 2;
  layer.attention->head_dim = layer.attention->value_dim = 8;
  layer.attention->q_bias = layer.attention->k_bias = layer.attention->v_bias = biases;
  layer.feed_forward.emplace();
  layer.feed_forward->width = 24;
  for (int i = 0; i < 3; ++i) m.decoder.add(layer);
  return m;
}

program::Program program_of(const model::Transformer& m, Dtype dtype, std::int64_t microbatches,
                            lower::Recompute recompute = {}) {
  lower::TrainingPlan plan = small_plan(m, microbatches);
  plan.formats = {dtype, dtype, dtype, dtype, dtype};
  plan.recompute = recompute;
  return lower::lower_training(m, {}, {}, plan);
}

/// Runs tasks in fp32 on the host. All arrays lie where the plan puts them.
class HostEngine {
 public:
  HostEngine(const TaskList& list, AdamW adam)
      : list_(list), adam_(adam), memory_(static_cast<std::size_t>(list.bytes)) {
    for (const AssayCudaStart& start : list.starts)
      for (std::int64_t i = 0; i < size(start.master); ++i) {
        const double uniform =
            std::ldexp(static_cast<double>(mixed(start.seed, static_cast<std::uint64_t>(i)) >> 11), -52) - 1.0;
        at(start.master)[i] = static_cast<float>(start.shift + start.factor * uniform);
      }
  }

  double step(const Array<double>& tokens, const Array<double>& targets) {
    ++steps_;
    loss_ = 0;
    for (const auto& [to, from] : {std::pair(list_.tokens, &tokens), std::pair(list_.targets, &targets)})
      for (std::size_t i = 0; i < from->values.size(); ++i) whole(to)[i] = static_cast<int>(from->values[i]);
    for (const AssayCudaTask& task : list_.tasks) run(task);
    return loss_ / static_cast<double>(tokens.values.size());
  }

 private:
  std::int64_t size(int array) const { return list_.arrays[static_cast<std::size_t>(array)].elements; }
  float* at(int array) {
    return reinterpret_cast<float*>(
        &memory_[static_cast<std::size_t>(list_.arrays[static_cast<std::size_t>(array)].offset)]);
  }
  int* whole(int array) { return reinterpret_cast<int*>(at(array)); }
  Numbers numbers(int array, Shape shape) {
    Numbers out = zeros<double>(std::move(shape));
    EXPECT_EQ(element_count(out.shape), size(array));
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = static_cast<double>(at(array)[i]);
    return out;
  }
  Numbers integers(int array) {
    Numbers out = zeros<double>({1, size(array)});
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = static_cast<double>(whole(array)[i]);
    return out;
  }
  void put(int array, const Numbers& values, bool adds = false) {
    ASSERT_EQ(std::ssize(values.values), size(array));
    for (std::size_t i = 0; i < values.values.size(); ++i)
      at(array)[i] = static_cast<float>(values.values[i]) + (adds ? at(array)[i] : 0.0F);
  }

  void run(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    const auto flat = [&](int array) { return numbers(array, {size(array)}); };
    const bool adds = (t.flags & assay_cuda_accumulates) != 0;
    switch (t.kernel) {
      case assay_cuda_product:
        return product(t);
      case assay_cuda_embed:
        return put(t.out[0], embed(integers(t.in[0]), numbers(t.in[1], {size(t.in[1]) / s[1], s[1]}),
                                   {0, size(t.in[1]) / s[1], size(t.in[1]) / s[1]}));
      case assay_cuda_embed_grad:
        return put(t.out[0],
                   embed_grad(flat(t.in[0]), integers(t.in[1]), {0, size(t.out[0]) / s[1], size(t.out[0]) / s[1]}),
                   adds);
      case assay_cuda_bias_grad:
        return put(t.out[0], summed_up(numbers(t.in[0], {s[0], s[1]}), s[1], {0, 1}), adds);
      case assay_cuda_norm: {
        const NormShape shape{s[1], s[1], false};
        const Numbers x = numbers(t.in[0], {s[0], s[1]}), scale = flat(t.in[1]);
        return put(t.out[0], norm(x, &scale, nullptr, norm_sums(x, shape), shape));
      }
      case assay_cuda_norm_grad: {
        const NormShape shape{s[1], s[1], false};
        const Numbers dy = numbers(t.in[0], {s[0], s[1]}), x = numbers(t.in[1], {s[0], s[1]}), scale = flat(t.in[2]);
        const Numbers sums = norm_sums(x, shape);
        const auto made = norm_grad(dy, x, &scale, sums, norm_grad_sums(dy, x, &scale, sums, shape), shape);
        put(t.out[0], made[0]);
        return put(t.out[1], made[1], adds);
      }
      case assay_cuda_rotate:
        return put(t.out[0], rotate(numbers(t.in[0], {s[0] / s[1] / s[2], s[2], s[1], s[3]}), 0, s[4],
                                    (t.flags & assay_cuda_backwards) != 0));
      case assay_cuda_attention:
      case assay_cuda_attention_grad:
        return attend(t);
      case assay_cuda_activate: {
        const Numbers gate = t.in[1] < 0 ? Numbers{} : flat(t.in[1]);
        return put(t.out[0], activate(flat(t.in[0]), t.in[1] < 0 ? nullptr : &gate));
      }
      case assay_cuda_activate_grad: {
        const Numbers gate = flat(t.in[2]);
        const auto [d_up, d_gate] = activate_grad(flat(t.in[0]), flat(t.in[1]), &gate);
        put(t.out[0], d_up);
        return put(t.out[1], d_gate);
      }
      case assay_cuda_add: {
        Numbers sum = flat(t.in[0]);
        for (int i = 1; i < ASSAY_CUDA_INPUTS && t.in[i] >= 0; ++i) execute::add(sum, flat(t.in[i]));
        return put(t.out[0], sum);
      }
      case assay_cuda_loss_sums:
        return put(t.out[0], loss_sums(numbers(t.in[0], {1, s[0], s[1]}), integers(t.in[1]), {0, s[1], s[1]}));
      case assay_cuda_loss: {
        const Numbers losses = loss(numbers(t.in[0], {1, s[0], 2}));
        for (double value : losses.values) loss_ += value;
        return put(t.out[0], losses);
      }
      case assay_cuda_loss_grad:
        return put(t.out[0], loss_grad(numbers(t.in[0], {1, s[0], s[1]}), integers(t.in[1]),
                                       numbers(t.in[2], {1, s[0], 2}), {0, s[1], s[1]}, t.number));
      case assay_cuda_update:
        return update(t);
      default:
        FAIL() << "an unknown kernel";
    }
  }

  void product(const AssayCudaTask& t) {
    const auto [m, n, k] = std::array{t.sizes[0], t.sizes[1], t.sizes[2]};
    const bool turn_a = (t.flags & assay_cuda_transposed_a) != 0, turn_b = (t.flags & assay_cuda_transposed_b) != 0;
    Numbers out = t.in[2] < 0 ? zeros<double>({m * n}) : numbers(t.in[2], {m * n});
    for (long long row = 0; row < m; ++row)
      for (long long column = 0; column < n; ++column)
        for (long long i = 0; i < k; ++i)
          out.values[static_cast<std::size_t>(row * n + column)] +=
              static_cast<double>(at(t.in[0])[turn_a ? i * m + row : row * k + i]) *
              static_cast<double>(at(t.in[1])[turn_b ? column * k + i : i * n + column]);
    for (long long i = 0; t.in[3] >= 0 && i < m * n; ++i)
      out.values[static_cast<std::size_t>(i)] += static_cast<double>(at(t.in[3])[i % n]);
    put(t.out[0], out);
  }

  void attend(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    AttentionPlace place;
    place.key_count = s[3];
    place.heads_per_kv_head = s[1] / s[2];
    place.value_dim = s[4];
    place.scale = t.number;
    const Shape queries{s[0], s[3], s[1], s[4]}, keys{s[0], s[3], s[2], s[4]}, rows{s[0], s[3], s[1]};
    if (t.kernel == assay_cuda_attention) {
      const Numbers v = numbers(t.in[2], keys);
      const auto [o, rest] = attention(numbers(t.in[0], queries), numbers(t.in[1], keys), &v, nullptr, place);
      put(t.out[0], o);
      return put(t.out[1], rest);
    }
    const Numbers q = numbers(t.in[1], queries), k = numbers(t.in[2], keys), v = numbers(t.in[3], keys);
    const Numbers o = numbers(t.in[4], queries), rest = numbers(t.in[5], rows);
    const AttentionGradients made = attention_grad(numbers(t.in[0], queries), {q, k, v, o, rest}, place);
    put(t.out[0], made.dq);
    put(t.out[1], made.dk);
    put(t.out[2], made.dv);
  }

  void update(const AssayCudaTask& t) {
    const Shape shape = t.flags & assay_cuda_decays ? Shape{1, t.sizes[0]} : Shape{t.sizes[0]};
    Numbers weight = numbers(t.in[2], shape), first = numbers(t.in[3], shape), second = numbers(t.in[4], shape);
    adam_step(adam_, steps_, numbers(t.in[0], shape), weight, first, second);
    put(t.in[2], weight);
    put(t.in[3], first);
    put(t.in[4], second);
  }

  const TaskList& list_;
  AdamW adam_;
  std::vector<std::byte> memory_;
  std::int64_t steps_ = 0;
  double loss_ = 0;
};

void expect_same_losses(const model::Transformer& m, std::int64_t microbatches, lower::Recompute recompute = {}) {
  const program::Program narrow = program_of(m, Dtype::fp32, microbatches, recompute);
  const program::Program wide = program_of(m, Dtype::fp64, microbatches, recompute);
  const auto list = task_list(narrow, m, 5);
  ASSERT_TRUE(list) << list.error().what;
  HostEngine engine(*list, AdamW{});
  TrainingSession session(wide, m, initial_weights(wide, m, 5), {.adam = AdamW{}});
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Array<double> tokens = random_tokens(length, m.vocabulary, 2 * i),
                        targets = random_tokens(length, m.vocabulary, 2 * i + 1);
    EXPECT_NEAR(engine.step(tokens, targets), session.step(tokens, targets).loss, 1e-4) << i;
  }
}

TEST(TaskList, HasTheLossesOfVirtualDevices) {
  expect_same_losses(llama(false), 1);
  expect_same_losses(llama(true), 1);
  expect_same_losses(llama(false, true), 1);
}

TEST(TaskList, AddsUpGradientsOfMicrobatches) {
  expect_same_losses(llama(false), 2);
  expect_same_losses(llama(true), 4);
  expect_same_losses(llama(false, true), 2);
}

TEST(TaskList, RecomputesWhatTheProgramSays) { expect_same_losses(llama(false), 1, lower::Recompute::full()); }

TEST(TaskList, RunsEveryStepOfTheProgramForEveryLayer) {
  const model::Transformer m = llama(false);
  const program::Program program = program_of(m, Dtype::fp32, 2);
  const auto list = task_list(program, m, 1);
  ASSERT_TRUE(list);
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      EXPECT_EQ(list->runs[static_cast<std::size_t>(i)], block.layers * (step.once ? 1 : 2))
          << program::step_text(program, step);
    }
}

TEST(TaskList, NamesTheFirstStepWithoutAKernel) {
  model::Transformer m = llama(false);
  m.decoder.kinds.front().attention->window = 4;
  const auto list = task_list(program_of(m, Dtype::fp32, 1), m, 1);
  ASSERT_FALSE(list);
  EXPECT_NE(list.error().what.find(
                "attention that is not causal over the whole sequence has no kernel on a GPU yet: O[B, S, N, H]"),
            std::string::npos)
      << list.error().what;
}

TEST(MemoryPlan, ArraysShareBytesOnlyOneAfterTheOther) {
  std::vector<Lifetime> arrays;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto first = static_cast<std::int64_t>(mixed(1, i) % 50);
    arrays.push_back(
        {static_cast<std::int64_t>(mixed(2, i) % 5000), first, first + static_cast<std::int64_t>(mixed(3, i) % 9)});
  }
  const MemoryPlan plan = plan_memory(arrays);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    all += arrays[i].bytes;
    EXPECT_EQ(plan.offsets[i] % MemoryPlan::alignment, 0);
    EXPECT_LE(plan.offsets[i] + arrays[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool at_once = arrays[i].first <= arrays[j].last && arrays[j].first <= arrays[i].last;
      const bool touch =
          plan.offsets[i] < plan.offsets[j] + arrays[j].bytes && plan.offsets[j] < plan.offsets[i] + arrays[i].bytes;
      EXPECT_FALSE(at_once && touch) << i << " and " << j;
    }
  }
  EXPECT_LT(plan.bytes, all / 2);
}

}  // namespace
}  // namespace assay::execute
