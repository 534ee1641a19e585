#include "assay/roofline/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/text.h"

namespace assay::roofline {
namespace {

constexpr double max_size = 1e15;
constexpr std::size_t max_rank = 8;

constexpr PointwiseFunction functions[] = {
    {"copy", 1, 0, false, false, "no arithmetic"},
    {"add", 2, 1, false, false, "one addition per element"},
    {"sub", 2, 1, false, false, "one subtraction per element"},
    {"mul", 2, 1, false, false, "one product per element"},
    {"scale", 1, 1, false, false, "one product per element"},
    {"relu", 1, 1, false, false, "one comparison per element"},
    {"axpy", 2, 2, false, true, "a product and an addition per element"},
    {"fma", 3, 2, false, true, "a product and an addition per element"},
    {"gelu", 1, 8, false, false, "tanh form, each function counted as one"},
    {"silu", 1, 4, false, false, "negate, exp, add, divide"},
    {"swiglu", 2, 5, false, false, "silu and a product"},
    {"softmax", 1, 5, false, false, "max, subtract, exp, sum, divide"},
    {"rmsnorm", 1, 4, false, false, "square, sum, scale, gain"},
    {"layernorm", 1, 7, false, false, "mean, subtract, square, sum, scale, gain, bias"},
    {"sum", 1, 1, true, false, "n - 1 additions per result"},
    {"max", 1, 1, true, false, "n - 1 comparisons per result"},
    {"dot", 2, 2, true, true, "n products and n - 1 additions per result"},
    {"norm", 1, 2, true, true, "n products and n - 1 additions per result"},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

constexpr const char* size_hint = "a size is a whole number from 1 to 9e15, a letter, or both: 8192, 4Ki, B, B=240";

/// "nan" and the like, which other programs print for invalid numbers, are not letters.
bool is_no_number(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word == "nan" || word == "inf" || word == "infinity";
}

double size_product(const OperationTensor& tensor) {
  double product = 1.0;
  for (const OperationSize& size : tensor.sizes) product *= size.value.value_or(1.0);
  return product;
}

std::string size_text(const OperationSize& size) {
  if (size.value && !size.name.empty()) return fmt::format("{}={}", size.name, exact_number(*size.value));
  return size.value ? exact_number(*size.value) : size.name;
}

std::string tensor_text(const OperationTensor& tensor) {
  std::string text = fmt::format("{}[", name(tensor.dtype));
  for (const OperationSize& size : tensor.sizes) text += (&size == &tensor.sizes.front() ? "" : ",") + size_text(size);
  return text + "]";
}

}  // namespace

std::span<const PointwiseFunction> pointwise_functions() { return functions; }

/// A recursive-descent reader over one line of text.
struct OperationParser {
  std::string_view text;
  std::string where;
  std::size_t at = 0;

  tl::unexpected<Error> error(std::size_t position, std::string what, std::string hint) const {
    return fail(fmt::format("{}, character {}", where, position + 1), std::move(what), std::move(hint));
  }
  void skip() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text.substr(at).starts_with(token)) return false;
    at += token.size();
    return true;
  }
  std::string_view word() {
    skip();
    const std::size_t start = at;
    while (at < text.size() && is_name(text[at])) ++at;
    return text.substr(start, at - start);
  }

  Result<OperationSize> size() {
    skip();
    const std::size_t start = at;
    OperationSize size;
    if (at < text.size() && is_letter(text[at])) {
      size.name = word();
      if (is_no_number(size.name))
        return error(start, fmt::format("{} is not a size", in_quotes(size.name)), size_hint);
      if (!accept("=")) return size;
      skip();
    }
    const std::size_t number = at;
    while (at < text.size() && (is_name(text[at]) || text[at] == '.' || text[at] == '-' ||
                                (text[at] == '+' && at > number && (text[at - 1] == 'e' || text[at - 1] == 'E'))))
      ++at;
    auto count = parse_count(text.substr(number, at - number), where);
    if (!count)
      return error(start,
                   fmt::format("{} is not a size", in_quotes(text.substr(start, std::max<std::size_t>(at - start, 1)))),
                   size_hint);
    size.value = static_cast<double>(*count);
    return size;
  }

  Result<std::vector<OperationSize>> sizes() {
    std::vector<OperationSize> all;
    do {
      ASSAY_TRY(one, size());
      all.push_back(one);
      if (all.size() > max_rank) return error(at, "a tensor has at most 8 dimensions", "");
    } while (accept(","));
    return all;
  }

  /// A result may be a single value, bf16[]; an operand has at least one dimension.
  Result<OperationTensor> tensor(bool scalar_allowed = false) {
    skip();
    const std::size_t start = at;
    const std::string_view dtype = word();
    if (dtype.empty()) return error(start, "a tensor is missing", "write dtype[sizes], e.g. bf16[240,8192]");
    OperationTensor tensor;
    auto parsed = parse_dtype(dtype, where);
    if (!parsed) return error(start, parsed.error().what, parsed.error().hint);
    tensor.dtype = *parsed;
    if (!accept("["))
      return error(at, fmt::format("[ is missing after {}", in_quotes(dtype)),
                   "write dtype[sizes], e.g. bf16[240,8192]");
    if (scalar_allowed && accept("]")) return tensor;
    ASSAY_TRY(all, sizes());
    tensor.sizes = all;
    if (!accept("]")) return error(at, "] is missing", "sizes are separated by commas: bf16[240,8192]");
    return tensor;
  }

  Result<Operation> call(std::string_view name, std::size_t start, Dtype dtype) {
    Operation operation;
    std::vector<std::string> known;
    for (const PointwiseFunction& function : pointwise_functions()) {
      known.emplace_back(function.name);
      if (function.name == name) operation.function_ = &function;
    }
    if (!operation.function_)
      return error(start, fmt::format("unknown function {}", in_quotes(name)), suggestion(name, known));
    skip();
    const std::size_t inside = at;
    const std::string_view first = word();
    skip();
    const bool tensor_given = at < text.size() && text[at] == '[' && !first.empty();
    at = inside;
    OperationTensor operand{dtype, {}};
    if (tensor_given) {
      ASSAY_TRY(parsed, tensor());
      operand = parsed;
    } else {
      ASSAY_TRY(parsed, sizes());
      operand.sizes = parsed;
    }
    if (!accept(")")) return error(at, ") is missing", "write one tensor: add(fp32[1Mi]) or add(1Mi)");
    operation.operands_.assign(static_cast<std::size_t>(operation.function_->operands), operand);
    operation.result_ = operand;
    if (operation.function_->reduces) operation.result_.sizes.pop_back();
    if (accept("->")) {
      skip();
      const std::size_t position = at;
      ASSAY_TRY(out, tensor(true));
      const bool scalar = operation.result_.sizes.empty() && size_product(out) == 1.0;
      if (!scalar && !unify(out, operation.result_))
        return error(position,
                     fmt::format("the result has shape {}, not {}", tensor_text(operation.result_), tensor_text(out)),
                     "leave it out, or change only its dtype");
      operation.result_.dtype = out.dtype;
    }
    return operation;
  }

  /// Unifies two sizes of one dimension: their letters and numbers must agree, and a letter takes the other's number.
  static bool unify(OperationSize& a, OperationSize& b) {
    if (!a.name.empty() && !b.name.empty() && a.name != b.name) return false;
    if (a.value && b.value) return *a.value == *b.value;
    (a.value ? b : a).value = a.value ? a.value : b.value;
    return true;
  }
  static bool unify(OperationTensor& a, OperationTensor& b) {
    bool same = a.sizes.size() == b.sizes.size();
    for (std::size_t i = 0; same && i < a.sizes.size(); ++i) same = unify(a.sizes[i], b.sizes[i]);
    return same;
  }

  Result<Operation> product(OperationTensor a) {
    ASSAY_TRY(b, tensor());
    Operation operation;
    std::optional<OperationTensor> out;
    std::size_t out_at = 0;
    if (accept("->")) {
      skip();
      out_at = at;
      ASSAY_TRY(parsed, tensor(true));
      out = parsed;
    }
    const auto distinct_letters = [](const OperationTensor& t) {
      std::set<std::string_view> letters;
      return std::all_of(t.sizes.begin(), t.sizes.end(),
                         [&](const OperationSize& s) { return !s.name.empty() && letters.insert(s.name).second; });
    };
    std::string roles_a(a.sizes.size(), 'm'), roles_b(b.sizes.size(), 'n');
    OperationTensor result{product_dtype(a.dtype, b.dtype), {}};
    if (out && distinct_letters(a) && distinct_letters(b) && distinct_letters(*out)) {
      // Einsum: a letter in both operands is contracted unless the result keeps it.
      const auto holds = [](const OperationTensor& t, const std::string& name) {
        return std::any_of(t.sizes.begin(), t.sizes.end(), [&](const OperationSize& s) { return s.name == name; });
      };
      for (std::size_t i = 0; i < a.sizes.size(); ++i) {
        const std::string& letter = a.sizes[i].name;
        roles_a[i] = !holds(b, letter) ? 'm' : holds(*out, letter) ? 'b' : 'k';
        if (roles_a[i] == 'm' && !holds(*out, letter))
          return error(out_at, fmt::format("{} is in one operand only and not in the result", in_quotes(letter)),
                       "sum it first, or keep it in the result");
      }
      for (std::size_t i = 0; i < b.sizes.size(); ++i) {
        const std::string& letter = b.sizes[i].name;
        roles_b[i] = !holds(a, letter) ? 'n' : holds(*out, letter) ? 'b' : 'k';
        if (roles_b[i] == 'n' && !holds(*out, letter))
          return error(out_at, fmt::format("{} is in one operand only and not in the result", in_quotes(letter)),
                       "sum it first, or keep it in the result");
      }
      for (const OperationSize& size : out->sizes)
        if (!holds(a, size.name) && !holds(b, size.name))
          return error(out_at, fmt::format("{} of the result is in neither operand", in_quotes(size.name)), "");
      result.sizes = out->sizes;
    } else {
      // Dimensions match as in numpy: the last of a with the second to last of b; leading dimensions are a batch.
      const std::size_t ka = a.sizes.size() - 1, kb = b.sizes.size() >= 2 ? b.sizes.size() - 2 : 0;
      roles_a[ka] = roles_b[kb] = 'k';
      const std::size_t batch_a = ka > 0 ? ka - 1 : 0, batch_b = kb;
      for (std::size_t i = 0; i < std::min(batch_a, batch_b); ++i) {
        OperationSize &x = a.sizes[batch_a - 1 - i], &y = b.sizes[batch_b - 1 - i];
        if (!unify(x, y))
          return error(0, fmt::format("batch sizes differ: {} and {}", size_text(x), size_text(y)),
                       "leading dimensions of both operands must agree");
        roles_a[batch_a - 1 - i] = roles_b[batch_b - 1 - i] = 'b';
      }
      // The result starts with the batch dimensions that only b has, and ends with the columns of b.
      for (std::size_t i = 0; i < kb; ++i)
        if (roles_b[i] == 'n') result.sizes.push_back(b.sizes[i]);
      for (std::size_t i = 0; i < ka; ++i) result.sizes.push_back(a.sizes[i]);
      if (kb + 1 < b.sizes.size()) result.sizes.push_back(b.sizes.back());
    }
    if (result.sizes.size() > max_rank)
      return error(0, fmt::format("the result has {} dimensions, a tensor has at most 8", result.sizes.size()), "");
    operation.operands_ = {std::move(a), std::move(b)};
    operation.result_ = std::move(result);
    operation.roles_ = {roles_a, roles_b};
    ASSAY_CHECK(contract(operation));
    if (out) {
      operation.result_.dtype = out->dtype;
      if (!unify(*out, operation.result_))
        return error(out_at,
                     fmt::format("the product has shape {}, not {}", tensor_text(operation.result_), tensor_text(*out)),
                     "leave it out, or change only its dtype");
    }
    return operation;
  }

  /// Contracted sizes must agree in number and in length.
  Result<void> contract(Operation& operation) const {
    std::vector<OperationSize*> left, right;
    for (std::size_t i = 0; i < operation.roles_[0].size(); ++i)
      if (operation.roles_[0][i] == 'k') left.push_back(&operation.operands_[0].sizes[i]);
    for (std::size_t i = 0; i < operation.roles_[1].size(); ++i)
      if (operation.roles_[1][i] == 'k') right.push_back(&operation.operands_[1].sizes[i]);
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      OperationSize& x = *left[i];
      OperationSize* y = right[i];
      if (!x.name.empty())
        for (OperationSize* candidate : right)
          if (candidate->name == x.name) y = candidate;
      if (!unify(x, *y))
        return error(0, fmt::format("contracting sizes differ: {} and {}", size_text(x), size_text(*y)),
                     "the last size of the first operand must equal the second-to-last of the second");
    }
    return {};
  }
};

Result<Operation> parse_operation(std::string_view text, std::string_view where, Dtype default_dtype) {
  if (text.size() > 4096) return fail(std::string(where), "the operation is longer than 4096 bytes", "");
  OperationParser parser{text, std::string(where), 0};
  parser.skip();
  const std::size_t start = parser.at;
  const std::string_view head = parser.word();
  Result<Operation> operation = fail("", "");
  if (parser.accept("(")) {
    operation = parser.call(head, start, default_dtype);
  } else {
    parser.at = start;
    ASSAY_TRY(left, parser.tensor());
    if (!parser.accept("@") && !parser.accept("*"))
      return parser.error(parser.at, "@ and a second operand are missing",
                          "e.g. bf16[240,8192] @ bf16[8192,32768], or a function: dot(bf16[N])");
    operation = parser.product(left);
  }
  if (!operation) return operation;
  parser.skip();
  if (parser.at < text.size())
    return parser.error(parser.at, fmt::format("unexpected {} at the end", in_quotes(text.substr(parser.at))),
                        "an operation is A @ B -> C or function(tensor)");
  // A letter has one value: given in one place, it applies everywhere.
  for (const std::string& letter : operation->names()) {
    std::optional<double> value;
    std::optional<double> other;
    const auto learn = [&](const OperationTensor& tensor) {
      for (const OperationSize& size : tensor.sizes)
        if (size.name == letter && size.value) (value && *value != *size.value ? other : value) = size.value;
    };
    for (const OperationTensor& tensor : operation->operands_) learn(tensor);
    learn(operation->result_);
    if (other)
      return fail(std::string(where),
                  fmt::format("{} is both {} and {}", in_quotes(letter), exact_number(*value), exact_number(*other)),
                  "one letter is one size; use another letter for the other");
    if (value) operation = operation->with(letter, *value);
  }
  double total = 1.0;
  for (const OperationTensor& tensor : operation->operands_) total *= size_product(tensor);
  if (total > max_size * max_size * 1e6)
    return fail(std::string(where), "the operation is too large to count",
                "the product of all sizes is limited to 1e36");
  return operation;
}

Result<OperationTensor> parse_tensor(std::string_view text, std::string_view where) {
  if (text.size() > 4096) return fail(std::string(where), "the tensor is longer than 4096 bytes", "");
  OperationParser parser{text, std::string(where), 0};
  ASSAY_TRY(tensor, parser.tensor());
  parser.skip();
  if (parser.at < text.size())
    return parser.error(parser.at, fmt::format("unexpected {} at the end", in_quotes(text.substr(parser.at))),
                        "one tensor, e.g. bf16[8,128,8192]");
  for (const OperationSize& size : tensor.sizes)
    if (!size.value)
      return fail(std::string(where), fmt::format("{} has no number", in_quotes(size.name)),
                  "every size of a tensor to move must be a number");
  return tensor;
}

Bytes tensor_bytes(const OperationTensor& tensor) { return storage(tensor.dtype, size_product(tensor)); }

Result<Bytes> parse_bytes(std::string_view text, std::string_view where) {
  if (text.find('[') != std::string_view::npos) {
    ASSAY_TRY(tensor, parse_tensor(text, where));
    return tensor_bytes(tensor);
  }
  ASSAY_TRY(bytes, parse_as<Bytes>(text, where));
  if (bytes < Bytes(0))
    return fail(std::string(where), fmt::format("{} is negative", in_quotes(text)), "e.g. 16MiB or 4GB");
  return bytes;
}

std::vector<std::string> Operation::names() const {
  std::vector<std::string> all;
  const auto collect = [&](const OperationTensor& tensor) {
    for (const OperationSize& size : tensor.sizes)
      if (!size.name.empty() && std::find(all.begin(), all.end(), size.name) == all.end()) all.push_back(size.name);
  };
  for (const OperationTensor& tensor : operands_) collect(tensor);
  collect(result_);
  return all;
}

std::vector<std::string> Operation::free_sizes() const {
  std::vector<std::string> all = names();
  const auto bound = [&](const std::string& letter) {
    for (const OperationTensor& tensor : operands_)
      for (const OperationSize& size : tensor.sizes)
        if (size.name == letter && size.value) return true;
    return false;
  };
  all.erase(std::remove_if(all.begin(), all.end(), bound), all.end());
  return all;
}

Operation Operation::with(std::string_view letter, double value) const {
  Operation copy = *this;
  const auto set = [&](OperationTensor& tensor) {
    for (OperationSize& size : tensor.sizes)
      if (size.name == letter) size.value = value;
  };
  for (OperationTensor& tensor : copy.operands_) set(tensor);
  set(copy.result_);
  return copy;
}

Matmul Operation::matmul() const {
  Matmul product;
  product.a = operands_[0].dtype;
  product.b = operands_[1].dtype;
  product.out = result_.dtype;
  const std::string &roles_a = roles_[0], &roles_b = roles_[1];
  for (std::size_t i = 0; i < roles_a.size(); ++i) {
    const double size = operands_[0].sizes[i].value.value_or(1.0);
    (roles_a[i] == 'b' ? product.batch : roles_a[i] == 'k' ? product.k : product.m) *= size;
  }
  for (std::size_t i = 0; i < roles_b.size(); ++i)
    if (roles_b[i] == 'n') product.n *= operands_[1].sizes[i].value.value_or(1.0);
  return product;
}

Pointwise Operation::pointwise() const {
  return {function_, size_product(operands_[0]), size_product(result_), operands_[0].dtype, result_.dtype};
}

std::string Operation::group_name(char group) const {
  std::string text;
  bool named = false;
  for (std::size_t operand = 0; operand < roles_.size(); ++operand)
    for (std::size_t i = 0; i < roles_[operand].size(); ++i) {
      if (roles_[operand][i] != group || (operand == 1 && group != 'n')) continue;
      const OperationSize& size = operands_[operand].sizes[i];
      named = named || !size.name.empty();
      text += (text.empty() ? "" : "*") + (size.name.empty() ? exact_number(*size.value) : size.name);
    }
  return named ? text : std::string(1, group == 'b' ? 'e' : group);
}

std::string Operation::text() const {
  if (function_) return fmt::format("{}({}) -> {}", function_->name, tensor_text(operands_[0]), tensor_text(result_));
  return fmt::format("{} @ {} -> {}", tensor_text(operands_[0]), tensor_text(operands_[1]), tensor_text(result_));
}

}  // namespace assay::roofline
