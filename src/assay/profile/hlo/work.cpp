#include "assay/profile/hlo/work.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

// Opcodes between blanks.
constexpr std::string_view transcendental_opcodes =
    " exponential exponential-minus-one log log-plus-one power sqrt rsqrt cbrt tanh sine tan cosine atan2 logistic "
    "erf erf-inv erfc lgamma digamma asin acos atan sinh cosh asinh acosh atanh ";
constexpr std::string_view element_wise_opcodes =
    " add subtract multiply divide maximum minimum negate square abs sign compare select and or xor not convert "
    "clamp floor ceil round-nearest-afz round-nearest-even remainder is-finite shift-left shift-right-logical "
    "shift-right-arithmetic popcnt clz real imag complex reduce-precision stochastic-convert ";
constexpr std::string_view free_opcodes =
    " parameter captured constant tuple get-tuple-element bitcast after-all partition-id replica-id "
    "optimization-barrier add-dependency domain get-dimension-size token ";
constexpr std::string_view fusible_opcodes =
    " broadcast reshape iota slice dynamic-slice concatenate pad transpose copy reverse bitcast-convert reduce "
    "dynamic-update-slice map gather ";

/// Whether an opcode is one of a list.
bool among(std::string_view list, std::string_view opcode) {
  for (std::size_t at = list.find(opcode); at != std::string_view::npos; at = list.find(opcode, at + 1))
    if (list[at - 1] == ' ' && list[at + opcode.size()] == ' ') return true;
  return false;
}

double product_of(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& which) {
  double out = 1.0;
  for (const std::int64_t i : which)
    if (i >= 0 && static_cast<std::size_t>(i) < dims.size())
      out *= static_cast<double>(dims[static_cast<std::size_t>(i)]);
  return out;
}

/// The format of a product: of the wider operand.
std::optional<Dtype> product_format(const Shape& a, const Shape& b) {
  if (!a.element || !b.element || !a.element->format || !b.element->format) return std::nullopt;
  return product_dtype(*a.element->format, *b.element->format);
}

const Shape& operand_shape(const Computation& computation, const Instruction& instruction, std::size_t i) {
  return computation.instructions[instruction.operands[i]].shape;
}

struct DotDims {
  std::vector<std::int64_t> contracting[2], batch[2];
};

/// The alignment of the rows of an operand of a product or of its result: what lies side by side in memory and is, as
/// the dimension that lies innermost, among `of` or not.
double alignment_of_rows(const Shape& shape, const std::vector<std::int64_t>& of) {
  if (!shape.element || !shape.element->format) return kernel::cache_line;
  const auto listed = [&](std::int64_t dim) { return std::find(of.begin(), of.end(), dim) != of.end(); };
  double row = 1.0;
  std::optional<bool> first;
  for (std::size_t i = 0; i < shape.dims.size(); ++i) {
    const std::int64_t dim = shape.layout.minor_to_major.empty() ? static_cast<std::int64_t>(shape.dims.size() - 1 - i)
                                                                 : shape.layout.minor_to_major[i];
    const std::int64_t size = shape.dims[static_cast<std::size_t>(dim)];
    if (size == 1) continue;
    if (first.value_or(listed(dim)) != listed(dim)) break;
    first = listed(dim);
    row *= static_cast<double>(size);
  }
  return kernel::row_alignment(*shape.element->format, row);
}

Product dot_product(const Computation& computation, const Instruction& dot, const DotDims& dims) {
  const Shape &a = operand_shape(computation, dot, 0), &b = operand_shape(computation, dot, 1);
  const Shape& made = dot.shape.members.empty() ? dot.shape : dot.shape.members.front();
  Product out;
  out.batch = product_of(a.dims, dims.batch[0]);
  out.k = product_of(a.dims, dims.contracting[0]);
  const double other = product_of(b.dims, dims.contracting[1]) * product_of(b.dims, dims.batch[1]);
  out.m = out.batch * out.k > 0.0 ? a.elements() / (out.batch * out.k) : 0.0;
  out.n = other > 0.0 ? b.elements() / other : 0.0;
  out.format = product_format(a, b);
  out.operand_rows = std::min(alignment_of_rows(a, dims.contracting[0]), alignment_of_rows(b, dims.contracting[1]));
  // The result has the dimensions of both, those of the second operand last.
  std::vector<std::int64_t> columns(b.dims.size() -
                                    std::min(b.dims.size(), dims.contracting[1].size() + dims.batch[1].size()));
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i] = static_cast<std::int64_t>(made.dims.size()) - 1 - static_cast<std::int64_t>(i);
  out.result_rows = alignment_of_rows(made, columns);
  return out;
}

/// Pairs of a place of the result and a place of the window that fall on an element of the input.
double valid_places(double input, double window, double output, const std::vector<double>& rule) {
  const double stride = rule[0], low = rule[1], window_step = rule[2], input_step = rule[3];
  constexpr double most_places = 1 << 22;
  if (output * window > most_places) return output * window;
  double out = 0.0;
  for (double o = 0.0; o < output; o += 1.0)
    for (double w = 0.0; w < window; w += 1.0) {
      const double at = o * stride - low + w * window_step;
      if (at < 0.0 || std::fmod(at, input_step) != 0.0 || at / input_step >= input) continue;
      out += 1.0;
    }
  return out;
}

}  // namespace

std::vector<double> window_numbers(std::string_view window, std::string_view key, double standard, std::size_t rank) {
  std::vector<double> out(rank, standard);
  const std::size_t at = window.find(key);
  if (at == std::string_view::npos || (at > 0 && window[at - 1] != ' ' && window[at - 1] != '{')) return out;
  std::string_view text = window.substr(at + key.size());
  text = text.substr(0, text.find_first_of(" }"));
  const std::vector<std::string> parts = split(text, 'x');
  for (std::size_t i = 0; i < std::min(rank, parts.size()); ++i)
    if (const auto numbers = number_list(parts[i]); !numbers.empty()) out[i] = static_cast<double>(numbers.front());
  return out;
}

std::optional<std::array<std::string_view, 3>> convolution_labels(const Instruction& convolution) {
  const std::string_view labels = convolution.attribute("dim_labels");
  const std::size_t under = labels.find('_'), arrow = labels.find("->");
  if (under == std::string_view::npos || arrow == std::string_view::npos || arrow < under) return std::nullopt;
  return std::array{labels.substr(0, under), labels.substr(under + 1, arrow - under - 1), labels.substr(arrow + 2)};
}

namespace {

/// Convolutions are products, too: a window over the input is one more dimension that is summed over. Gradients sum
/// over the same places; what is made there is the kernel or the input.
std::optional<Product> convolution_product(const Computation& computation, const Instruction& convolution) {
  const auto labels = convolution_labels(convolution);
  if (!labels || convolution.operands.size() < 2) return std::nullopt;
  const auto& of = *labels;
  const std::string_view window = convolution.attribute("window");
  const Shape& made = convolution.shape.members.empty() ? convolution.shape : convolution.shape.members.front();
  const Shape* shapes[3] = {&operand_shape(computation, convolution, 0), &operand_shape(computation, convolution, 1),
                            &made};
  const ConvolutionPart makes = convolution.call ? convolution.call->makes : ConvolutionPart::output;
  if (makes != ConvolutionPart::output) std::swap(shapes[2], shapes[makes == ConvolutionPart::input ? 0 : 1]);
  for (std::size_t i = 0; i < 3; ++i)
    if (of[i].size() != shapes[i]->dims.size()) return std::nullopt;
  const auto size = [&](std::size_t which, char label) {
    const std::size_t at = of[which].find(label);
    return at == std::string_view::npos ? 1.0 : static_cast<double>(shapes[which]->dims[at]);
  };
  const std::size_t rank = of[0].size() >= 2 ? of[0].size() - 2 : 0;
  const auto strides = window_numbers(window, "stride=", 1.0, rank), pads = window_numbers(window, "pad=", 0.0, rank),
             steps = window_numbers(window, "rhs_dilate=", 1.0, rank),
             input_steps = window_numbers(window, "lhs_dilate=", 1.0, rank);
  double places = 1.0, outputs = 1.0;
  for (std::size_t i = 0; i < rank && i < 10; ++i) {
    const char label = static_cast<char>('0' + i);
    outputs *= size(2, label);
    places *=
        valid_places(size(0, label), size(1, label), size(2, label),
                     {std::max(1.0, strides[i]), pads[i], std::max(1.0, steps[i]), std::max(1.0, input_steps[i])});
  }
  Product out;
  out.n = size(2, 'f');
  out.m = size(2, 'b') * outputs;
  out.k = outputs > 0.0 ? size(1, 'i') * places / outputs : 0.0;
  // With groups of the batch, each output feature sees one group of it alone.
  out.k /= std::max(1.0, parse_number(convolution.attribute("batch_group_count")).value_or(1.0));
  if (makes == ConvolutionPart::kernel) std::swap(out.m, out.k);
  if (makes == ConvolutionPart::input) std::swap(out.n, out.k);
  out.format = product_format(*shapes[0], *shapes[1]);
  return out;
}

/// The list of a key of a dot's dimension numbers in a backend's configuration: ["1"].
std::vector<std::int64_t> config_dims(std::string_view config, std::string_view key) {
  const std::size_t at = config.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t open = config.find('[', at), close = config.find(']', at);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return number_list(config.substr(open, close - open));
}

/// Sizes that a call's configuration states by their keys.
void read_stated(FusedAttention& out, const AttentionKeys& keys, std::string_view config, double width) {
  const auto number = [&](const std::string& key, double usual) { return number_after(config, key).value_or(usual); };
  out.batch = number(keys.batch, 1.0);
  out.heads = number(keys.heads, 1.0);
  out.kv_heads = number(keys.kv_heads, out.heads);
  out.queries = number(keys.queries, 1.0);
  out.keys = number(keys.keys, 1.0);
  out.head_dim = number(keys.head_dim, number(keys.width, width));
}

/// Sizes of scores that are never stored: [batch, heads, queries, keys].
bool read_scores(FusedAttention& out, const std::vector<std::int64_t>& scores, const Shape& q, const Shape& k) {
  if (scores.size() != 4) return false;
  out.batch = static_cast<double>(scores[0]);
  out.heads = static_cast<double>(scores[1]);
  out.queries = static_cast<double>(scores[2]);
  out.keys = static_cast<double>(scores[3]);
  const double rows = out.batch * out.heads * out.queries;
  out.head_dim = rows > 0.0 ? q.elements() / rows : 0.0;
  const double of_a_head = out.batch * out.keys * out.head_dim;
  out.kv_heads = of_a_head > 0.0 ? k.elements() / of_a_head : 1.0;
  return true;
}

/// Sizes of the operands: [heads, queries, dim], perhaps with the batch before.
bool read_shapes(FusedAttention& out, const Shape& q, const Shape& k) {
  const std::size_t rank = q.dims.size();
  if (rank > 4 || k.dims.size() != rank) return false;
  const auto dim = [](const Shape& shape, std::size_t i) { return static_cast<double>(shape.dims[i]); };
  if (rank == 4) out.batch = dim(q, 0);
  out.heads = dim(q, rank - 3);
  out.kv_heads = dim(k, rank - 3);
  out.queries = dim(q, rank - 2);
  out.keys = dim(k, rank - 2);
  out.head_dim = dim(q, rank - 1);
  return true;
}

std::optional<FusedAttention> attention_call(const Computation& computation, const Instruction& call) {
  std::vector<const Shape*> tensors;
  for (const std::uint32_t operand : call.operands)
    if (const Shape& shape = computation.instructions[operand].shape;
        shape.element && shape.element->is_float && shape.dims.size() >= 3)
      tensors.push_back(&shape);
  if (!call.calls(CallKind::attention) || tensors.size() < 2) return std::nullopt;
  const LibraryCall& rule = *call.call;
  const std::string_view target = call.call_target(), config = call.attribute("backend_config");
  const Shape &q = *tensors[0], &k = *tensors[1];
  FusedAttention out;
  out.query = out.cache = q.element->format.value_or(Dtype::bf16);
  if (!rule.sizes.heads.empty()) {
    read_stated(out, rule.sizes, config, static_cast<double>(q.dims.back()));
  } else if (!rule.scores.empty()) {
    const auto scores = config_dims(config.substr(std::min(config.find(rule.scores), config.size())), "dimensions");
    if (!read_scores(out, scores, q, k) && !read_shapes(out, q, k)) return std::nullopt;
  } else if (!read_shapes(out, q, k)) {
    return std::nullopt;
  }
  if (rule.causal_from)
    if (const auto mask = number_after(config, rule.mask)) {
      out.says_mask = true;
      out.causal = *mask >= *rule.causal_from;
    }
  if (!rule.causal_words.empty())
    if (const auto mask = text_after(config, rule.mask)) {
      out.says_mask = true;
      out.causal = contains_any(*mask, rule.causal_words);
    }
  if (!(out.kv_heads > 0.0)) out.kv_heads = out.heads;
  out.value_dim = out.head_dim;
  if (rule.is_backward(target, call.name)) out.passes = roofline::AttentionPasses::backward;
  out.forward_passes = rule.forward_passes(target, call.name);
  return out;
}

/// How often the computation that combines two elements does arithmetic: once, in nearly all programs.
double combined(const Module& module, const Instruction& instruction) {
  const std::uint32_t callee = instruction.callee("to_apply");
  if (callee == no_computation) return 1.0;
  double out = 0.0;
  for (const Instruction& inner : module.computations[callee].instructions)
    if (is_element_wise(inner.opcode)) out += 1.0;
  return out;
}

}  // namespace

Flops FusedAttention::flops() const {
  const double pairs = queries * keys * (causal ? 0.5 : 1.0);
  return Flops(4.0 * batch * heads * pairs * head_dim * forward_passes);
}

const Product& Arithmetic::largest() const {
  return *std::max_element(products.begin(), products.end(),
                           [](const Product& a, const Product& b) { return a.flops() < b.flops(); });
}

Flops Arithmetic::matrix() const {
  Flops out(0);
  for (const Product& product : products) out += product.flops();
  if (attention) out += attention->flops();
  return out;
}

Arithmetic& operator+=(Arithmetic& a, const Arithmetic& b) {
  a.element_wise += b.element_wise;
  a.transcendentals += b.transcendentals;
  a.products.insert(a.products.end(), b.products.begin(), b.products.end());
  if (b.attention) a.attention = b.attention;
  return a;
}

bool is_element_wise(std::string_view opcode) {
  return among(element_wise_opcodes, opcode) || among(transcendental_opcodes, opcode);
}

bool is_free(const Instruction& instruction) {
  return among(free_opcodes, instruction.opcode) || is_async_done(instruction) ||
         instruction.opcode.ends_with("-update") || instruction.calls(CallKind::sharding) ||
         instruction.calls(CallKind::to_shards) || instruction.calls(CallKind::to_whole) ||
         instruction.calls(CallKind::placement);
}

bool is_fusible(const Instruction& instruction) {
  return is_element_wise(instruction.opcode) || among(fusible_opcodes, instruction.opcode);
}

Arithmetic arithmetic(const Module& module, const Computation& computation, const Instruction& instruction) {
  Arithmetic out;
  const std::string_view opcode = base_opcode(instruction);
  const double elements = instruction.shape.is_tuple && !instruction.shape.members.empty()
                              ? instruction.shape.members.front().elements()
                              : instruction.shape.elements();
  const auto operand_elements = [&] {
    return instruction.operands.empty() ? 0.0 : operand_shape(computation, instruction, 0).elements();
  };
  if (is_async_done(instruction)) return out;
  if (among(transcendental_opcodes, opcode)) {
    out.transcendentals = elements;
  } else if (among(element_wise_opcodes, opcode)) {
    out.element_wise = Flops(elements);
  } else if ((opcode == "dot" || opcode == "ragged-dot") && instruction.operands.size() >= 2) {
    DotDims dims;
    dims.contracting[0] = number_list(instruction.attribute("lhs_contracting_dims"));
    dims.contracting[1] = number_list(instruction.attribute("rhs_contracting_dims"));
    dims.batch[0] = number_list(instruction.attribute("lhs_batch_dims"));
    dims.batch[1] = number_list(instruction.attribute("rhs_batch_dims"));
    for (const std::int64_t group : number_list(instruction.attribute("rhs_group_dims")))
      dims.batch[1].push_back(group);  // each row is of one group
    out.products.push_back(dot_product(computation, instruction, dims));
  } else if (opcode == "convolution" || instruction.calls(CallKind::convolution)) {
    if (const auto product = convolution_product(computation, instruction)) out.products.push_back(*product);
  } else if (opcode == "reduce") {
    out.element_wise = Flops(std::max(0.0, operand_elements() - elements) * combined(module, instruction));
  } else if (opcode == "reduce-window") {
    double window = 1.0;
    for (const double size :
         window_numbers(instruction.attribute("window"), "size=", 1.0, instruction.shape.dims.size()))
      window *= size;
    out.element_wise = Flops(std::max(0.0, window - 1.0) * elements * combined(module, instruction));
  } else if (opcode == "map" || opcode == "all-reduce" || opcode == "reduce-scatter") {
    double all = instruction.shape.is_tuple ? 0.0 : elements;
    for (const Shape& member : instruction.shape.members) all += member.elements();
    out.element_wise = Flops(all * combined(module, instruction));
  } else if (opcode == "scatter" && instruction.operands.size() >= 3) {
    out.element_wise = Flops(operand_shape(computation, instruction, instruction.operands.size() - 1).elements() *
                             combined(module, instruction));
  } else if (opcode == "sort") {
    const double count = operand_elements();
    if (count > 1.0) out.element_wise = Flops(count * std::ceil(std::log2(count)));
  } else if (opcode == "custom-call") {
    if (instruction.calls(CallKind::product) && instruction.operands.size() >= 2) {
      const std::string_view config = instruction.attribute("backend_config");
      DotDims dims;
      for (std::size_t i = 0; i < 2; ++i) {
        dims.contracting[i] = config_dims(config, instruction.call->contracting[i]);
        dims.batch[i] = config_dims(config, instruction.call->batch[i]);
      }
      out.products.push_back(dot_product(computation, instruction, dims));
    }
    out.attention = attention_call(computation, instruction);
  } else if ((opcode == "fusion" || opcode == "async" || opcode == "call") && instruction.callees.size() == 1) {
    const Computation& callee = module.computations[instruction.callees.front()];
    if (callee.fused || opcode == "async")
      for (const Instruction& inner : callee.instructions) out += arithmetic(module, callee, inner);
  }
  return out;
}

}  // namespace assay::hlo
