#include "assay/program/plan/notation.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/assign.h"
#include "assay/base/text.h"

namespace assay::plan {
namespace {

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

class Parser {
 public:
  Parser(std::string_view text, const program::Mesh& mesh, const DimensionSizes& sizes, Dtype dtype,
         std::optional<std::int64_t> otherwise)
      : text_(text), mesh_(mesh), sizes_(sizes), dtype_(dtype), otherwise_(otherwise) {}

  Result<ShardingExpression> expression() {
    ShardingExpression parsed;
    ASSAY_SET(parsed.left, tensor());
    if (accept("*") || accept("@") || accept("\xc2\xb7")) ASSAY_SET(parsed.right, tensor());
    if (accept("->") || accept("=>")) {
      skip();
      const std::size_t at = at_;
      ASSAY_TRY(result, tensor());
      if (!parsed.right) {
        if (result.dims.size() != parsed.left.dims.size() ||
            !std::equal(result.dims.begin(), result.dims.end(), parsed.left.dims.begin(),
                        [](const program::Dimension& a, const program::Dimension& b) { return a.name == b.name; }))
          return error(at, "a resharding keeps the dimensions and their order", "write A[I_X, J] -> A[I, J_X]");
      }
      parsed.result = result;
    }
    skip();
    if (at_ < text_.size())
      return error(at_, fmt::format("unexpected {}", in_quotes(text_.substr(at_))),
                   "an expression is A[...], A[...] -> A[...] or A[...] * B[...] -> C[...]");
    return parsed;
  }

 private:
  tl::unexpected<Error> error(std::size_t at, std::string what, std::string hint) const {
    return fail(fmt::format("{}, character {}", in_quotes(text_), at + 1), std::move(what), std::move(hint));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::string_view word() {
    skip();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_alnum(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  /// A subscript: axis names one after the other or with a plus between them, the longest name that fits first.
  Result<program::AxisList> axes(program::AxisSet& used) {
    skip();
    const std::size_t start = at_;
    program::AxisList list;
    while (at_ < text_.size() && is_alnum(text_[at_])) {
      int found = -1;
      std::size_t length = 0;
      for (std::size_t i = 0; i < mesh_.axes.size(); ++i)
        if (mesh_.axes[i].name.size() > length && text_.substr(at_).starts_with(mesh_.axes[i].name)) {
          found = static_cast<int>(i);
          length = mesh_.axes[i].name.size();
        }
      if (found < 0)
        return error(at_, fmt::format("{} is not an axis of the mesh", in_quotes(text_.substr(at_, 1))),
                     fmt::format("the mesh is {}", program::mesh_text(mesh_)));
      if (used & program::axis_bit(found))
        return error(
            at_, fmt::format("axis {} is used twice in one tensor", mesh_.axes[static_cast<std::size_t>(found)].name),
            "an axis can split one dimension or mark one partial sum, not both");
      used |= program::axis_bit(found);
      list = list.pushed(found);
      at_ += length;
      if (at_ + 1 < text_.size() && text_[at_] == '+' && is_alnum(text_[at_ + 1])) ++at_;
    }
    if (at_ == start)
      return error(at_, "an axis is missing after _", fmt::format("the mesh is {}", program::mesh_text(mesh_)));
    return list;
  }

  Result<program::Tensor> tensor() {
    program::Tensor tensor;
    tensor.dtype = dtype_;
    skip();
    const std::size_t start = at_;
    tensor.name = word();
    if (tensor.name.empty()) return error(start, "a tensor is missing", "write A[I_X, J]");
    if (!accept("["))
      return error(at_, fmt::format("[ is missing after {}", in_quotes(tensor.name)), "write A[I_X, J]");
    program::AxisSet used = 0;
    do {
      skip();
      const std::size_t at = at_;
      program::Dimension dim{std::string(word()), 1};
      if (dim.name.empty()) return error(at, "a dimension is missing", "write A[I_X, J]");
      if (dim.name.find_first_not_of("0123456789") == std::string::npos) {
        auto size = parse_count(dim.name, "");
        if (!size) return error(at, size.error().what, size.error().hint);
        dim.size = *size;
      } else if (const auto size = sizes_.find(dim.name); size != sizes_.end()) {
        dim.size = size->second;
      } else if (otherwise_) {
        dim.size = *otherwise_;
      } else {
        return error(at, fmt::format("dimension {} has no size", in_quotes(dim.name)),
                     fmt::format("add it: --sizes {}=4096", dim.name));
      }
      for (const program::Dimension& other : tensor.dims)
        if (other.name == dim.name && dim.name.find_first_not_of("0123456789") != std::string::npos)
          return error(at, fmt::format("dimension {} appears twice in one tensor", in_quotes(dim.name)), "");
      if (tensor.dims.size() == program::max_tensor_rank)
        return error(at, fmt::format("a tensor has at most {} dimensions", program::max_tensor_rank), "");
      if (accept("_")) ASSAY_SET(tensor.sharding.dims[tensor.dims.size()], axes(used));
      tensor.dims.push_back(std::move(dim));
    } while (accept(","));
    if (!accept("]")) return error(at_, "] is missing", "dimensions are separated by commas");
    if (accept("{")) {
      if (!accept("U")) return error(at_, "U is missing", "partial sums are written {U_X}");
      if (!accept("_")) return error(at_, "_ is missing", "partial sums are written {U_X}");
      ASSAY_TRY(list, axes(used));
      tensor.sharding.unreduced = list.set();
      if (!accept("}")) return error(at_, "} is missing", "partial sums are written {U_X}");
    }
    return tensor;
  }

  std::string_view text_;
  const program::Mesh& mesh_;
  const DimensionSizes& sizes_;
  Dtype dtype_;
  std::optional<std::int64_t> otherwise_;
  std::size_t at_ = 0;
};

}  // namespace

Result<DimensionSizes> parse_dimension_sizes(std::string_view text, std::string_view where) {
  DimensionSizes sizes;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(std::string_view(part).substr(0, equals)));
    if (equals == std::string::npos || name.empty())
      return fail(std::string(where), fmt::format("{} is not NAME=SIZE", in_quotes(part)), "e.g. --sizes I=4096,J=8192",
                  Error::Kind::usage);
    ASSAY_TRY(size, parse_count(std::string_view(part).substr(equals + 1), where));
    if (!sizes.emplace(name, size).second)
      return fail(std::string(where), fmt::format("{} is given twice", in_quotes(name)), "", Error::Kind::usage);
  }
  return sizes;
}

Result<ShardingExpression> parse_sharding(std::string_view text, const program::Mesh& mesh, const DimensionSizes& sizes,
                                          Dtype dtype, std::optional<std::int64_t> otherwise) {
  if (text.size() > 4096) return fail("expression", "the expression is longer than 4096 bytes", "");
  return Parser(text, mesh, sizes, dtype, otherwise).expression();
}

std::string expression_text(const program::Mesh& mesh, const ShardingExpression& expression) {
  std::string text = program::tensor_text(mesh, expression.left);
  if (expression.right) text += " * " + program::tensor_text(mesh, *expression.right);
  if (expression.result) text += " -> " + program::tensor_text(mesh, *expression.result);
  return text;
}

}  // namespace assay::plan
