// Reads a serving profile off the programs of one step.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/index.h"
#include "assay/model/accounting.h"
#include "assay/model/layer_parts.h"
#include "assay/predict/clock/stage_split.h"
#include "assay/predict/serving/fullest_moment.h"
#include "assay/predict/serving/fused_runs.h"
#include "assay/predict/serving/profile.h"

namespace assay::serving {
namespace {

/// Bytes on one device of a cache that holds `keys` tokens. Keys and values of an encoder are computed in the first
/// step and are not a cache yet: their tokens are along the sequence dimension.
template <class N>
NumberOf<N, Bytes> cache_bytes_at(const N& num, const program::Program& program, program::ProgramTensor tensor,
                                  std::int64_t keys, Dtype format) {
  const int along = tensor.find(tensor.is_given ? model::LogicalDim::context : model::LogicalDim::sequence);
  if (along >= 0) tensor.dims.set(at(along), {tensor.dims[at(along)].dim, keys});
  if (!tensor.is_given) tensor.store_as(format);
  return num.named(tensor.name, program::local_bytes(num, program, tensor));
}

/// Attention over what the encoder made.
bool is_cross(const program::Program& program, const program::Step& step) {
  return step.op == program::Op::attention && step.detail >= 0 && program.attentions[at(step.detail)].cross;
}

template <class T>
void add_or_count(std::vector<T>& list, const T& item, bool (*same)(const T&, const T&)) {
  for (T& known : list)
    if (same(known, item)) {
      known.count += item.count;
      return;
    }
  list.push_back(item);
}

/// The line of sequences that are shares of a batch.
template <class Q>
StraightLine<Q> mean_line(const std::vector<StraightLine<Q>>& lines, const std::vector<double>& shares) {
  StraightLine<Q> mean = lines.front();
  if (std::all_of(lines.begin(), lines.end(), [&](const auto& line) { return line == mean; })) return mean;
  mean = {};
  double all = 0.0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double share = shares.empty() ? 1.0 : shares[i];
    mean.fixed += share * lines[i].fixed;
    mean.moving += share * lines[i].moving;
    all += share;
  }
  return {mean.fixed / all, mean.moving / all};
}

/// One kernel over sequences with different contexts: its work is the sum over all of them.
ServedKernel mean_kernel(const std::vector<ServedKernel>& kernels, const std::vector<double>& shares) {
  ServedKernel mean = kernels.front();
  const auto set = [&]<class Q>(StraightLine<Q> ServedKernel::*line) {
    std::vector<StraightLine<Q>> lines;
    for (const ServedKernel& kernel : kernels) lines.push_back(kernel.*line);
    mean.*line = mean_line(lines, shares);
  };
  set(&ServedKernel::flops);
  set(&ServedKernel::bytes);
  for (const auto line : {&ServedKernel::batch, &ServedKernel::m, &ServedKernel::items, &ServedKernel::met}) set(line);
  return mean;
}

bool same_kernel(const ServedKernel& a, const ServedKernel& b) { return a.same_work(b); }
bool same_collective(const ServedCollective& a, const ServedCollective& b) { return a.same(b); }

/// Products that read the same tensor become one, with the columns of all: queries, keys and values, or gate and up.
void join_products(const std::vector<const program::Step*>& steps, std::vector<ServedKernel>& kernels) {
  std::vector<ServedKernel> joined;
  std::vector<int> read;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::size_t j = 0;
    while (j < joined.size() && !(read[j] == steps[i]->in[0] && joined[j].joins(kernels[i]))) ++j;
    if (j < joined.size()) {
      joined[j].join(kernels[i]);
    } else {
      joined.push_back(kernels[i]);
      read.push_back(steps[i]->in[0]);
    }
  }
  kernels = std::move(joined);
}

/// Kernels that several kinds of layers have in common are priced once, with the first of them. Weights of experts stay
/// where they are: which of them are read depends on the block.
void share_kernels(ServingProfile::Blocks& blocks) {
  for (std::size_t b = 1; b < blocks.size(); ++b) {
    ServingProfile::Block& later = blocks[b];
    const auto taken = [&](const ServedKernel& kernel) {
      if (kernel.expert_bytes > Bytes() || kernel.narrowed_experts > Bytes()) return false;
      for (std::size_t e = 0; e < b; ++e) {
        ServingProfile::Block& earlier = blocks[e];
        if (earlier.last_tokens != later.last_tokens) continue;
        for (ServedKernel& known : earlier.kernels)
          if (known.same_work(kernel)) {
            known.count += kernel.count * later.layers / earlier.layers;
            return true;
          }
      }
      return false;
    };
    later.kernels.erase(std::remove_if(later.kernels.begin(), later.kernels.end(), taken), later.kernels.end());
  }
}

/// Bytes of the weights that layers share (`shared`), or of all others.
template <class N>
NumberOf<N, Bytes> weight_bytes(const N& num, const std::vector<model::Weight>& weights, const lower::Formats& formats,
                                const program::Program& program, const lower::ShardingRules& rules, bool shared) {
  NumberOf<N, Bytes> sum{};
  for (const model::Weight& weight : weights) {
    if (weight.shared != shared) continue;
    const auto elements = lower::local_elements(num, rules, program, program::TensorClass::weight, weight);
    if constexpr (N::traced)
      sum = sum + num.named(weight.name, elements * num.given("bytes of an element", storage(formats.of(weight), 1.0),
                                                              name(formats.of(weight))));
    else
      sum += storage(formats.of(weight), elements);
  }
  return sum;
}

/// Weights outside the layers that a stage holds: a tied head is a second copy of the embedding.
std::vector<model::Weight> stage_ends(const model::Transformer& model, bool first, bool last) {
  std::vector<model::Weight> all = model::outer_weights(model);
  std::erase_if(all, [&](const model::Weight& weight) {
    if (weight.part == model::Part::positions) return !first;
    if (weight.part == model::Part::embedding) return !first && !(model.tied && last && weight.name == "embedding");
    return !last;
  });
  return all;
}

/// Lowers a step for some sequences and for twice as many, and reads the profile off both programs.
class ProfileMaker {
 public:
  ProfileMaker(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
               const ServingKeys& keys)
      : setup_(setup),
        strategy_(strategy),
        keys_(keys),
        model_(*setup.model),
        parallelism_(strategy.parallelism()),
        stage_(lower::serving_stage(parallelism_, strategy.scheme, model_)),
        least_(serving_unit(strategy) * whole_slots(model_)),
        lowered_(static_cast<double>(least_)),
        num_(setup.explain) {
    profile_.queries = static_cast<double>(queries);
    profile_.unit = static_cast<double>(serving_unit(strategy));
    work_.queries = queries;
    work_.cached = true;
    work_.expert_load = setup.expert_load;
  }

  ServingProfile make() {
    std::vector<Pair> programs;
    programs.reserve(keys_.seen.size());
    for (std::int64_t seen : keys_.seen) {
      work_.keys = std::max(work_.queries, seen - keys_.source);
      work_.source = keys_.source > 0 ? keys_.source : model_.encoder ? seen : 0;
      programs.push_back(lower_pair(lower::lower_serving));
    }
    const bool encodes = keys_.source > 0 && work_.keys == work_.queries;
    profile_.prompts = work_.queries > 1 || encodes;
    if (encodes) add_blocks({lower_pair(lower::lower_encoder)}, *model_.encoder, static_cast<double>(keys_.source));
    add_blocks(programs, model_.decoder, profile_.queries);
    count_launches();
    parts_.together = strategy_.tensor * parallelism_.fsdp * parallelism_.expert > 1;
    share_kernels(blocks_);
    profile_.blocks = std::make_shared<const ServingProfile::Blocks>(std::move(blocks_));
    const program::Program& one = programs.front().first;
    add_weights(one);
    add_caches(one);
    add_states(one, encodes);
    profile_.parts = std::make_shared<const StageParts>(std::move(parts_));
    const clock::StageSplit split = clock::split_stages(model_, parallelism_.pipeline);
    const FullestStages fullest = set_stages(split, parallelism_.pipeline, profile_);
    if (num_) {
      origin_.weights = derive_weights(one, split.parts[fullest.weights]);
      if (keys_.reserved.size() == 1) origin_.cache = derive_cache(one, split.parts[fullest.caches]);
      profile_.origin = std::make_shared<const ProfileOrigin>(std::move(origin_));
    }
    return std::move(profile_);
  }

 private:
  /// A step lowered for the fewest sequences whose slots come out whole, and for twice as many.
  using Pair = std::pair<program::Program, program::Program>;

  template <class Lower>
  Pair lower_pair(Lower lower) {
    work_.sequences = least_;
    program::Program once = lower(model_, stage_.mesh, stage_.rules, work_, setup_.formats);
    work_.sequences = 2 * least_;
    return Pair(std::move(once), lower(model_, stage_.mesh, stage_.rules, work_, setup_.formats));
  }

  /// The blocks of a stack; `pairs` has one for each context.
  void add_blocks(const std::vector<Pair>& pairs, const model::LayerStack& stack, double tokens) {
    const program::Program& one = pairs.front().first;
    std::vector<int> at_peak;
    FullestMoment fullest(one, num_ ? &at_peak : nullptr);
    const auto peak = [&](const program::Block& block, bool gathered, double over, Bytes& most,
                          NumberOf<Traced, Bytes>& origin) {
      const Bytes held = fullest(block, gathered) / over;
      if (!(held > most)) return;
      most = held;
      if (num_) origin = derive_peak(one, at_peak, over);
    };
    for (const program::Block& block : one.blocks) {
      ServingProfile::Block out;
      out.name = block.name;
      out.kind = block.kind;
      out.layers = static_cast<double>(block.layers);
      out.tokens = tokens;
      const model::Layer* layer = block.kind >= 0 ? &stack.kinds[at(block.kind)] : nullptr;
      out.last_tokens = !layer && &stack == &model_.decoder && block.last == one.blocks.back().last;
      if (layer && layer->feed_forward && layer->feed_forward->experts > 0) {
        out.experts = static_cast<double>(layer->feed_forward->experts);
        out.per_token = static_cast<double>(layer->feed_forward->experts_per_token);
        out.copies = one.ways(stage_.rules.at(program::TensorClass::dispatched, model::LogicalDim::capacity).set());
        out.ranks = one.ways(stage_.rules.at(program::TensorClass::dispatched, model::LogicalDim::experts).set());
        out.largest = expected_largest(out.ranks);
      }
      add_steps(pairs, block, out);
      peak(block, false, lowered_, profile_.widest, origin_.widest);
      if (strategy_.scheme.weights == lower::WeightScheme::gathered)
        peak(block, true, 1.0, profile_.gathered, origin_.gathered);
      blocks_.push_back(std::move(out));
    }
  }

  /// The kernels and collectives of a block.
  void add_steps(const std::vector<Pair>& pairs, const program::Block& block, ServingProfile::Block& out) const {
    const program::Program &one = pairs.front().first, &two = pairs.front().second;
    const double touched_one = out.touched(lowered_), touched_two = out.touched(2.0 * lowered_);
    std::vector<ServedKernel> made;
    std::vector<const program::Step*> steps;
    made.reserve(at(block.last - block.first));
    steps.reserve(at(block.last - block.first));
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step &s1 = one.steps[at(i)], &s2 = two.steps[at(i)];
      if (s1.op == program::Op::slice) continue;
      if (program::is_collective(s1.op)) {
        const StraightLine<Bytes> bytes =
            line_through(lowered_, collective::array_bytes(one, s1), collective::array_bytes(two, s2));
        ServedCollective collective{s1.collective, training::collective_roles(one, s1), 1.0, bytes};
        if (num_)
          collective.origin = std::make_shared<const StraightLine<NumberOf<Traced, Bytes>>>(
              line_through(lowered_, collective::array_bytes(*num_, one, s1), collective::array_bytes(*num_, two, s2)));
        add_or_count(out.collectives, collective, &same_collective);
        continue;
      }
      const auto kernel_of = [&](const Pair& pair) {
        return served_kernel(setup_.rates, setup_.effects, {pair.first, pair.first.steps[at(i)], touched_one},
                             {pair.second, pair.second.steps[at(i)], touched_two}, lowered_);
      };
      made.push_back(kernel_of(pairs.front()));
      if (num_ && pairs.size() == 1)
        made.back().origin = std::make_shared<const KernelOrigin>(
            served_origin(*num_, {one, s1, touched_one}, {two, s2, touched_two}, lowered_));
      if (pairs.size() > 1) {
        std::vector<ServedKernel> by_context;
        for (const Pair& of_context : pairs) by_context.push_back(kernel_of(of_context));
        made.back() = mean_kernel(by_context, keys_.shares);
      }
      steps.push_back(&s1);
    }
    if (setup_.effects.joined) {
      fuse_runs({one, two, lowered_, num_}, steps, block.layers > 1, made);
      join_products(steps, made);
    }
    if (setup_.effects.experts && out.experts > 0.0) choose_expert_kernels(out, made);
    for (const ServedKernel& kernel : made) add_or_count(out.kernels, kernel, &same_kernel);
  }

  /// Who gathers tokens, and blocks for products of experts whose weights are multiplied as they are stored. Tables
  /// know layers by their experts and the width of each, which the last product sums over.
  void choose_expert_kernels(const ServingProfile::Block& block, std::vector<ServedKernel>& made) const {
    const numbers::ServingEffects& effects = setup_.effects;
    const NumberFormat stored = setup_.formats.most();
    const auto& gathering = effects.gathering_formats;
    const bool of_library = effects.expert_kernel == numbers::ExpertKernel::library;
    const bool gathers =
        !of_library || std::find(gathering.begin(), gathering.end(), name(stored.dtype)) != gathering.end();
    for (ServedKernel& kernel : made) kernel.gathers = gathers && kernel.moves_tokens();
    if (of_library) return;
    const auto of_experts = [](const ServedKernel& kernel) {
      return kernel.kernel.kind == kernel::KernelKind::matmul && kernel.expert_bytes > Bytes();
    };
    const auto last = std::find_if(made.rbegin(), made.rend(), of_experts);
    if (last == made.rend() || stored.dtype != last->kernel.format) return;
    const auto blocks =
        effects.experts->choose(effects.chip, name(stored), block.experts / block.ranks, last->kernel.product.k,
                                effects.expert_kernel == numbers::ExpertKernel::best_blocks);
    for (ServedKernel& kernel : made)
      if (of_experts(kernel)) {
        kernel.blocks = blocks;
        kernel.tokens_of_row = block.experts / block.per_token;
      }
  }

  void count_launches() {
    for (const ServingProfile::Block& block : blocks_) {
      double started = 0.0;
      for (const ServedKernel& kernel : block.kernels) started += kernel.count * kernel.started(setup_.effects);
      for (const ServedCollective& collective : block.collectives) started += collective.count;
      parts_.kernels += block.layers * started;
      if (num_)
        origin_.kernels =
            origin_.kernels +
            num_->given("layers", block.layers / static_cast<double>(parallelism_.pipeline), "of a stage") *
                num_->given(fmt::format("kernels of {}", block.text()), started, "that are launched");
    }
  }

  /// The tensors that are alive at the fullest moment of a block.
  NumberOf<Traced, Bytes> derive_peak(const program::Program& program, const std::vector<int>& alive,
                                      double over) const {
    NumberOf<Traced, Bytes> sum;
    for (const int id : alive) sum = sum + program::named_bytes(*num_, program, id);
    return over == 1.0 ? sum : sum / num_->given("sequences", over, "that the step was lowered for");
  }

  template <class N>
  NumberOf<N, Bytes> bytes_of(const N& num, const program::Program& one, const std::vector<model::Weight>& weights,
                              bool shared) const {
    return weight_bytes(num, weights, setup_.formats, one, stage_.rules, shared);
  }

  /// Calls `take` with every kind of layers: the decoder's, then the encoder's.
  template <class F>
  void each_kind(F take) const {
    for (const model::LayerStack* stack : {&model_.decoder, model_.encoder ? &*model_.encoder : nullptr})
      for (std::size_t k = 0; stack && k < stack->kinds.size(); ++k) take(stack->kinds[k]);
  }

  void add_weights(const program::Program& one) {
    for (const bool first : {false, true})
      for (const bool last : {false, true})
        parts_.outer[first][last] = bytes_of(Plain{}, one, stage_ends(model_, first, last), false);
    each_kind([&](const model::Layer& layer) {
      const std::vector<model::Weight> weights = model::layer_weights(model_, layer);
      parts_.kinds.push_back({bytes_of(Plain{}, one, weights, false), bytes_of(Plain{}, one, weights, true), {}});
    });
  }

  NumberOf<Traced, Bytes> derive_weights(const program::Program& one, const clock::StageSplit::Part& part) const {
    auto sum =
        num_->named("outside the layers", bytes_of(*num_, one, stage_ends(model_, part.first, part.last), false));
    std::size_t kind = 0;
    each_kind([&](const model::Layer& layer) {
      const double n = part.layers[kind++];
      if (n == 0.0) return;
      const std::vector<model::Weight> weights = model::layer_weights(model_, layer);
      const auto own = num_->named("weights of a layer", bytes_of(*num_, one, weights, false));
      sum = sum + (num_->times("layers", n, "on the stage", own) +
                   num_->named("shared weights", bytes_of(*num_, one, weights, true)));
    });
    return sum;
  }

  void add_caches(const program::Program& one) {
    for (std::size_t k = 0; k < model_.decoder.kinds.size(); ++k) parts_.kinds[k].caches.resize(keys_.reserved.size());
    for (const program::Block& block : one.blocks) {
      if (block.kind < 0) continue;
      const model::Layer& layer = model_.decoder.kinds[at(block.kind)];
      Bytes all;
      each_cache(one, block, [&](const program::ProgramTensor& tensor, bool cross) {
        for (std::size_t i = 0; i < keys_.reserved.size(); ++i) {
          const Bytes held = layer_cache(Plain{}, one, tensor, reserved_tokens(layer, cross, keys_.reserved[i]));
          parts_.kinds[at(block.kind)].caches[i] += held;
          all += held;
        }
      });
      const bool copies =
          work_.queries == 1 && setup_.effects.copies > 0.0 && layer.attention && layer.attention->kv_rank == 0;
      if (!copies) continue;
      const Bytes copied = all / static_cast<double>(keys_.reserved.size()) *
                           static_cast<double>(layer.attention->heads / layer.attention->kv_heads);
      profile_.widest = std::max(profile_.widest, copied);  // copies of one layer at a time
    }
  }

  /// Bytes of one sequence's cache of `tokens` tokens in one layer.
  template <class N>
  NumberOf<N, Bytes> layer_cache(const N& num, const program::Program& one, const program::ProgramTensor& tensor,
                                 std::int64_t tokens) const {
    return cache_bytes_at(num, one, tensor, tokens, setup_.formats.kv_cache) /
           num.given("sequences", lowered_, "that the step was lowered for");
  }
  /// Bytes of one sequence's caches on a stage.
  NumberOf<Traced, Bytes> derive_cache(const program::Program& one, const clock::StageSplit::Part& part) const {
    NumberOf<Traced, Bytes> sum{};
    for (const program::Block& block : one.blocks) {
      if (block.kind < 0) continue;
      const model::Layer& layer = model_.decoder.kinds[at(block.kind)];
      each_cache(one, block, [&](const program::ProgramTensor& tensor, bool cross) {
        sum = sum + num_->times("layers", part.layers[at(block.kind)], "on the stage",
                                layer_cache(*num_, one, tensor, reserved_tokens(layer, cross, keys_.reserved.front())));
      });
    }
    return sum;
  }

  /// Calls `take` with every cache that a block reads, and whether it is an encoder's.
  template <class F>
  void each_cache(const program::Program& one, const program::Block& block, F take) const {
    const model::Layer& layer = model_.decoder.kinds[at(block.kind)];
    if (layer.attention && layer.attention->shares_kv) return;
    std::vector<char> counted(one.tensors.size(), 0);
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = one.steps[at(i)];
      for (int id : step.in) {
        if (id < 0 || counted[at(id)]) continue;
        const program::ProgramTensor& tensor = one.tensor(id);
        const bool cross = is_cross(one, step) && id != step.in[0];
        if (!(tensor.is_given || cross) || tensor.tensor_class != program::TensorClass::key_value) continue;
        counted[at(id)] = 1;
        take(tensor, cross);
      }
    }
  }

  /// Tokens of a cache if memory is reserved for `reserved` tokens.
  std::int64_t reserved_tokens(const model::Layer& layer, bool cross, std::int64_t reserved) const {
    // Where memory is reserved for fewer tokens than the prompt has, all of them are the prompt's.
    const std::int64_t source = std::min(keys_.source, reserved);
    const std::int64_t tokens = cross && source > 0 ? source : reserved - source;
    return layer.attention && !cross ? model::held_tokens(*layer.attention, tokens) : tokens;
  }

  /// States of a fixed size, of all layers, and activations between stages.
  void add_states(const program::Program& one, bool encodes) {
    const Dtype activations = setup_.formats.activations;
    profile_.cache_groups = one.ways(stage_.rules.at(program::TensorClass::key_value, model::LogicalDim::batch).set());
    const double ways = one.ways(stage_.rules.at(program::TensorClass::residual, model::LogicalDim::batch).set());
    const double tokens = encodes ? static_cast<double>(keys_.source) : profile_.queries;
    const auto states = [&](const auto& num) {
      return num.given("values of states", static_cast<double>(model::state_values_per_sequence(model_)),
                       "of all layers, for a sequence") *
             num.given("bytes of an element", storage(activations, 1.0), name(activations)) /
             num.given("replicas", ways, "that share the sequences") /
             num.given("devices", static_cast<double>(strategy_.tensor), "that share a layer");
    };
    const auto sent = [&](const auto& num) {
      return num.given("values of a token",
                       (model::has_aside(model_.decoder) ? 2.0 : 1.0) * static_cast<double>(model_.d_model),
                       "between layers") *
             num.given("tokens", tokens, "of a sequence in a step") *
             num.given("bytes of an element", storage(activations, 1.0), name(activations)) /
             num.given("replicas", ways, "that share the sequences");
    };
    parts_.states = states(Plain{});
    profile_.boundary = sent(Plain{});
    if (!num_) return;
    if (parts_.states > Bytes())
      origin_.states =
          states(*num_) / num_->given("stages", static_cast<double>(parallelism_.pipeline), "that share the layers");
    origin_.boundary = sent(*num_);
  }

  const ServingSetup& setup_;
  const ServingStrategy& strategy_;
  const ServingKeys& keys_;
  const model::Transformer& model_;
  lower::Parallelism parallelism_;
  lower::StageRules stage_;
  std::int64_t least_;  ///< sequences at which slots of experts come out whole
  double lowered_;      ///< `least_` as a double
  lower::Workload work_;
  ServingProfile profile_;
  ServingProfile::Blocks blocks_;
  StageParts parts_;
  const Traced* num_;  ///< null: nothing is explained
  ProfileOrigin origin_;
};

}  // namespace

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    const ServingKeys& keys) {
  return ProfileMaker(setup, strategy, queries, keys).make();
}

}  // namespace assay::serving
