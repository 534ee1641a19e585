// The engine of a GPU by plain loops on the host: tasks run over the planned memory, in the formats of their arrays.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/kernels/attention.h"
#include "assay/engine/kernels/elements.h"
#include "assay/engine/kernels/expert.h"
#include "assay/engine/kernels/layer.h"
#include "assay/engine/program/adam.h"

namespace assay::testing {

class HostEngine {
 public:
  explicit HostEngine(const AssayCudaJob& job)
      : arrays_(job.arrays, job.arrays + job.array_count),
        tasks_(job.tasks, job.tasks + job.task_count),
        tokens_(job.tokens),
        targets_(job.targets),
        memory_(static_cast<std::size_t>(job.bytes)) {
    adam_ = {job.adam.rate, job.adam.first_decay, job.adam.second_decay, job.adam.epsilon, job.adam.weight_decay};
    if (job.ranks) ranks_ = *job.ranks;
    for (int i = 0; i < job.group_count; ++i) {
      groups_.emplace_back(job.groups[i].ranks, job.groups[i].ranks + job.groups[i].count);
      places_.push_back(job.groups[i].mine);
    }
    channels_.assign(job.channels, job.channels + job.channel_count);
    for (int i = 0; i < job.start_count; ++i) draw(job.starts[i]);
  }

  AssayCudaStep step(const int* tokens, const int* targets) {
    ++steps_;
    loss_ = squares_ = 0;
    for (const auto& [to, from] : {std::pair(tokens_, tokens), std::pair(targets_, targets)}) copy_in(to, from);
    for (const AssayCudaTask& task : tasks_) run(task);
    return {loss_, squares_, 1e-3};
  }

  void serve(const AssayCudaServing& step) {
    arrays_.assign(step.arrays, step.arrays + step.array_count);
    for (const AssayCudaArray& array : arrays_)
      ASSERT_LE(array.offset + array.elements * (array.type == assay_cuda_bf16 ? 2 : 4), std::ssize(memory_))
          << "more memory than was planned";
    copy_in(step.tokens, step.given_tokens);
    copy_in(step.places, step.given_places);
    for (int i = 0; i < step.task_count; ++i) run(step.tasks[i]);
    for (std::int64_t i = 0; step.logits >= 0 && i < size(step.logits); ++i)
      step.logit_values[i] = static_cast<float>(get(step.logits, i));
    for (std::int64_t i = 0; step.chosen >= 0 && i < size(step.chosen); ++i)
      step.chosen_values[i] = static_cast<int>(get(step.chosen, i));
  }

  void read(int array, float* values) const {
    for (std::int64_t i = 0; i < size(array); ++i) values[i] = static_cast<float>(get(array, i));
  }
  void write(int master, int weight, const float* values) {
    for (const int array : {master, weight})
      for (std::int64_t i = 0; array >= 0 && i < size(array); ++i) set(array, i, static_cast<double>(values[i]));
  }

 private:
  using Array = engine::Array;
  using Shape = engine::Shape;

  void draw(const AssayCudaStart& start) {
    for (std::int64_t i = 0; i < size(start.master < 0 ? start.weight : start.master); ++i) {
      std::int64_t whole = start.first, rest = i;
      for (int d = ASSAY_CUDA_DIMS; d-- > 0; rest /= start.sizes[d]) whole += rest % start.sizes[d] * start.strides[d];
      const auto drawn = engine::mixed(start.seed, static_cast<std::uint64_t>(whole));
      const double value = start.shift + start.factor * (std::ldexp(static_cast<double>(drawn >> 11), -52) - 1.0);
      for (const int array : {start.master, start.weight})
        if (array >= 0) set(array, i, value);
    }
  }

  std::int64_t size(int array) const { return arrays_[static_cast<std::size_t>(array)].elements; }
  double get(int array, std::int64_t i) const {
    const AssayCudaArray& from = arrays_[static_cast<std::size_t>(array)];
    const std::byte* at = memory_.data() + from.offset;
    if (from.type == assay_cuda_bf16) {
      std::uint16_t half = 0;
      std::memcpy(&half, at + 2 * i, 2);
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16));
    }
    std::uint32_t word = 0;
    std::memcpy(&word, at + 4 * i, 4);
    if (from.type == assay_cuda_int32) return static_cast<double>(static_cast<std::int32_t>(word));
    return static_cast<double>(std::bit_cast<float>(word));
  }
  void set(int array, std::int64_t i, double value) {
    const AssayCudaArray& to = arrays_[static_cast<std::size_t>(array)];
    std::byte* at = memory_.data() + to.offset;
    if (to.type == assay_cuda_bf16) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      const auto half = static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
      std::memcpy(at + 2 * i, &half, 2);
      return;
    }
    const auto word = to.type == assay_cuda_int32 ? static_cast<std::uint32_t>(static_cast<std::int32_t>(value))
                                                  : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    std::memcpy(at + 4 * i, &word, 4);
  }
  void copy_in(int array, const int* values) {
    for (std::int64_t i = 0; i < size(array); ++i) set(array, i, values[i]);
  }
  Array numbers(int array, Shape shape) const {
    Array out = engine::zeros(std::move(shape));
    EXPECT_EQ(engine::element_count(out.shape), size(array));
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = get(array, static_cast<std::int64_t>(i));
    return out;
  }
  Array flat(int array) const { return numbers(array, {size(array)}); }
  Array integers(int array) const { return numbers(array, {1, size(array)}); }
  void put(int array, const Array& values, bool adds = false) {
    ASSERT_EQ(std::ssize(values.values), size(array));
    for (std::int64_t i = 0; i < size(array); ++i)
      set(array, i, values.values[static_cast<std::size_t>(i)] + (adds ? get(array, i) : 0.0));
  }

  void run(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    const bool adds = (t.flags & assay_cuda_accumulates) != 0;
    switch (t.kernel) {
      case assay_cuda_product:
        return product(t);
      case assay_cuda_embed:
        return put(t.out[0], engine::embed(integers(t.in[0]), numbers(t.in[1], {size(t.in[1]) / s[1], s[1]}),
                                           {s[2], s[3], s[3]}));
      case assay_cuda_embed_grad:
        return put(t.out[0], engine::embed_grad(flat(t.in[0]), integers(t.in[1]), {s[2], s[3], s[3]}), adds);
      case assay_cuda_bias_grad:
        return put(t.out[0], engine::summed_up(numbers(t.in[0], {s[0], s[1]}), s[1], {0, 1}), adds);
      case assay_cuda_norm: {
        const engine::NormShape shape{s[1], s[1], false};
        const Array x = numbers(t.in[0], {s[0], s[1]}), scale = flat(t.in[1]);
        return put(t.out[0], engine::norm(x, &scale, nullptr, engine::norm_sums(x, shape), shape));
      }
      case assay_cuda_norm_grad: {
        const engine::NormShape shape{s[1], s[1], false};
        const Array dy = numbers(t.in[0], {s[0], s[1]}), x = numbers(t.in[1], {s[0], s[1]}), scale = flat(t.in[2]);
        const Array sums = engine::norm_sums(x, shape);
        const auto made =
            engine::norm_grad(dy, x, &scale, sums, engine::norm_grad_sums(dy, x, &scale, sums, shape), shape);
        put(t.out[0], made[0]);
        return put(t.out[1], made[1], adds);
      }
      case assay_cuda_rotate:
        return put(t.out[0], engine::rotate(numbers(t.in[0], {s[0] / s[1] / s[2], s[2], s[1], s[3]}), s[5], s[4],
                                            (t.flags & assay_cuda_backwards) != 0));
      case assay_cuda_attention:
      case assay_cuda_attention_grad:
        return attend(t);
      case assay_cuda_activate: {
        const Array gate = t.in[1] < 0 ? Array{} : flat(t.in[1]);
        return put(t.out[0], engine::activate(flat(t.in[0]), t.in[1] < 0 ? nullptr : &gate));
      }
      case assay_cuda_activate_grad: {
        const Array gate = flat(t.in[2]);
        const auto [d_up, d_gate] = engine::activate_grad(flat(t.in[0]), flat(t.in[1]), &gate);
        put(t.out[0], d_up);
        return put(t.out[1], d_gate);
      }
      case assay_cuda_add: {
        Array sum = flat(t.in[0]);
        for (int i = 1; i < ASSAY_CUDA_INPUTS && t.in[i] >= 0; ++i) engine::add(sum, flat(t.in[i]));
        return put(t.out[0], sum);
      }
      case assay_cuda_update:
        return update(t);
      default:
        return run_others(t);
    }
  }

  void run_others(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    switch (t.kernel) {
      case assay_cuda_loss_sums:
        return put(t.out[0],
                   engine::loss_sums(numbers(t.in[0], {1, s[0], s[1]}), integers(t.in[1]), {s[2], s[1], s[1]}));
      case assay_cuda_loss: {
        const Array losses = engine::loss(numbers(t.in[0], {1, s[0], 2}));
        for (double value : losses.values) loss_ += value;
        return put(t.out[0], losses);
      }
      case assay_cuda_loss_grad:
        return put(t.out[0], engine::loss_grad(numbers(t.in[0], {1, s[0], s[1]}), integers(t.in[1]),
                                               numbers(t.in[2], {1, s[0], 2}), {s[2], s[1], s[1]}, t.number));
      case assay_cuda_route:
        return put(t.out[0], engine::route(numbers(t.in[0], {1, s[0], s[1]}), s[2]));
      case assay_cuda_route_grad:
        return put(t.out[0],
                   engine::route_grad(numbers(t.in[0], {1, s[0], s[1]}), numbers(t.in[1], {1, s[0], s[1]}), s[2]));
      case assay_cuda_slots:
        return slots(t);
      case assay_cuda_dispatch:
      case assay_cuda_dispatch_grad:
      case assay_cuda_combine:
      case assay_cuda_combine_grad:
        return move_tokens(t);
      case assay_cuda_cache_write:
        for (std::int64_t i = 0; i < size(t.in[0]); ++i) {
          const std::int64_t row = i / s[2], place = static_cast<std::int64_t>(get(t.in[1], row / s[1]));
          set(t.out[0], (place * s[3] + s[4] + row % s[1]) * s[2] + i % s[2], get(t.in[0], i));
        }
        return;
      case assay_cuda_cache_attention:
        return attend_cache(t);
      case assay_cuda_last_tokens:
        for (std::int64_t i = 0; i < size(t.out[0]); ++i)
          set(t.out[0], i, get(t.in[0], ((i / s[2] + 1) * s[1] - 1 - s[3]) * s[2] + i % s[2]));
        return;
      case assay_cuda_slice:
        for (std::int64_t i = 0; i < size(t.out[0]); ++i)
          set(t.out[0], i, get(t.in[0], (i / s[1] * s[2] + s[3]) * s[1] + i % s[1]));
        return;
      case assay_cuda_all_gather:
      case assay_cuda_reduce_scatter:
      case assay_cuda_all_reduce:
      case assay_cuda_all_to_all:
      case assay_cuda_shift:
        return exchange(t);
      case assay_cuda_send:
        return hand_over(t.kernel, t.in[0], s[1]);
      case assay_cuda_receive:
        return hand_over(t.kernel, t.out[0], s[1]);
      case assay_cuda_arrived:
        return;
      case assay_cuda_join:
        return join(t);
      case assay_cuda_clear:
        return put(t.out[0], engine::zeros({size(t.out[0])}));
      case assay_cuda_sample:
      case assay_cuda_best_part:
        return choose(t);
      default:
        FAIL() << "an unknown kernel";
    }
  }

  void choose(const AssayCudaTask& t) {
    const auto [rows, count, first] = std::array{t.sizes[0], t.sizes[1], t.sizes[2]};
    const bool of_parts = t.kernel == assay_cuda_best_part, partial = (t.flags & assay_cuda_partial) != 0;
    const auto score = [&, all = count](long long row, long long i) {
      return get(t.in[0], (row * all + i) * (of_parts ? 2 : 1));
    };
    for (long long row = 0; row < rows; ++row) {
      long long best = 0;
      for (long long i = 0; i < count; ++i)
        if (score(row, i) > score(row, best)) best = i;
      const double token = of_parts ? get(t.in[0], (row * count + best) * 2 + 1) : static_cast<double>(first + best);
      if (partial) set(t.out[0], 2 * row, score(row, best));
      set(t.out[0], partial ? 2 * row + 1 : row, token);
    }
  }

  void product(const AssayCudaTask& t) {
    const auto [m, n, k, matrices] = std::array{t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3]};
    const bool turn_a = (t.flags & assay_cuda_transposed_a) != 0, turn_b = (t.flags & assay_cuda_transposed_b) != 0;
    Array out = t.in[2] < 0 ? engine::zeros({matrices * m * n}) : numbers(t.in[2], {matrices * m * n});
    const Array left = flat(t.in[0]), right = flat(t.in[1]);
    for (long long matrix = 0; matrix < matrices; ++matrix)
      for (long long row = 0; row < m; ++row)
        for (long long column = 0; column < n; ++column) {
          const double* a = left.values.data() + matrix * m * k + (turn_a ? row : row * k);
          const double* b = right.values.data() + matrix * n * k + (turn_b ? column * k : column);
          double& sum = out.values[static_cast<std::size_t>((matrix * m + row) * n + column)];
          for (long long i = 0; i < k; ++i) sum += a[turn_a ? i * m : i] * b[turn_b ? i : i * n];
        }
    for (long long i = 0; t.in[3] >= 0 && i < m * n; ++i)
      out.values[static_cast<std::size_t>(i)] += get(t.in[3], i % n);
    put(t.out[0], out);
  }

  void attend(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    engine::AttentionPlace place;
    place.key_count = s[3];
    place.heads_per_kv_head = s[1] / s[2];
    place.value_dim = s[4];
    place.scale = t.number;
    place.causal = (t.flags & assay_cuda_unmasked) == 0;
    const Shape queries{s[0], s[3], s[1], s[4]}, keys{s[0], s[3], s[2], s[4]}, rows{s[0], s[3], s[1]};
    if (t.kernel == assay_cuda_attention) {
      const Array v = numbers(t.in[2], keys);
      const auto [o, rest] = engine::attention(numbers(t.in[0], queries), numbers(t.in[1], keys), &v, nullptr, place);
      put(t.out[0], o);
      return put(t.out[1], rest);
    }
    const Array q = numbers(t.in[1], queries), k = numbers(t.in[2], keys), v = numbers(t.in[3], keys);
    const Array o = numbers(t.in[4], queries), rest = numbers(t.in[5], rows);
    const engine::AttentionGradients made =
        engine::attention_grad(numbers(t.in[0], queries), {q, k, v, o, rest}, place);
    put(t.out[0], made.dq);
    put(t.out[1], made.dk);
    put(t.out[2], made.dv);
  }

  /// One sequence after the other, on the part of the cache that it has filled.
  void attend_cache(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    engine::AttentionPlace place;
    place.first_query = s[5] - s[3];
    place.key_count = s[5];
    place.heads_per_kv_head = s[1] / s[2];
    place.value_dim = s[4];
    place.scale = t.number;
    const std::int64_t width = s[2] * s[4], mine = s[3] * s[1] * s[4];
    for (std::int64_t b = 0; b < s[0]; ++b) {
      Array q = engine::zeros({1, s[3], s[1], s[4]});
      std::array<Array, 2> cached{engine::zeros({1, s[5], s[2], s[4]}), engine::zeros({1, s[5], s[2], s[4]})};
      for (std::int64_t i = 0; i < mine; ++i) q.values[static_cast<std::size_t>(i)] = get(t.in[0], b * mine + i);
      const auto first = static_cast<std::int64_t>(get(t.in[3], b)) * s[6] * width;
      for (std::size_t which = 0; which < 2; ++which)
        for (std::int64_t i = 0; i < s[5] * width; ++i)
          cached[which].values[static_cast<std::size_t>(i)] = get(t.in[1 + which], first + i);
      const auto [o, rest] = engine::attention(q, cached[0], &cached[1], nullptr, place);
      for (std::int64_t i = 0; i < mine; ++i) set(t.out[0], b * mine + i, o.values[static_cast<std::size_t>(i)]);
    }
  }

  /// Statistics are [batch, tokens, heads] here.
  void join(const AssayCudaTask& t) {
    for (std::int64_t i = 0; i < size(t.out[0]); ++i) {
      const std::int64_t row = i / t.sizes[3];
      const double a = std::exp(get(t.in[1], row)), b = std::exp(get(t.in[3], row));
      set(t.out[0], i, (get(t.in[0], i) * a + get(t.in[2], i) * b) / (a + b));
      set(t.out[1], row, std::log(a + b));
    }
  }

  void hand_over(int kind, int array, long long channel) {
    const AssayCudaChannel& way = channels_[static_cast<std::size_t>(channel)];
    const int ranks[2] = {way.from, way.to};
    std::vector<float> values(static_cast<std::size_t>(size(array)));
    for (std::int64_t i = 0; i < size(array); ++i)
      values[static_cast<std::size_t>(i)] = static_cast<float>(get(array, i));
    const AssayCudaExchange what{kind,          ranks,         2,           kind == assay_cuda_send ? 0 : 1,
                                 values.data(), values.data(), size(array), assay_cuda_fp32};
    ranks_.exchange(ranks_.context, &what);
    for (std::int64_t i = 0; kind == assay_cuda_receive && i < size(array); ++i)
      set(array, i, static_cast<double>(values[static_cast<std::size_t>(i)]));
  }

  /// Parts one after the other, as the processes exchange them, in fp32.
  void exchange(const AssayCudaTask& t) {
    const auto* s = t.sizes;
    const std::vector<int>& group = groups_[static_cast<std::size_t>(s[2])];
    const std::int64_t count = std::ssize(group), part = s[0] * s[1];
    const bool cuts = t.kernel == assay_cuda_reduce_scatter || t.kernel == assay_cuda_all_to_all;
    const bool joins = t.kernel == assay_cuda_all_gather || t.kernel == assay_cuda_all_to_all;
    const auto apart = [&](std::int64_t i, std::int64_t outer, std::int64_t inner) {
      return (i / inner % count * outer + i / inner / count) * inner + i % inner;
    };
    std::vector<float> from(static_cast<std::size_t>(size(t.in[0]))), to(static_cast<std::size_t>(size(t.out[0])));
    for (std::int64_t i = 0; i < size(t.in[0]); ++i)
      from[static_cast<std::size_t>(cuts ? apart(i, s[0], s[1]) : i)] = static_cast<float>(get(t.in[0], i));
    const AssayCudaExchange what{
        t.kernel,  group.data(), static_cast<int>(count), places_[static_cast<std::size_t>(s[2])], from.data(),
        to.data(), part,         assay_cuda_fp32};
    ranks_.exchange(ranks_.context, &what);
    const bool exchanges = t.kernel == assay_cuda_all_to_all;
    for (std::int64_t i = 0; i < size(t.out[0]); ++i)
      set(t.out[0], i,
          static_cast<double>(
              to[static_cast<std::size_t>(joins ? apart(i, exchanges ? s[3] : s[0], exchanges ? s[4] : s[1]) : i)]));
  }

  void slots(const AssayCudaTask& t) {
    const auto [rows, experts, most, first, held] =
        std::array{t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[4], t.sizes[5]};
    for (long long e = 0; e < experts; ++e)
      for (long long row = 0, next = 0; row < rows; ++row) {
        const bool is_here = e >= first && e < first + held;
        const bool goes = is_here && get(t.in[0], row * experts + e) > 0 && next < most;
        set(t.out[0], row * experts + e, goes ? static_cast<double>((e - first) * most + next) : -1.0);
        if (goes) ++next;
      }
  }

  void move_tokens(const AssayCudaTask& t) {
    const auto [rows, experts, most, width] = std::array{t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3]};
    const bool weighs = t.kernel == assay_cuda_combine || t.kernel == assay_cuda_combine_grad;
    const bool leaves = t.kernel == assay_cuda_dispatch || t.kernel == assay_cuda_combine_grad;
    const int gates = t.kernel == assay_cuda_combine ? t.in[1] : t.in[2],
              slot_of = weighs ? t.in[t.kernel == assay_cuda_combine ? 2 : 3] : t.in[1];
    Array to = engine::zeros({leaves ? t.sizes[5] * most * width : rows * width});
    Array d_gates = engine::zeros({rows * experts});
    for (long long row = 0; row < rows; ++row)
      for (long long e = 0; e < experts; ++e) {
        const auto slot = static_cast<long long>(get(slot_of, row * experts + e));
        const double gate = weighs ? get(gates, row * experts + e) : 1.0;
        for (long long i = 0; slot >= 0 && i < width; ++i) {
          const double moved = gate * get(t.in[0], leaves ? row * width + i : slot * width + i);
          to.values[static_cast<std::size_t>(leaves ? slot * width + i : row * width + i)] += moved;
          if (t.kernel == assay_cuda_combine_grad)
            d_gates.values[static_cast<std::size_t>(row * experts + e)] +=
                get(t.in[0], row * width + i) * get(t.in[1], slot * width + i);
        }
      }
    put(t.out[0], to);
    if (t.kernel == assay_cuda_combine_grad) put(t.out[1], d_gates);
  }

  void update(const AssayCudaTask& t) {
    const Shape shape{t.sizes[0]};
    const Array gradient = numbers(t.in[0], shape);
    Array weight = numbers(t.in[2], shape), first = numbers(t.in[3], shape), second = numbers(t.in[4], shape);
    engine::adam_step(adam_, steps_, t.flags & assay_cuda_decays, gradient, weight, first, second);
    for (double value : gradient.values) squares_ += t.number * value * value;
    put(t.in[1], weight);
    put(t.in[2], weight);
    put(t.in[3], first);
    put(t.in[4], second);
  }

  std::vector<AssayCudaArray> arrays_;
  std::vector<AssayCudaTask> tasks_;
  engine::AdamW adam_;
  int tokens_, targets_;
  std::vector<std::byte> memory_;
  AssayCudaRanks ranks_{};
  std::vector<std::vector<int>> groups_;
  std::vector<int> places_;
  std::vector<AssayCudaChannel> channels_;
  std::int64_t steps_ = 0;
  double loss_ = 0, squares_ = 0;
};

/// The same as a table of functions, as a library has it.
inline const AssayCuda& host_engine() {
  static const AssayCuda table{
      ASSAY_CUDA_VERSION,
      [](char*) -> const char* { return nullptr; },
      [](const AssayCudaJob* job, void** session) -> const char* {
        *session = new HostEngine(*job);
        return nullptr;
      },
      [](void* session, const int* tokens, const int* targets, AssayCudaStep* result, double*) -> const char* {
        *result = static_cast<HostEngine*>(session)->step(tokens, targets);
        return nullptr;
      },
      [](void* session, const AssayCudaServing* step, double* seconds, double*) -> const char* {
        static_cast<HostEngine*>(session)->serve(*step);
        *seconds = 1e-3;
        return nullptr;
      },
      [](void* session, int array, float* values) -> const char* {
        static_cast<HostEngine*>(session)->read(array, values);
        return nullptr;
      },
      [](void* session, int master, int weight, const float* values) -> const char* {
        static_cast<HostEngine*>(session)->write(master, weight, values);
        return nullptr;
      },
      [](void*) -> const char* { return "host"; },
      [](void*) -> const char* { return "host memory"; },
      [](void* session) { delete static_cast<HostEngine*>(session); }};
  return table;
}

}  // namespace assay::testing
