#include "assay/engine/program/published_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "assay/base/index.h"
#include "assay/base/text.h"
#include "assay/model/weights.h"

namespace assay::engine {
namespace {

using model::LogicalDim;
using model::Weight;

double half_precision(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

template <class T, class Convert>
std::vector<double> converted(const std::string& bytes, Convert convert) {
  std::vector<double> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
  return out;
}

Result<std::vector<double>> values_of(const model::CheckpointTensor& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.bytes.in(1_B)), '\0');
  std::ifstream in(tensor.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(tensor.offset));
  if (!in.read(bytes.data(), std::ssize(bytes)))
    return fail(tensor.file, fmt::format("the values of {} cannot be read", in_quotes(tensor.name)), "is it complete?");
  if (tensor.dtype == "F32") return converted<float>(bytes, [](float v) { return static_cast<double>(v); });
  if (tensor.dtype == "F64") return converted<double>(bytes, [](double v) { return v; });
  if (tensor.dtype == "F16") return converted<std::uint16_t>(bytes, half_precision);
  if (tensor.dtype == "BF16")
    return converted<std::uint16_t>(bytes, [](std::uint16_t v) {
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16));
    });
  return fail(tensor.file, fmt::format("{} is in {}", in_quotes(tensor.name), tensor.dtype),
              "weights in F64, F32, F16 and BF16 are run; others are packed");
}

/// A weight as a matrix of inputs and outputs; what multiplies nothing has one input.
struct MatrixSize {
  std::int64_t in = 1, out = 1;
};
MatrixSize matrix_size(const Weight& weight) {
  const bool of_experts = weight.dims[0].dim == LogicalDim::experts && weight.rank > 1;
  const std::size_t first = of_experts ? 1 : 0;
  std::size_t last = first + (weight.matrix ? 1 : 0);
  if (weight.matrix && weight.dims[weight.rank - 1u].dim == LogicalDim::d_model) last = weight.rank - 1u;
  MatrixSize size;
  for (std::size_t i = first; i < weight.rank; ++i) (i < last ? size.in : size.out) *= weight.dims[i].size;
  return size;
}

class Loader {
 public:
  Loader(const model::Checkpoint& files, const model::Published& stored, const model::Transformer& model)
      : stored_(stored), model_(model) {
    for (const model::CheckpointTensor& tensor : files.tensors) tensors_[tensor.name] = &tensor;
  }

  NamedArrays out;

  Result<void> load() {
    ASSAY_CHECK(load(model::outer_weights(model_), -1));
    for (std::int64_t layer = 0; layer < model_.decoder.layers(); ++layer)
      ASSAY_CHECK(load(model::layer_weights(model_, kind_of(layer)), layer));
    for (const auto& [name, tensor] : tensors_) {
      const auto head = stored_.outer.find("W_head");
      const bool copies = model_.tied && head != stored_.outer.end() && name == head->second.tensor;
      if (!used_.contains(name) && !copies && model::counts_as_parameter(name))
        return fail(tensor->file, fmt::format("{} is no weight of the model as it is run", in_quotes(name)),
                    "is the config.json that of these files?");
    }
    return {};
  }

 private:
  const model::Layer& kind_of(std::int64_t layer) const {
    return model_.decoder.kinds[model_.decoder.order[at(layer)]];
  }

  Result<void> load(const std::vector<Weight>& weights, std::int64_t layer) {
    std::map<std::string_view, int> seen;
    for (const Weight& weight : weights) {
      std::string name(weight.name);
      if (const int times = ++seen[weight.name]; times > 1) name += fmt::format(".{}", times);
      ASSAY_TRY(array, read(weight, name, weights, layer));
      adjust(array, weight, layer);
      out[layer < 0 ? name : fmt::format("{}.{}", layer, name)] = std::move(array);
    }
    return {};
  }

  const model::StoredWeight* place_of(const std::string& name, std::int64_t layer) const {
    const auto in = [&](const auto& table) {
      const auto found = table.find(name);
      return found == table.end() ? nullptr : &found->second;
    };
    if (layer < 0) return in(stored_.outer);
    const model::StoredWeight* own = kind_of(layer).has_experts() ? in(stored_.experts) : nullptr;
    return own ? own : in(stored_.layer);
  }

  /// Files of the bare model leave out the first word of a name: "transformer.".
  const model::CheckpointTensor* find(const std::string& name) {
    for (const std::string& text : {name, name.substr(name.find('.') + 1)})
      if (const auto found = tensors_.find(text); found != tensors_.end()) {
        used_.insert(text);
        return found->second;
      }
    return nullptr;
  }

  Result<Array> read(const Weight& weight, const std::string& name, const std::vector<Weight>& others,
                     std::int64_t layer) {
    const model::StoredWeight* place = place_of(name, layer);
    if (!place)
      return fail("config.json", fmt::format("the weight {} has no name in such checkpoints", name),
                  "catalogue/checkpoints has the names of each family; --as FAMILY takes those of another one");
    Array array;
    for (std::size_t i = 0; i < weight.rank; ++i) array.shape.push_back(weight.dims[i].size);
    const std::string text = layer < 0 ? place->tensor : stored_.prefix + place->tensor;
    const bool of_experts = text.find("{expert}") != std::string::npos;
    const std::int64_t pieces = of_experts ? array.shape[0] : 1;
    for (std::int64_t expert = 0; expert < pieces; ++expert) {
      const std::string full =
          replaced(replaced(text, "{layer}", std::to_string(layer)), "{expert}", std::to_string(expert));
      const model::CheckpointTensor* tensor = find(full);
      if (!tensor) return fail("safetensors", fmt::format("no tensor {}", in_quotes(full)), "is the model complete?");
      ASSAY_TRY(values, piece(*tensor, weight, *place, others));
      array.values.insert(array.values.end(), values.begin(), values.end());
    }
    if (std::ssize(array.values) != element_count(array.shape))
      return fail("safetensors", fmt::format("{} has {} elements, the model's has {}", in_quotes(text),
                                             array.values.size(), element_count(array.shape)));
    return array;
  }

  static std::string replaced(std::string text, std::string_view what, const std::string& by) {
    if (const std::size_t found = text.find(what); found != std::string::npos) text.replace(found, what.size(), by);
    return text;
  }

  /// What a tensor holds of a weight, inputs outermost.
  Result<std::vector<double>> piece(const model::CheckpointTensor& tensor, const Weight& weight,
                                    const model::StoredWeight& place, const std::vector<Weight>& others) const {
    ASSAY_TRY(values, values_of(tensor));
    if (!weight.matrix && place.parts.empty()) return std::move(values);
    const MatrixSize own = matrix_size(weight);
    std::int64_t all = 0, before = 0, turn = 0, last = own.out;
    for (std::size_t i = 0; i < place.parts.size(); ++i)
      for (const Weight& part : others)
        if (part.name == place.parts[i]) {
          if (part.name == weight.name) before = all, turn = static_cast<std::int64_t>(i);
          all += matrix_size(part).out;
        }
    if (place.parts.empty()) all = own.out;
    if (place.woven) last = weight.dims[weight.rank - 1u].size;  // of a head
    if (std::ssize(values) != own.in * all)
      return fail(tensor.file, fmt::format("{} has {} elements, the model's has {}", in_quotes(tensor.name),
                                           values.size(), own.in * all));
    const std::int64_t parts = std::ssize(place.parts);
    std::vector<double> made(at(own.in * own.out));
    for (std::int64_t o = 0; o < own.out; ++o) {
      const std::int64_t row = place.woven ? (o / last * parts + turn) * last + o % last : before + o;
      for (std::int64_t i = 0; i < own.in; ++i)
        made[at(i * own.out + o)] = values[at(stored_.transposed ? i * all + row : row * own.in + i)];
    }
    return made;
  }

  /// Numbers of the model that are part of its weights from here on.
  void adjust(Array& array, const Weight& weight, std::int64_t layer) const {
    const std::string_view name = weight.name;
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto scale = [&](double by) {
      for (double& value : array.values) value *= by;
    };
    if (is({"norm", "q_norm", "k_norm"}))
      for (double& value : array.values) value += stored_.norm_offset;
    if (is({"embedding"})) scale(stored_.embedding_scale);
    if (is({"W_o", "b_o", "W_out", "b_out", "W_out_shared"})) scale(stored_.residual_scale);
    if (layer < 0) return;
    const model::Layer& kind = kind_of(layer);
    const bool has_norm = kind.attention && kind.attention->qk_norm != model::Attention::QkNorm::none;
    if (has_norm ? is({"q_norm"}) : is({"W_q", "b_q"})) scale(stored_.query_scale);
    if (is({"W_q", "W_k", "b_q", "b_k", "q_norm", "k_norm"})) turn_last(array);
  }

  /// The first numbers of a head turn, or neighbours of them; in the engine, halves of the last ones do.
  void turn_last(Array& array) const {
    const std::int64_t head = array.shape.back(), turned = 2 * std::ssize(model_.definition.rotary.frequencies);
    if (turned == 0 || turned > head) return;
    std::vector<double> old(at(head));
    for (std::size_t row = 0; row < array.values.size(); row += at(head)) {
      std::copy_n(array.values.begin() + static_cast<std::ptrdiff_t>(row), head, old.begin());
      for (std::int64_t j = 0; j < head; ++j) {
        const std::int64_t i = j - (head - turned), half = turned / 2;
        std::int64_t from = turned + j;
        if (i >= 0) from = !stored_.pairs ? i : i < half ? 2 * i : 2 * (i - half) + 1;
        array.values[row + at(j)] = old[at(from)];
      }
    }
  }

  const model::Published& stored_;
  const model::Transformer& model_;
  std::map<std::string, const model::CheckpointTensor*> tensors_;
  std::set<std::string> used_;
};

}  // namespace

Result<NamedArrays> published_weights(const model::Checkpoint& files, const model::Published& stored,
                                      const model::Transformer& model) {
  Loader loader(files, stored, model);
  ASSAY_CHECK(loader.load());
  return std::move(loader.out);
}

}  // namespace assay::engine
