#include "assay/profile/compare/recognition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "assay/base/text.h"

namespace assay::compare {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::ProgramKernel;
using hlo::ProgramKernels;
using hlo::WholeParameter;

using Dims = std::vector<std::int64_t>;

bool contains(const Dims& dims, std::int64_t size) { return std::find(dims.begin(), dims.end(), size) != dims.end(); }

/// Weights among the parameters: floats that are neither states of the optimizer nor statistics, where names say so.
bool is_named_weight(const WholeParameter& parameter) {
  const std::string_view name = parameter.name;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("params") && !has("opt_state") && !has("overwrite_with_gradient") && !has("amax") && !has("['mu']") &&
         !has("['nu']") && !has(".mu") && !has(".nu");
}

class Recogniser {
 public:
  Recogniser(const hlo::Module& module, const hlo::ProgramMesh& mesh, const ProgramKernels& kernels)
      : module_(module), mesh_(mesh), kernels_(kernels), parameters_(mesh.parameters) {}

  RecognisedModel find() {
    find_width();
    complete_guesses();
    find_copies();
    find_types();
    find_layers();
    find_sizes();
    find_attention();
    find_choice();
    find_inputs();
    find_axes();
    find_recompute();
    return std::move(out_);
  }

 private:
  bool is_float(const WholeParameter& parameter) const { return parameter.element && parameter.element->is_float; }

  /// The width of the model: the length of norms, which most weights have as a dimension.
  void find_width() {
    std::map<std::int64_t, int> candidates;
    for (const WholeParameter& parameter : parameters_) {
      if (!is_float(parameter)) continue;
      const std::size_t rank = parameter.dims.size();
      if (rank == 1) candidates.emplace(parameter.dims[0], 0);
    }
    if (candidates.empty()) {  // stacked norms only: the longer side of the smallest matrix
      const WholeParameter* smallest = nullptr;
      for (const WholeParameter& parameter : parameters_)
        if (is_float(parameter) && parameter.dims.size() == 2 &&
            (!smallest || parameter.elements() < smallest->elements()))
          smallest = &parameter;
      constexpr std::int64_t slender = 4;  // layers x width
      if (smallest)
        if (const auto [layers, width] = std::minmax(smallest->dims[0], smallest->dims[1]); layers * slender <= width)
          candidates.emplace(width, 0);
    }
    for (auto& [size, votes] : candidates)
      for (const WholeParameter& parameter : parameters_)
        if (is_float(parameter) && parameter.dims.size() >= 2 && contains(parameter.dims, size)) ++votes;
    int most = 0;
    for (const auto& [size, votes] : candidates)
      if (votes > most || (votes == most && votes > 0 && size > out_.hidden)) {
        most = votes;
        out_.hidden = size;
      }
    if (most == 0) out_.hidden = 0;
  }

  /// Where shardings were found from gathers, some weights have none: one that has the width divided by the devices
  /// is divided there.
  void complete_guesses() {
    const bool guessed = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& p) { return p.guessed; });
    if (!guessed || out_.hidden == 0) return;
    for (WholeParameter& parameter : parameters_) {
      if (!is_float(parameter) || parameter.guessed || parameter.dims.size() < 2 ||
          contains(parameter.dims, out_.hidden))
        continue;
      for (std::size_t d = 0; d < parameter.dims.size(); ++d)
        if (parameter.dims[d] * module_.devices() == out_.hidden) {
          parameter.dims[d] = out_.hidden;
          parameter.axes[d].resize(mesh_.axes.size());
          std::iota(parameter.axes[d].begin(), parameter.axes[d].end(), std::size_t{0});
          parameter.guessed = true;
          break;
        }
    }
  }

  /// How many tensors of each shape there are; the optimizer's states have the shapes of the weights.
  void find_copies() {
    named_ = std::any_of(parameters_.begin(), parameters_.end(),
                         [&](const auto& p) { return is_float(p) && is_named_weight(p); });
    std::map<Dims, std::int64_t> counts;
    for (const WholeParameter& parameter : parameters_)
      if (is_float(parameter) && parameter.dims.size() >= 2) ++counts[parameter.dims];
    std::vector<std::pair<double, std::int64_t>> largest;
    for (const auto& [dims, count] : counts) {
      double elements = 1.0;
      for (const std::int64_t d : dims) elements *= static_cast<double>(d);
      largest.emplace_back(elements, count);
    }
    std::sort(largest.rbegin(), largest.rend());
    std::int64_t divisor = 0;
    constexpr std::size_t looked_at = 8;  // statistics of fp8 and the like are smaller than any weight
    for (std::size_t i = 0; i < std::min(looked_at, largest.size()); ++i)
      divisor = std::gcd(divisor, largest[i].second);
    constexpr std::int64_t most_copies = 4;  // a master copy, two moments and the weights
    out_.copies = divisor >= 1 && divisor <= most_copies ? divisor : 1;
  }

  /// Of each kind of element, how many large tensors there are: states outnumber weights.
  void find_types() {
    std::map<const hlo::ElementType*, std::int64_t> counts;
    for (const WholeParameter& parameter : parameters_)
      if (is_float(parameter) && parameter.dims.size() >= 2 && contains(parameter.dims, out_.hidden))
        ++counts[parameter.element];
    for (const auto& [type, count] : counts) {
      if (!out_.weight_type || count < counts[out_.weight_type]) out_.weight_type = type;
      if (out_.copies > 1 && (!out_.state_type || count > counts[out_.state_type])) out_.state_type = type;
    }
  }

  /// Weights of the model, one of the copies: shape and sharding, with how many there are.
  void find_layers() {
    for (const WholeParameter& parameter : parameters_) {
      if (!is_float(parameter) || parameter.dims.empty()) continue;
      if (named_ && !is_named_weight(parameter)) continue;
      RecognisedWeight weight;
      weight.element = parameter.element;
      weight.dims = parameter.dims;
      weight.name = parameter.name;
      for (const auto& axes : parameter.axes) {
        std::vector<std::string> names;
        for (const std::size_t axis : axes) names.push_back(mesh_.axes[axis].name);
        weight.axes.push_back(join(names, "*"));
      }
      const auto known = std::find_if(out_.weights.begin(), out_.weights.end(), [&](const RecognisedWeight& other) {
        return other.dims == weight.dims && other.axes == weight.axes;
      });
      if (known == out_.weights.end()) {
        weight.count = 1;
        out_.weights.push_back(std::move(weight));
      } else {
        ++known->count;
      }
    }
    const std::int64_t copies = named_ ? 1 : out_.copies;
    for (RecognisedWeight& weight : out_.weights) weight.count = weight.count % copies == 0 ? weight.count / copies : 0;
    std::erase_if(out_.weights, [](const RecognisedWeight& weight) { return weight.count == 0; });
    find_stacks();
    for (const RecognisedWeight& weight : out_.weights) out_.parameters += weight.elements();
  }

  /// Stacked layers have norms of width x layers or layers x width.
  void find_stacks() {
    const std::int64_t d = out_.hidden;
    std::map<std::int64_t, std::size_t> stacks;  // layers, place of the dimension
    std::int64_t norms = 0;
    for (const RecognisedWeight& weight : out_.weights)
      if (weight.dims == Dims{d}) norms += weight.count;
    constexpr std::int64_t outside = 2;  // norms of no layer: before the head, and of the embedding
    for (const RecognisedWeight& weight : out_.weights) {
      if (norms > outside) break;
      if (weight.dims.size() != 2 || !contains(weight.dims, d)) continue;
      const std::size_t place = weight.dims[0] == d ? 1 : 0;
      const std::int64_t layers = weight.dims[place];
      const bool others = std::any_of(out_.weights.begin(), out_.weights.end(), [&](const RecognisedWeight& other) {
        return other.dims.size() >= 3 && other.dims[place] == layers && contains(other.dims, d);
      });
      if (others && layers < d) stacks.emplace(layers, place);
    }
    for (const auto& [layers, place] : stacks) out_.layers += layers;
    out_.stacked = !stacks.empty();
    for (RecognisedWeight& weight : out_.weights)
      for (const auto& [layers, place] : stacks)
        if (weight.dims.size() >= 2 && place < weight.dims.size() && weight.dims[place] == layers) {
          weight.dims.erase(weight.dims.begin() + static_cast<std::ptrdiff_t>(place));
          weight.axes.erase(weight.axes.begin() + static_cast<std::ptrdiff_t>(place));
          weight.count *= layers;
          weight.in_layers = true;
          break;
        }
    if (out_.stacked) {  // statistics have the layers in another place
      std::erase_if(out_.weights, [&](const RecognisedWeight& weight) {
        return !weight.in_layers && weight.dims.size() >= 2 && !contains(weight.dims, d) &&
               std::any_of(stacks.begin(), stacks.end(),
                           [&](const auto& stack) { return contains(weight.dims, stack.first); });
      });
      return;
    }
    // Layers one by one: the rarest matrix of those that occur more often than embeddings do.
    std::int64_t fewest = 0;
    for (const RecognisedWeight& weight : out_.weights)
      if (weight.dims.size() >= 2 && weight.count > 2 && contains(weight.dims, d) &&
          (fewest == 0 || weight.count < fewest))
        fewest = weight.count;
    out_.layers = fewest;
    for (RecognisedWeight& weight : out_.weights) weight.in_layers = fewest > 0 && weight.count >= fewest;
  }

  void find_sizes() {
    const std::int64_t d = out_.hidden;
    if (d == 0) return;
    std::int64_t outer = 0, inner = 0;
    for (const RecognisedWeight& weight : out_.weights) {  // experts: [experts, width, inner], with a router
      const bool routed = std::any_of(out_.weights.begin(), out_.weights.end(), [&](const RecognisedWeight& other) {
        return other.dims.size() == 2 && contains(other.dims, d) && contains(other.dims, weight.dims[0]);
      });
      if (weight.dims.size() == 3 && weight.dims[1] == d && weight.dims[0] != d && routed) {
        out_.experts = weight.dims[0];
        out_.intermediate = weight.dims[2];
      }
    }
    for (RecognisedWeight& weight : out_.weights) {
      const Dims& dims = weight.dims;
      const bool in_layers = weight.in_layers;
      if (dims.size() == 1) {
        weight.role = dims[0] == d ? "norm" : "vector";
        if (dims[0] != d && in_layers) out_.qk_norm = true;
      } else if (dims.size() == 2 && contains(dims, d)) {
        const std::int64_t other = dims[0] == d ? dims[1] : dims[0];
        if (!in_layers && other > d / 2) {
          weight.role = "embedding or head";
          out_.vocabulary = std::max(out_.vocabulary, other);
          outer += weight.count;
        } else if (out_.experts > 0 && other == out_.experts) {
          weight.role = "router";
        } else {
          weight.role = "matrix";
          inner = std::max(inner, other);
        }
      } else if (dims.size() == 3 && out_.experts > 0 && dims[0] == out_.experts && (dims[1] == d || dims[2] == d)) {
        weight.role = "experts";
      } else if (dims.size() == 3 && dims[2] == d) {
        weight.role = "attention output";
        out_.heads = dims[0];
        out_.head_dim = dims[1];
      } else {
        weight.role = "other";
      }
    }
    for (RecognisedWeight& weight : out_.weights) {
      if (weight.role == "matrix") weight.role = contains(weight.dims, inner) ? "feed-forward" : "attention";
      if (weight.role != "other" || weight.dims.size() != 3 || weight.dims[0] != d || weight.dims[2] != out_.head_dim)
        continue;
      const bool query = weight.dims[1] == out_.heads;
      weight.role = query ? "query" : "keys and values";
      if (!query) out_.kv_heads = weight.dims[1];
      // Queries, keys and values of one shape: as many heads of each.
      if (query && out_.layers > 0 && weight.count >= 3 * out_.layers) weight.role = "queries, keys and values";
    }
    (out_.experts > 0 ? out_.dense_width : out_.intermediate) = inner;
    if (out_.heads > 0 && out_.kv_heads == 0) out_.kv_heads = out_.heads;
    merge();
    double known = 0.0;
    for (const RecognisedWeight& weight : out_.weights)
      if (weight.role != "other") known += weight.elements();
    out_.gated = count_of(out_.experts > 0 ? "experts" : "feed-forward") != 2 * out_.layers;
    if (out_.parameters > 0.0) out_.explained = known / out_.parameters;
    out_.tied = out_.vocabulary > 0 && outer == 1;
  }

  /// Weights that differ in nothing but where they stand in the program.
  void merge() {
    std::vector<RecognisedWeight> merged;
    for (RecognisedWeight& weight : out_.weights) {
      const auto known = std::find_if(merged.begin(), merged.end(), [&](const RecognisedWeight& other) {
        return other.dims == weight.dims && other.axes == weight.axes && other.role == weight.role;
      });
      if (known == merged.end())
        merged.push_back(std::move(weight));
      else
        known->count += weight.count;
    }
    out_.weights = std::move(merged);
  }

  /// Attention kernels know their heads where the weights are plain matrices.
  void find_attention() {
    for (const ProgramKernel& kernel : kernels_.kernels) {
      if (!kernel.work.attention) continue;
      const hlo::FusedAttention& attention = *kernel.work.attention;
      if (out_.heads == 0) out_.heads = static_cast<std::int64_t>(attention.heads);
      if (out_.kv_heads == 0) out_.kv_heads = static_cast<std::int64_t>(attention.kv_heads);
      if (out_.head_dim == 0) out_.head_dim = static_cast<std::int64_t>(attention.head_dim);
      if (!out_.sequence) out_.sequence = static_cast<std::int64_t>(attention.keys);
    }
  }

  /// The experts of a token are the largest few of the router's scores.
  void find_choice() {
    if (out_.experts == 0) return;
    for (const Computation& computation : module_.computations)
      for (const Instruction& at : computation.instructions) {
        if ((at.opcode != "topk" && !at.calls(hlo::CallKind::top_k)) || at.shape.members.empty() ||
            at.shape.members[0].dims.empty())
          continue;
        const std::int64_t picked = at.shape.members[0].dims.back();
        if (picked < out_.experts) out_.experts_per_token = std::max(out_.experts_per_token, picked);
      }
  }

  /// Tokens are whole numbers of batch x sequence.
  void find_inputs() {
    std::map<Dims, int> shapes;
    for (const WholeParameter& parameter : parameters_)
      if (parameter.element && !parameter.element->is_float && parameter.element->name != "pred" &&
          parameter.dims.size() == 2 && parameter.element->name.front() == 's')
        ++shapes[parameter.dims];
    const auto most = std::max_element(shapes.begin(), shapes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == shapes.end()) return;
    out_.batch = most->first[0];
    out_.sequence = most->first[1];
    inputs_ = most->first;
    // Who predicts the next token of each cuts the last one off.
    for (const Computation& computation : module_.computations)
      for (const Instruction& at : computation.instructions)
        if (at.opcode == "slice" && at.shape.element && !at.shape.element->is_float && at.shape.dims.size() == 2 &&
            at.shape.dims[1] == inputs_[1] - 1 &&
            at.attribute("slice").find(fmt::format("[0:{}", inputs_[1] - 1)) != std::string_view::npos)
          out_.sequence = inputs_[1] - 1;
    // Token inputs of a program that is cut off have no sharding: each device then has its part of the batch.
    const bool guessed = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& p) { return p.guessed; });
    if (guessed) out_.batch = *out_.batch * module_.devices();
  }

  void find_axes() {
    out_.axes.resize(mesh_.axes.size());
    const bool guessed = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& p) { return p.guessed; });
    for (const WholeParameter& parameter : parameters_)
      for (std::size_t d = 0; d < parameter.axes.size(); ++d)
        for (const std::size_t axis : parameter.axes[d]) {
          AxisUse& use = out_.axes[axis];
          if (is_float(parameter)) {
            use.weights = true;
            const bool of_experts =
                out_.experts > 0 && parameter.dims.size() >= 3 && d == 0 && parameter.dims[d] == out_.experts;
            use.experts = use.experts || of_experts;
          } else if (parameter.dims == inputs_) {
            (d == 0 ? use.batch : use.sequence) = true;
          }
        }
    if (guessed)
      for (AxisUse& use : out_.axes) use.batch = use.batch || use.weights;
  }

  /// A weight makes three products in training: forward, and the gradients of its input and of itself.
  void find_recompute() {
    const std::int64_t inner = out_.intermediate;
    double products = 0.0, forward = 0.0, backward = 0.0;
    bool marked = false;
    for (const Computation& computation : module_.computations)
      for (const Instruction& at : computation.instructions)
        marked = marked || at.op_name().find("rematted_computation") != std::string_view::npos;
    for (const ProgramKernel& kernel : kernels_.kernels) {
      if (kernel.work.attention) (kernel.work.attention->backward() ? backward : forward) += kernel.calls;
      for (const hlo::Product& product : kernel.work.products) {
        const auto is = [&](double size) { return size == static_cast<double>(inner) || size == local(inner); };
        const auto wide = [&](double size) { return size == static_cast<double>(out_.hidden); };
        const bool sizes = (is(product.n) && wide(product.k)) || (is(product.k) && wide(product.n)) ||
                           (is(product.m) && wide(product.n)) || (wide(product.m) && is(product.n));
        if (inner > 0 && sizes) products += kernel.calls;
      }
    }
    const auto weights = static_cast<double>(count_of("feed-forward") + count_of("experts"));
    out_.trains = out_.copies > 1 || backward > 0.0 || !module_.aliases.empty();
    if (module_.entry == hlo::no_computation) {
      if (marked) out_.recompute = "full";
      return;
    }
    if (weights > 0.0) out_.weight_products = products / weights;
    if (!out_.trains || weights == 0.0 || out_.weight_products < 2.5) return;
    // With everything computed again, the last product of a block is not needed: 11 products for three weights.
    const bool all = out_.weight_products > 3.6,
               some = out_.weight_products > 3.05 || (backward > 0.0 && forward > backward * 1.01);
    out_.recompute = all ? "full" : some ? "selective" : "none";
  }

  std::int64_t count_of(std::string_view role) const {
    std::int64_t out = 0;
    for (const RecognisedWeight& weight : out_.weights) out += weight.role == role ? weight.count : 0;
    return out;
  }

  /// A dimension as one device has it, where the mesh divides it.
  double local(std::int64_t size) const {
    for (const WholeParameter& parameter : parameters_)
      for (std::size_t d = 0; d < parameter.dims.size(); ++d)
        if (parameter.dims[d] == size && parameter.local[d] != size) return static_cast<double>(parameter.local[d]);
    return static_cast<double>(size);
  }

  const hlo::Module& module_;
  const hlo::ProgramMesh& mesh_;
  const ProgramKernels& kernels_;
  std::vector<WholeParameter> parameters_;
  Dims inputs_;
  bool named_ = false;
  RecognisedModel out_;
};

}  // namespace

double RecognisedWeight::elements() const {
  double out = static_cast<double>(count);
  for (const std::int64_t size : dims) out *= static_cast<double>(size);
  return out;
}

std::string AxisUse::role() const {
  std::vector<std::string> parts;
  if (weights && batch)
    parts.emplace_back("fsdp");
  else if (batch)
    parts.emplace_back("data");
  if (sequence) parts.emplace_back(weights && !batch ? "fsdp + context" : "context");
  if (weights && !batch && !sequence && !experts) parts.emplace_back("tensor");
  if (experts) parts.emplace_back("expert");
  return join(parts, " + ");
}

RecognisedModel recognise(const hlo::Module& module, const hlo::ProgramMesh& mesh, const ProgramKernels& kernels) {
  return Recogniser(module, mesh, kernels).find();
}

}  // namespace assay::compare
