#include "assay/serving/profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/base/index.h"
#include "assay/model/accounting.h"
#include "assay/model/layer_parts.h"
#include "assay/pipeline/stage_split.h"

namespace assay::serving {
namespace {

/// Bytes on one device of a cache that holds `keys` tokens. What an encoder's tokens become is made in the first step
/// and is no cache yet: its tokens lie along the sequence.
double cache_bytes_at(const program::Program& program, program::ProgramTensor tensor, std::int64_t keys, Dtype format) {
  const int along = tensor.find(tensor.is_given ? model::LogicalDim::context : model::LogicalDim::sequence);
  if (along >= 0) tensor.dims.set(at(along), {tensor.dims[at(along)].dim, keys});
  if (!tensor.is_given) tensor.store_as(format);
  return program::local_bytes(program, tensor).value();
}

/// Attention over what the encoder made.
bool is_cross(const program::Program& program, const program::Step& step) {
  return step.op == program::Op::attention && step.detail >= 0 && program.attentions[at(step.detail)].cross;
}

/// Bytes on one device that are alive at the same time, at the fullest moment: a tensor lives from the step that makes
/// it to the last one that reads it, and what passes on to other blocks to the end.
class FullestMoment {
 public:
  explicit FullestMoment(const program::Program& program)
      : program_(program), last_(program.tensors.size(), never), alive_(program.tensors.size(), 0.0) {}

  /// Of the activations of a block, or of the weights that it gathers.
  double operator()(const program::Block& block, bool gathered) {
    for (std::int32_t i = block.first; i < block.last; ++i)
      for (int id : program_.steps[at(i)].in)
        if (id >= 0) last_[at(id)] = i;
    double held = 0.0, most = 0.0;
    const auto begin = [&](int id) {
      if (id < 0 || alive_[at(id)] > 0.0 || !counts(program_.tensor(id), gathered)) return;
      held += alive_[at(id)] = program::local_bytes(program_, program_.tensor(id)).value();
    };
    const auto end = [&](int id) { held -= alive_[at(id)], alive_[at(id)] = 0.0; };
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
        if (id >= 0) last_[at(id)] = never, alive_[at(id)] = 0.0;
      for (int id : program_.steps[at(i)].out)
        if (id >= 0) alive_[at(id)] = 0.0;
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
  std::vector<double> alive_;       ///< bytes; 0: not alive
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
StraightLine mean_line(const std::vector<StraightLine>& lines, const std::vector<double>& shares) {
  StraightLine mean = lines.front();
  if (std::all_of(lines.begin(), lines.end(), [&](const StraightLine& line) { return line == mean; })) return mean;
  mean = {};
  double all = 0.0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double share = shares.empty() ? 1.0 : shares[i];
    mean.fixed += share * lines[i].fixed, mean.moving += share * lines[i].moving, all += share;
  }
  return {mean.fixed / all, mean.moving / all};
}

/// One kernel over sequences with different contexts: its work is that of all of them.
ServedKernel mean_kernel(const std::vector<ServedKernel>& kernels, const std::vector<double>& shares) {
  ServedKernel mean = kernels.front();
  for (StraightLine ServedKernel::*line : {&ServedKernel::flops, &ServedKernel::bytes, &ServedKernel::batch,
                                           &ServedKernel::m, &ServedKernel::items, &ServedKernel::met}) {
    std::vector<StraightLine> lines;
    for (const ServedKernel& kernel : kernels) lines.push_back(kernel.*line);
    mean.*line = mean_line(lines, shares);
  }
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
      joined.push_back(kernels[i]), read.push_back(inputs[i]);
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
      if (kernel.expert_bytes > 0.0 || kernel.narrowed_experts > 0.0) return false;
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
double weight_bytes(const std::vector<model::Weight>& weights, const lower::Formats& formats,
                    const program::Program& program, const lower::ShardingRules& rules, bool shared = false) {
  double sum = 0.0;
  for (const model::Weight& weight : weights)
    if (weight.shared == shared)
      sum += storage(formats.of(weight), lower::local_elements(rules, program, program::TensorClass::weight, weight))
                 .value();
  return sum;
}

/// Weights outside of the layers that a stage holds: a tied head is the embedding once more.
std::vector<model::Weight> stage_ends(const model::Transformer& model, bool first, bool last) {
  std::vector<model::Weight> all = model::outer_weights(model);
  std::erase_if(all, [&](const model::Weight& weight) {
    if (weight.part == model::Part::positions) return !first;
    if (weight.part == model::Part::embedding) return !first && !(model.tied && last && weight.name == "embedding");
    return !last;
  });
  return all;
}

}  // namespace

lower::Parallelism ServingStrategy::parallelism() const {
  lower::Parallelism p;
  p.tensor = tensor, p.fsdp = second, p.pipeline = pipeline, p.expert = expert, p.data = data;
  p.expert_over = expert_over;
  return p;
}

std::int64_t serving_unit(const ServingStrategy& strategy) {
  const bool by_batch = strategy.scheme.cache == lower::CacheScheme::batch;
  std::int64_t unit = strategy.data;
  if (by_batch) unit *= strategy.tensor;
  if (by_batch || strategy.scheme.weights == lower::WeightScheme::gathered) unit *= strategy.second;
  return unit;
}

double ServingProfile::Block::touched(double sequences) const {
  return experts > 0.0 ? lower::touched_share(sequences * tokens / copies, per_token, experts) : 1.0;
}

std::int64_t whole_slots(const model::Transformer& model) {
  std::int64_t all = 1;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward && layer.feed_forward->experts > 0) {
      const std::int64_t n = layer.feed_forward->experts, k = layer.feed_forward->experts_per_token;
      all = std::lcm(all, n / std::gcd(n, k));
    }
  return all;
}

Result<training::StageLinks> serving_links(const ServingSetup& setup, const ServingStrategy& strategy,
                                           const hardware::Cluster& cluster) {
  return training::stage_links(strategy.parallelism(), strategy.layout, cluster,
                               setup.collectives ? &*setup.collectives : nullptr,
                               training::routing_of(*setup.model, setup.dispatch));
}

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys, std::int64_t cache_keys) {
  return make_serving_profile(setup, strategy, queries, ServingKeys{{keys}, {cache_keys == 0 ? keys : cache_keys}});
}

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    const ServingKeys& keys) {
  const model::Transformer& model = *setup.model;
  const lower::Parallelism p = strategy.parallelism();
  const lower::StageRules stage = lower::serving_stage(p, strategy.scheme, model);
  const program::Mesh& mesh = stage.mesh;
  const lower::ShardingRules& rules = stage.rules;
  ServingProfile profile;
  profile.queries = static_cast<double>(queries);
  const std::int64_t unit = serving_unit(strategy);
  profile.unit = static_cast<double>(unit);
  lower::Workload work;
  work.queries = queries, work.cached = true;
  work.expert_load = setup.expert_load;
  const std::int64_t least = unit * whole_slots(model);
  const auto lowered = static_cast<double>(least);
  // For each context, once and for twice as many sequences.
  using Pair = std::pair<program::Program, program::Program>;
  const auto twice = [&](auto lower) {
    work.sequences = least;
    program::Program once = lower(model, mesh, rules, work, setup.formats);
    work.sequences = 2 * least;
    return Pair(std::move(once), lower(model, mesh, rules, work, setup.formats));
  };
  std::vector<Pair> programs;
  programs.reserve(keys.seen.size());
  for (std::int64_t seen : keys.seen) {
    work.keys = std::max(queries, seen - keys.source);
    work.source = keys.source > 0 ? keys.source : model.encoder ? seen : 0;
    programs.push_back(twice(lower::lower_serving));
  }
  const bool encodes = keys.source > 0 && work.keys == queries;
  profile.prompts = queries > 1 || encodes;
  const auto add_program = [&](const std::vector<Pair>& pairs, const model::LayerStack& stack, double tokens) {
    const program::Program &one = pairs.front().first, &two = pairs.front().second;
    FullestMoment fullest(one);
    for (const program::Block& block : one.blocks) {
      ServingProfile::Block out;
      out.layers = static_cast<double>(block.layers), out.tokens = tokens;
      const model::Layer* layer = block.kind >= 0 ? &stack.kinds[at(block.kind)] : nullptr;
      out.last_tokens = !layer && &stack == &model.decoder && block.last == one.blocks.back().last;
      double touched_one = 1.0, touched_two = 1.0;
      if (layer && layer->feed_forward && layer->feed_forward->experts > 0) {
        out.experts = static_cast<double>(layer->feed_forward->experts);
        out.per_token = static_cast<double>(layer->feed_forward->experts_per_token);
        out.copies = one.ways(rules.at(program::TensorClass::dispatched, model::LogicalDim::capacity).set());
        touched_one = out.touched(lowered), touched_two = out.touched(2.0 * lowered);
      }
      std::vector<ServedKernel> made;
      std::vector<int> inputs;
      made.reserve(at(block.last - block.first)), inputs.reserve(at(block.last - block.first));
      for (std::int32_t i = block.first; i < block.last; ++i) {
        const program::Step &s1 = one.steps[at(i)], &s2 = two.steps[at(i)];
        if (s1.op == program::Op::slice) continue;
        if (program::is_collective(s1.op)) {
          const StraightLine bytes =
              line_through(lowered, network::array_bytes(one, s1).value(), network::array_bytes(two, s2).value());
          add_or_count(out.collectives,
                       {network::collective_of(s1.op), training::collective_roles(one, s1), 1.0, bytes},
                       &same_collective);
          continue;
        }
        const auto kernel_of = [&](const Pair& pair) {
          return served_kernel(setup.rates, pair.first, pair.first.steps[at(i)], pair.second, pair.second.steps[at(i)],
                               lowered, touched_one, touched_two);
        };
        made.push_back(kernel_of(pairs.front()));
        if (pairs.size() > 1) {
          std::vector<ServedKernel> by_context;
          for (const Pair& of_context : pairs) by_context.push_back(kernel_of(of_context));
          made.back() = mean_kernel(by_context, keys.shares);
        }
        inputs.push_back(s1.in[0]);
      }
      profile.widest = std::max(profile.widest, fullest(block, false) / lowered);
      if (strategy.scheme.weights == lower::WeightScheme::gathered)
        profile.gathered = std::max(profile.gathered, fullest(block, true));
      if (setup.effects.joined) join_products(made, inputs);
      for (const ServedKernel& kernel : made) add_or_count(out.kernels, kernel, &same_kernel);
      profile.blocks.push_back(std::move(out));
    }
  };
  if (encodes) add_program({twice(lower::lower_encoder)}, *model.encoder, static_cast<double>(keys.source));
  add_program(programs, model.decoder, profile.queries);
  const program::Program& one = programs.front().first;
  for (const ServingProfile::Block& block : profile.blocks) {
    double started = 0.0;
    for (const ServedKernel& kernel : block.kernels) started += kernel.count * kernel.started(setup.effects);
    for (const ServedCollective& collective : block.collectives) started += collective.count;
    profile.kernels += block.layers / static_cast<double>(p.pipeline) * started;
  }
  profile.together = p.tensor * p.fsdp * p.pipeline * p.expert > 1;
  share_kernels(profile);
  // Caches and weights lie on the stages that use them: the fullest counts.
  const auto stages = static_cast<double>(p.pipeline);
  const pipeline::StageSplit split = pipeline::split_stages(model, p.pipeline);
  std::vector<std::pair<double, double>> by_kind;  // of one layer: its own, and what layers of the kind share
  for (const model::LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t k = 0; stack && k < stack->kinds.size(); ++k) {
      const std::vector<model::Weight> weights = model::layer_weights(model, stack->kinds[k]);
      by_kind.push_back(
          {weight_bytes(weights, setup.formats, one, rules), weight_bytes(weights, setup.formats, one, rules, true)});
    }
  for (const pipeline::StageSplit::Part& part : split.parts) {
    const double outer = weight_bytes(stage_ends(model, part.first, part.last), setup.formats, one, rules);
    double sum = outer, layers = 0.0;
    for (std::size_t k = 0; k < by_kind.size(); ++k) {
      const double n = part.layers[k];
      sum += n * by_kind[k].first + std::min(n, 1.0) * by_kind[k].second, layers += n;
    }
    if (sum > profile.weight_bytes) profile.weight_bytes = sum, profile.outer_bytes = outer;
    profile.uneven = std::max(profile.uneven, stages * layers / static_cast<double>(pipeline::layers_of(model)));
  }
  std::vector<std::vector<double>> held_by(split.parts.size(), std::vector<double>(keys.reserved.size()));
  for (const program::Block& block : one.blocks) {
    if (block.kind < 0) continue;
    const model::Layer& layer = model.decoder.kinds[at(block.kind)];
    std::vector<char> counted(one.tensors.size(), 0);
    double copied = 0.0;
    for (std::int32_t i = block.first; i < block.last; ++i)
      for (int id : one.steps[at(i)].in) {
        if (id < 0 || counted[at(id)]) continue;
        const program::ProgramTensor& tensor = one.tensor(id);
        const bool cross = is_cross(one, one.steps[at(i)]) && id != one.steps[at(i)].in[0];
        if (!(tensor.is_given || cross) || tensor.tensor_class != program::TensorClass::key_value ||
            (layer.attention && layer.attention->shares_kv))
          continue;
        counted[at(id)] = 1;
        for (std::size_t r = 0; r < keys.reserved.size(); ++r) {
          // Where memory is held for fewer tokens than the prompt has, all of them are its own.
          const std::int64_t source = std::min(keys.source, keys.reserved[r]);
          std::int64_t tokens = cross && source > 0 ? source : keys.reserved[r] - source;
          if (layer.attention && !cross) tokens = model::held_tokens(*layer.attention, tokens);
          const double layer_bytes = cache_bytes_at(one, tensor, tokens, setup.formats.kv_cache) / lowered;
          for (std::size_t s = 0; s < split.parts.size(); ++s)
            held_by[s][r] += split.parts[s].layers[at(block.kind)] * layer_bytes;
          if (queries == 1 && setup.effects.copies > 0.0 && layer.attention && layer.attention->kv_rank == 0)
            copied += layer_bytes / static_cast<double>(keys.reserved.size()) *
                      static_cast<double>(layer.attention->heads / layer.attention->kv_heads);
        }
      }
    profile.widest = std::max(profile.widest, copied);  // of one layer at a time
  }
  const auto total = [](const std::vector<double>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0.0); };
  const std::vector<double>& held = *std::max_element(
      held_by.begin(), held_by.end(), [&](const auto& a, const auto& b) { return total(a) < total(b); });
  const auto shares = static_cast<double>(held.size());
  for (double bytes : held) profile.cache_bytes += bytes / shares;
  double squares = 0.0;
  for (double bytes : held) squares += (bytes - profile.cache_bytes) * (bytes - profile.cache_bytes);
  profile.cache_spread = std::sqrt(squares / shares);
  profile.cache_groups = one.ways(rules.at(program::TensorClass::key_value, model::LogicalDim::batch).set());
  const double ways = one.ways(rules.at(program::TensorClass::residual, model::LogicalDim::batch).set());
  profile.state_bytes =
      storage(setup.formats.activations, static_cast<double>(model::state_values_per_sequence(model))).value() /
      stages / ways / static_cast<double>(p.tensor);
  profile.boundary = storage(setup.formats.activations,
                             (model::has_aside(model.decoder) ? 2.0 : 1.0) * static_cast<double>(model.d_model) *
                                 (encodes ? static_cast<double>(keys.source) : profile.queries))
                         .value() /
                     ways;
  return profile;
}

ServingProfile make_prompt_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t fresh,
                                   std::int64_t prompt) {
  if (!setup.model->encoder) return make_serving_profile(setup, strategy, fresh, prompt);
  return make_serving_profile(setup, strategy, 1, ServingKeys{{prompt + 1}, {prompt + 1}, prompt});
}

void find_tiles(const ServingSetup& setup, ServingProfile& profile, double sequences) {
  for (ServingProfile::Block& block : profile.blocks)
    for (ServedKernel& kernel : block.kernels) find_tiles(setup.rates, kernel, sequences);
}

}  // namespace assay::serving
