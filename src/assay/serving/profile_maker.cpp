// Reads a serving profile off the programs of one step.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/base/index.h"
#include "assay/model/accounting.h"
#include "assay/model/layer_parts.h"
#include "assay/pipeline/stage_split.h"
#include "assay/serving/profile.h"

namespace assay::serving {
namespace {

/// Bytes on one device of a cache that holds `keys` tokens. Keys and values of an encoder are computed in the first
/// step and are not a cache yet: their tokens are along the sequence dimension.
Bytes cache_bytes_at(const program::Program& program, program::ProgramTensor tensor, std::int64_t keys, Dtype format) {
  const int along = tensor.find(tensor.is_given ? model::LogicalDim::context : model::LogicalDim::sequence);
  if (along >= 0) tensor.dims.set(at(along), {tensor.dims[at(along)].dim, keys});
  if (!tensor.is_given) tensor.store_as(format);
  return program::local_bytes(program, tensor);
}

/// Attention over what the encoder made.
bool is_cross(const program::Program& program, const program::Step& step) {
  return step.op == program::Op::attention && step.detail >= 0 && program.attentions[at(step.detail)].cross;
}

/// Peak bytes that are alive at once on one device: a tensor lives from the step that makes it to the last one that
/// reads it, and a tensor passed to other blocks lives to the end.
class FullestMoment {
 public:
  explicit FullestMoment(const program::Program& program)
      : program_(program), last_(program.tensors.size(), never), alive_(program.tensors.size()) {}

  /// Of the activations of a block, or of the weights that it gathers.
  Bytes operator()(const program::Block& block, bool gathered) {
    for (std::int32_t i = block.first; i < block.last; ++i)
      for (int id : program_.steps[at(i)].in)
        if (id >= 0) last_[at(id)] = i;
    Bytes held, most;
    const auto begin = [&](int id) {
      if (id < 0 || alive_[at(id)] > Bytes() || !counts(program_.tensor(id), gathered)) return;
      held += alive_[at(id)] = program::local_bytes(program_, program_.tensor(id));
    };
    const auto end = [&](int id) {
      held -= alive_[at(id)];
      alive_[at(id)] = Bytes();
    };
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program_.steps[at(i)];
      const auto end_inputs = [&] {
        for (int id : step.in)
          if (id >= 0 && last_[at(id)] == i) end(id);
      };
      if (!gathered)
        for (int id : step.in) begin(id);        // of the blocks before
      if (step.bytes == Bytes(0)) end_inputs();  // another view of the same memory
      for (int id : step.out) begin(id);
      most = std::max(most, held);
      end_inputs();
      for (int id : step.out)  // what only a backward pass would read
        if (id >= 0 && last_[at(id)] == never && program_.tensor(id).tensor_class != program::TensorClass::residual)
          end(id);
    }
    for (std::int32_t i = block.first; i < block.last; ++i) {
      for (int id : program_.steps[at(i)].in)
        if (id >= 0) {
          last_[at(id)] = never;
          alive_[at(id)] = Bytes();
        }
      for (int id : program_.steps[at(i)].out)
        if (id >= 0) alive_[at(id)] = Bytes();
    }
    return most;
  }

 private:
  static bool counts(const program::ProgramTensor& tensor, bool gathered) {
    const bool passed = tensor.tensor_class == program::TensorClass::residual;  // of the block before
    if ((tensor.is_given && !passed) || (tensor.tensor_class == program::TensorClass::used_weight) != gathered)
      return false;
    const bool cache =
        tensor.tensor_class == program::TensorClass::key_value && tensor.find(model::LogicalDim::context) >= 0;
    return !cache;
  }

  static constexpr std::int32_t never = -1;
  const program::Program& program_;
  std::vector<std::int32_t> last_;  ///< step that reads a tensor last
  std::vector<Bytes> alive_;        ///< 0: not alive
};

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
bool same_collective(const ServedCollective& a, const ServedCollective& b) {
  return a.kind == b.kind && a.over == b.over && a.bytes == b.bytes;
}

/// Products that read the same tensor become one, with the columns of all: queries, keys and values, or gate and up.
void join_products(std::vector<ServedKernel>& kernels, const std::vector<int>& inputs) {
  std::vector<ServedKernel> joined;
  std::vector<int> read;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::size_t j = 0;
    while (j < joined.size() && !(read[j] == inputs[i] && joined[j].joins(kernels[i]))) ++j;
    if (j < joined.size()) {
      joined[j].join(kernels[i]);
    } else {
      joined.push_back(kernels[i]);
      read.push_back(inputs[i]);
    }
  }
  kernels = std::move(joined);
}

/// Kernels that several kinds of layers have in common are priced once, with the first of them. Weights of experts stay
/// where they are: which of them are read depends on the block.
void share_kernels(ServingProfile& profile) {
  for (std::size_t b = 1; b < profile.blocks.size(); ++b) {
    ServingProfile::Block& later = profile.blocks[b];
    const auto taken = [&](const ServedKernel& kernel) {
      if (kernel.expert_bytes > Bytes() || kernel.narrowed_experts > Bytes()) return false;
      for (std::size_t e = 0; e < b; ++e) {
        ServingProfile::Block& earlier = profile.blocks[e];
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

/// Of those that layers share, or of the others.
Bytes weight_bytes(const std::vector<model::Weight>& weights, const lower::Formats& formats,
                   const program::Program& program, const lower::ShardingRules& rules, bool shared = false) {
  Bytes sum;
  for (const model::Weight& weight : weights)
    if (weight.shared == shared)
      sum += storage(formats.of(weight), lower::local_elements(rules, program, program::TensorClass::weight, weight));
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
        lowered_(static_cast<double>(least_)) {
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
    profile_.together = strategy_.tensor * parallelism_.fsdp * parallelism_.pipeline * parallelism_.expert > 1;
    share_kernels(profile_);
    const program::Program& one = programs.front().first;
    const pipeline::StageSplit split = pipeline::split_stages(model_, parallelism_.pipeline);
    add_weights(one, split);
    add_caches(one, split);
    add_states(one, encodes);
    return std::move(profile_);
  }

 private:
  /// One step for as many sequences as come out whole, and for twice as many.
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
    FullestMoment fullest(one);
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
      }
      add_steps(pairs, block, out);
      profile_.widest = std::max(profile_.widest, fullest(block, false) / lowered_);
      if (strategy_.scheme.weights == lower::WeightScheme::gathered)
        profile_.gathered = std::max(profile_.gathered, fullest(block, true));
      profile_.blocks.push_back(std::move(out));
    }
  }

  /// The kernels and collectives of a block.
  void add_steps(const std::vector<Pair>& pairs, const program::Block& block, ServingProfile::Block& out) const {
    const program::Program &one = pairs.front().first, &two = pairs.front().second;
    const double touched_one = out.touched(lowered_), touched_two = out.touched(2.0 * lowered_);
    std::vector<ServedKernel> made;
    std::vector<int> inputs;
    made.reserve(at(block.last - block.first));
    inputs.reserve(at(block.last - block.first));
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step &s1 = one.steps[at(i)], &s2 = two.steps[at(i)];
      if (s1.op == program::Op::slice) continue;
      if (program::is_collective(s1.op)) {
        const StraightLine<Bytes> bytes =
            line_through(lowered_, network::array_bytes(one, s1), network::array_bytes(two, s2));
        add_or_count(out.collectives, {s1.collective, training::collective_roles(one, s1), 1.0, bytes},
                     &same_collective);
        continue;
      }
      const auto kernel_of = [&](const Pair& pair) {
        return served_kernel(setup_.rates, {pair.first, pair.first.steps[at(i)], touched_one},
                             {pair.second, pair.second.steps[at(i)], touched_two}, lowered_);
      };
      made.push_back(kernel_of(pairs.front()));
      if (pairs.size() > 1) {
        std::vector<ServedKernel> by_context;
        for (const Pair& of_context : pairs) by_context.push_back(kernel_of(of_context));
        made.back() = mean_kernel(by_context, keys_.shares);
      }
      inputs.push_back(s1.in[0]);
    }
    if (setup_.effects.joined) join_products(made, inputs);
    for (const ServedKernel& kernel : made) add_or_count(out.kernels, kernel, &same_kernel);
  }

  void count_launches() {
    for (const ServingProfile::Block& block : profile_.blocks) {
      double started = 0.0;
      for (const ServedKernel& kernel : block.kernels) started += kernel.count * kernel.started(setup_.effects);
      for (const ServedCollective& collective : block.collectives) started += collective.count;
      profile_.kernels += block.layers / static_cast<double>(parallelism_.pipeline) * started;
    }
  }

  /// Weights of the fullest stage.
  void add_weights(const program::Program& one, const pipeline::StageSplit& split) {
    const auto bytes_of = [&](const std::vector<model::Weight>& weights, bool shared) {
      return weight_bytes(weights, setup_.formats, one, stage_.rules, shared);
    };
    std::vector<std::pair<Bytes, Bytes>> by_kind;  // of one layer: its own, and what layers of the kind share
    for (const model::LayerStack* stack : {&model_.decoder, model_.encoder ? &*model_.encoder : nullptr})
      for (std::size_t k = 0; stack && k < stack->kinds.size(); ++k) {
        const std::vector<model::Weight> weights = model::layer_weights(model_, stack->kinds[k]);
        by_kind.emplace_back(bytes_of(weights, false), bytes_of(weights, true));
      }
    const auto stages = static_cast<double>(parallelism_.pipeline);
    for (const pipeline::StageSplit::Part& part : split.parts) {
      const Bytes outer = bytes_of(stage_ends(model_, part.first, part.last), false);
      Bytes sum = outer;
      double layers = 0.0;
      for (std::size_t k = 0; k < by_kind.size(); ++k) {
        const double n = part.layers[k];
        sum += n * by_kind[k].first + std::min(n, 1.0) * by_kind[k].second;
        layers += n;
      }
      if (sum > profile_.weights) {
        profile_.weights = sum;
        profile_.outer = outer;
      }
      profile_.uneven = std::max(profile_.uneven, stages * layers / static_cast<double>(pipeline::layers_of(model_)));
    }
  }

  /// Caches of the fullest stage: mean and spread over the tokens that are reserved.
  void add_caches(const program::Program& one, const pipeline::StageSplit& split) {
    std::vector<std::vector<Bytes>> held_by(split.parts.size(), std::vector<Bytes>(keys_.reserved.size()));
    for (const program::Block& block : one.blocks) {
      if (block.kind < 0) continue;
      const model::Layer& layer = model_.decoder.kinds[at(block.kind)];
      const bool copies =
          work_.queries == 1 && setup_.effects.copies > 0.0 && layer.attention && layer.attention->kv_rank == 0;
      Bytes copied;
      each_cache(one, block, [&](const program::ProgramTensor& tensor, bool cross) {
        for (std::size_t r = 0; r < keys_.reserved.size(); ++r) {
          const Bytes layer_bytes =
              cache_bytes_at(one, tensor, reserved_tokens(layer, cross, keys_.reserved[r]), setup_.formats.kv_cache) /
              lowered_;
          for (std::size_t s = 0; s < split.parts.size(); ++s)
            held_by[s][r] += split.parts[s].layers[at(block.kind)] * layer_bytes;
          if (copies)
            copied += layer_bytes / static_cast<double>(keys_.reserved.size()) *
                      static_cast<double>(layer.attention->heads / layer.attention->kv_heads);
        }
      });
      profile_.widest = std::max(profile_.widest, copied);  // of one layer at a time
    }
    const auto total = [](const std::vector<Bytes>& bytes) {
      return std::accumulate(bytes.begin(), bytes.end(), Bytes());
    };
    const std::vector<Bytes>& held = *std::max_element(
        held_by.begin(), held_by.end(), [&](const auto& a, const auto& b) { return total(a) < total(b); });
    const auto shares = static_cast<double>(held.size());
    for (const Bytes bytes : held) profile_.cache += bytes / shares;
    auto squares = Bytes() * Bytes();
    for (const Bytes bytes : held) squares += (bytes - profile_.cache) * (bytes - profile_.cache);
    profile_.cache_spread = sqrt(squares / shares);
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

  /// Tokens of a cache where memory is reserved for so many.
  std::int64_t reserved_tokens(const model::Layer& layer, bool cross, std::int64_t reserved) const {
    // Where memory is reserved for fewer tokens than the prompt has, all of them are the prompt's.
    const std::int64_t source = std::min(keys_.source, reserved);
    const std::int64_t tokens = cross && source > 0 ? source : reserved - source;
    return layer.attention && !cross ? model::held_tokens(*layer.attention, tokens) : tokens;
  }

  /// States of a fixed size, and activations between stages.
  void add_states(const program::Program& one, bool encodes) {
    const Dtype activations = setup_.formats.activations;
    profile_.cache_groups = one.ways(stage_.rules.at(program::TensorClass::key_value, model::LogicalDim::batch).set());
    const double ways = one.ways(stage_.rules.at(program::TensorClass::residual, model::LogicalDim::batch).set());
    profile_.states = storage(activations, static_cast<double>(model::state_values_per_sequence(model_))) /
                      static_cast<double>(parallelism_.pipeline) / ways / static_cast<double>(strategy_.tensor);
    const double tokens = encodes ? static_cast<double>(keys_.source) : profile_.queries;
    profile_.boundary = storage(activations, (model::has_aside(model_.decoder) ? 2.0 : 1.0) *
                                                 static_cast<double>(model_.d_model) * tokens) /
                        ways;
  }

  const ServingSetup& setup_;
  const ServingStrategy& strategy_;
  const ServingKeys& keys_;
  const model::Transformer& model_;
  lower::Parallelism parallelism_;
  lower::StageRules stage_;
  std::int64_t least_;  ///< sequences at which slots of experts come out whole
  double lowered_;      ///< as a double
  lower::Workload work_;
  ServingProfile profile_;
};

}  // namespace

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    const ServingKeys& keys) {
  return ProfileMaker(setup, strategy, queries, keys).make();
}

}  // namespace assay::serving
