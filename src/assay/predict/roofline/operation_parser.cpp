#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/predict/roofline/operation.h"

namespace assay::roofline {
namespace {

constexpr double max_size = 1e15;
constexpr std::size_t max_rank = 8;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

constexpr const char* size_hint = "a size is a whole number from 1 to 9e15, a letter, or both: 8192, 4Ki, B, B=240";

/// "nan" and the like, which other programs print for invalid numbers, are not letters.
bool is_no_number(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word == "nan" || word == "inf" || word == "infinity";
}

/// NVIDIA's has an 8-bit scale per 16 elements, the Open Compute Project's per 32.
constexpr BlockFormat block_formats[] = {
    {"nvfp4", 8.0 / 16.0}, {"mxfp4", 8.0 / 32.0}, {"mxfp6", 8.0 / 32.0}, {"mxfp8", 8.0 / 32.0}};

constexpr std::pair<std::string_view, AttentionPasses> attention_functions[] = {
    {"attention", AttentionPasses::forward},
    {"attention_backward", AttentionPasses::backward},
    {"attention_both", AttentionPasses::both}};

}  // namespace

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
  Result<void> end(std::string hint) {
    skip();
    if (at == text.size()) return {};
    return error(at, fmt::format("unexpected {} at the end", in_quotes(text.substr(at))), std::move(hint));
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
    for (const BlockFormat& format : block_formats)
      if (format.name == dtype) tensor.block = &format;
    if (!accept("["))
      return error(at, fmt::format("[ is missing after {}", in_quotes(dtype)),
                   "write dtype[sizes], e.g. bf16[240,8192]");
    if (scalar_allowed && accept("]")) return tensor;
    ASSAY_SET(tensor.sizes, sizes());
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
    for (const auto& [other, passes] : attention_functions) known.emplace_back(other);
    known.emplace_back("grouped");
    if (!operation.function_)
      return error(start, fmt::format("unknown function {}", in_quotes(name)), suggestion(name, known));
    skip();
    const std::size_t inside = at;
    const std::string_view first = word();
    skip();
    const bool tensor_given = at < text.size() && text[at] == '[' && !first.empty();
    at = inside;
    OperationTensor operand{dtype, {}, nullptr};
    if (tensor_given) {
      ASSAY_SET(operand, tensor());
    } else {
      ASSAY_SET(operand.sizes, sizes());
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

  /// softmax(Q K^T) V: queries, keys, values if their heads have another size, then `causal` and `window=`.
  Result<Operation> attention(AttentionPasses passes) {
    Operation operation;
    operation.attention_ = {passes};
    std::vector<OperationTensor>& operands = operation.operands_;
    const std::size_t start = at;
    do {
      skip();
      const std::size_t position = at;
      const std::string_view head = word();
      if (head == "causal") {
        operation.attention_->causal = true;
      } else if (head == "window") {
        if (!accept("=")) return error(at, "= is missing after window", "e.g. window=4096");
        ASSAY_TRY(reach, size());
        if (!reach.value) return error(position, "a window is a number of keys", "e.g. window=4096");
        operation.attention_->window = *reach.value;
      } else {
        at = position;
        ASSAY_TRY(operand, tensor());
        if (operand.sizes.size() != 4)
          return error(position, fmt::format("{} does not have four sizes", tensor_text(operand)),
                       "write [batch,heads,length,head size]");
        operands.push_back(std::move(operand));
      }
    } while (accept(","));
    if (!accept(")")) return error(at, ") is missing", "attention(Q, K, causal) or attention(Q, K, V, window=4096)");
    if (operands.size() < 2 || operands.size() > 3)
      return error(start,
                   fmt::format("attention has queries, keys and perhaps values, not {} tensors", operands.size()),
                   "e.g. attention(bf16[4,32,4096,128], bf16[4,8,4096,128], causal)");
    if (operands.size() == 2) operands.push_back(operands[1]);
    OperationTensor &q = operands[0], &k = operands[1], &v = operands[2];
    const bool agree = unify(q.sizes[0], k.sizes[0]) && unify(q.sizes[0], v.sizes[0]) &&
                       unify(k.sizes[1], v.sizes[1]) && unify(k.sizes[2], v.sizes[2]) && unify(q.sizes[3], k.sizes[3]);
    if (!agree || k.dtype != v.dtype)
      return error(start, "queries, keys and values do not fit together",
                   "equal batches; equal head sizes of queries and keys; keys and values alike but for the head size");
    const auto &heads = q.sizes[1].value, &shared = k.sizes[1].value;
    if (heads && shared &&
        (*heads < *shared || *heads != *shared * static_cast<double>(static_cast<std::int64_t>(*heads / *shared))))
      return error(start, fmt::format("{} heads do not divide over {} key-value heads", *heads, *shared), "");
    if (operation.attention_->causal && q.sizes[2].value && k.sizes[2].value && *q.sizes[2].value > *k.sizes[2].value)
      return error(start, "causal attention has no more queries than keys", "queries are the last tokens");
    operation.result_ = {q.dtype, {q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}, nullptr};
    return operation;
  }

  /// grouped(A @ B): every group has its own rows of A [T,K] and its own matrix of B [E,K,N]; or, for the gradient of
  /// these, its own columns of A [M,T] and rows of B [T,N], and its own result [E,M,N]. Rows reach groups at random;
  /// A [E,M,K] has M rows for each.
  Result<Operation> grouped() {
    const std::size_t start = at;
    ASSAY_TRY(a, tensor());
    if (!accept("@")) return error(at, "@ and a second operand are missing", "e.g. grouped(bf16[T,D] @ bf16[E,D,F])");
    ASSAY_TRY(operation, product(std::move(a), true));
    if (!accept(")")) return error(at, ") is missing", "e.g. grouped(bf16[T,D] @ bf16[E,D,F])");
    const std::size_t left = operation.operands_[0].sizes.size(), right = operation.operands_[1].sizes.size();
    const std::size_t made = operation.result_.sizes.size();
    if (!(left == 3 && right == 3) && !(left == 2 && right == 3 && made == 2) &&
        !(left == 2 && right == 2 && made == 3))
      return error(start, "no dimension is that of the groups",
                   "grouped([T,D] @ [E,D,F]), grouped([E,M,D] @ [E,D,F]) or grouped([D,T] @ [T,F] -> [E,D,F])");
    operation.grouped_ = true;
    return operation;
  }

  Result<Operation> product(OperationTensor a, bool in_groups = false) {
    ASSAY_TRY(b, tensor());
    Operation operation;
    std::optional<OperationTensor> out;
    std::size_t out_at = 0;
    operation.accumulates_ = accept("+=");
    if (operation.accumulates_ || accept("->")) {
      skip();
      out_at = at;
      ASSAY_SET(out, tensor(true));
    }
    const auto distinct_letters = [](const OperationTensor& t) {
      std::set<std::string_view> letters;
      return std::all_of(t.sizes.begin(), t.sizes.end(),
                         [&](const OperationSize& s) { return !s.name.empty() && letters.insert(s.name).second; });
    };
    std::string roles_a(a.sizes.size(), 'm'), roles_b(b.sizes.size(), 'n');
    OperationTensor result{product_dtype(a.dtype, b.dtype), {}, nullptr};
    if (in_groups && a.sizes.size() == 2) {
      const bool gradient = b.sizes.size() == 2;
      if (gradient && (!out || out->sizes.size() != 3))
        return error(out_at, "the groups are missing", "write the result: grouped([D,T] @ [T,F] -> [E,D,F])");
      if (b.sizes.size() > 3) return error(0, "one dimension of groups is allowed", "");
      roles_a = "mk";
      roles_b = gradient ? "kn" : "bkn";
      if (gradient) result.sizes.push_back(out->sizes[0]);
      result.sizes.push_back(a.sizes[0]);
      if (b.sizes.size() > 1) result.sizes.push_back(b.sizes.back());
    } else if (out && distinct_letters(a) && distinct_letters(b) && distinct_letters(*out)) {
      // Einsum: a letter in both operands is contracted unless the result keeps it.
      const auto holds = [](const OperationTensor& t, const std::string& name) {
        return std::any_of(t.sizes.begin(), t.sizes.end(), [&](const OperationSize& s) { return s.name == name; });
      };
      for (const bool is_left : {true, false}) {
        const OperationTensor &mine = is_left ? a : b, &other = is_left ? b : a;
        for (std::size_t i = 0; i < mine.sizes.size(); ++i) {
          const std::string& letter = mine.sizes[i].name;
          const bool shared = holds(other, letter), kept = holds(*out, letter);
          if (!shared && !kept)
            return error(out_at, fmt::format("{} is in one operand only and not in the result", in_quotes(letter)),
                         "sum it first, or keep it in the result");
          if (shared) (is_left ? roles_a : roles_b)[i] = kept ? 'b' : 'k';
        }
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
  const auto* attention = std::find_if(std::begin(attention_functions), std::end(attention_functions),
                                       [&](const auto& one) { return one.first == head; });
  if (parser.accept("(")) {
    operation = head == "grouped"                            ? parser.grouped()
                : attention != std::end(attention_functions) ? parser.attention(attention->second)
                                                             : parser.call(head, start, default_dtype);
  } else {
    parser.at = start;
    ASSAY_TRY(left, parser.tensor());
    if (!parser.accept("@") && !parser.accept("*"))
      return parser.error(parser.at, "@ and a second operand are missing",
                          "e.g. bf16[240,8192] @ bf16[8192,32768], or a function: dot(bf16[N])");
    operation = parser.product(left);
  }
  if (!operation) return operation;
  ASSAY_CHECK(parser.end("an operation is A @ B -> C or function(tensor)"));
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
  double total = size_product(operation->operands_[0]);
  if (!operation->function_) total *= size_product(operation->operands_[1]);
  if (total > max_size * max_size * 1e6)
    return fail(std::string(where), "the operation is too large to count",
                "the product of all sizes is limited to 1e36");
  return operation;
}

Result<OperationTensor> parse_tensor(std::string_view text, std::string_view where) {
  if (text.size() > 4096) return fail(std::string(where), "the tensor is longer than 4096 bytes", "");
  OperationParser parser{text, std::string(where), 0};
  ASSAY_TRY(tensor, parser.tensor());
  ASSAY_CHECK(parser.end("one tensor, e.g. bf16[8,128,8192]"));
  for (const OperationSize& size : tensor.sizes)
    if (!size.value)
      return fail(std::string(where), fmt::format("{} has no number", in_quotes(size.name)),
                  "every size of a tensor to move must be a number");
  return tensor;
}

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

}  // namespace assay::roofline
