#include "assay/program/plan/correspondence.h"

#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/program/plan/planner.h"

namespace assay::plan {

int find_dim(const program::Tensor& tensor, std::string_view name) {
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.dims[i].name == name) return static_cast<int>(i);
  return -1;
}

Correspondence correspond(const ShardingExpression& e) {
  Correspondence all;
  for (std::size_t i = 0; i < e.left.dims.size(); ++i)
    all.all[all.count++] = {static_cast<int>(i), find_dim(*e.right, e.left.dims[i].name),
                            find_dim(*e.result, e.left.dims[i].name), e.left.dims[i].size};
  for (std::size_t i = 0; i < e.right->dims.size(); ++i)
    if (find_dim(e.left, e.right->dims[i].name) < 0)
      all.all[all.count++] = {-1, static_cast<int>(i), find_dim(*e.result, e.right->dims[i].name),
                              e.right->dims[i].size};
  return all;
}

std::optional<program::Sharding> multiply(const Correspondence& c, const program::Sharding& a,
                                          const program::Sharding& b) {
  program::Sharding out;
  out.unreduced = a.unreduced ^ b.unreduced;
  // A product of two partial sums over one axis is not the partial sum of products.
  if (a.unreduced & b.unreduced) return std::nullopt;
  program::AxisSet used = out.unreduced;
  for (const auto& row : c.rows()) {
    program::AxisList list = row.left >= 0 ? list_of(a, row.left) : list_of(b, row.right);
    if (row.left >= 0 && row.right >= 0 && !(list == list_of(b, row.right))) return std::nullopt;
    const program::AxisSet set = list.set();
    if (used & set) return std::nullopt;
    used |= set;
    if (row.result >= 0)
      out.dims[static_cast<std::size_t>(row.result)] = list;
    else
      out.unreduced |= set;
  }
  return out;
}

Flops local_flops(const program::Mesh& mesh, const Correspondence& c, const program::Sharding& a,
                  const program::Sharding& b) {
  double flops = 2.0;
  for (const auto& row : c.rows())
    flops *= static_cast<double>(
        program::local_size(mesh, row.size, row.left >= 0 ? list_of(a, row.left) : list_of(b, row.right)));
  return Flops(flops);
}

int product_case(const ShardingExpression& e) {
  const Correspondence c = correspond(e);
  program::AxisSet contracted_left = 0, contracted_right = 0, kept_left = 0, kept_right = 0;
  bool alike = true;
  for (const auto& row : c.rows()) {
    const program::AxisList a = list_of(e.left.sharding, row.left), b = list_of(e.right->sharding, row.right);
    if (row.left >= 0 && row.right >= 0) {
      if (row.result >= 0) continue;
      contracted_left |= a.set();
      contracted_right |= b.set();
      alike = alike && a == b;
    } else {
      (row.left >= 0 ? kept_left : kept_right) |= row.left >= 0 ? a.set() : b.set();
    }
  }
  if (kept_left & kept_right) return 4;
  if (!contracted_left && !contracted_right) return 1;
  return contracted_left && contracted_right && alike ? 3 : 2;
}

namespace {

/// Position of a dimension in the text of an expression: "TEXT, character N". Tensors and dimensions count from 0.
std::string place_of(std::string_view text, std::size_t tensor, std::size_t dim) {
  if (text.empty()) return "expression";
  std::size_t at = text.find('[');
  for (; tensor > 0 && at != std::string_view::npos; --tensor) at = text.find('[', at + 1);
  for (; dim > 0 && at != std::string_view::npos; --dim) at = text.find(',', at + 1);
  at = at == std::string_view::npos ? at : text.find_first_not_of(" \t", at + 1);
  return at == std::string_view::npos ? "expression" : fmt::format("{}, character {}", in_quotes(text), at + 1);
}

}  // namespace

Result<void> check_product(const ShardingExpression& e, std::string_view text) {
  const program::Tensor* const tensors[] = {&e.left, &*e.right, &*e.result};
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t i = 0; i < tensors[t]->dims.size(); ++i)
      if (find_dim(*tensors[t], tensors[t]->dims[i].name) != static_cast<int>(i))
        return fail(place_of(text, t, i),
                    fmt::format("dimension {} appears twice in {}, so the contraction is ambiguous",
                                in_quotes(tensors[t]->dims[i].name), tensors[t]->name),
                    "give names and --sizes");
  const Correspondence c = correspond(e);
  bool contracted = false;
  for (const auto& row : c.rows()) {
    contracted = contracted || (row.shared() && row.result < 0);
    if (row.shared() || row.result >= 0) continue;
    const std::size_t tensor = row.left >= 0 ? 0 : 1;
    const auto place = static_cast<std::size_t>(tensor == 0 ? row.left : row.right);
    return fail(place_of(text, tensor, place),
                fmt::format("dimension {} is in only one operand and not in the result",
                            in_quotes(tensors[tensor]->dims[place].name)),
                "sum it first, or keep it in the result");
  }
  for (std::size_t i = 0; i < e.result->dims.size(); ++i)
    if (find_dim(e.left, e.result->dims[i].name) < 0 && find_dim(*e.right, e.result->dims[i].name) < 0)
      return fail(place_of(text, 2, i),
                  fmt::format("dimension {} of the result is in neither operand", in_quotes(e.result->dims[i].name)),
                  "it must be a dimension of an operand");
  if (!contracted)
    return fail(place_of(text, 2, 0), "no dimension is contracted",
                "a contracted dimension is in both operands and not in the result");
  if (e.left.sharding.unreduced & e.right->sharding.unreduced)
    return fail(place_of(text, 1, 0), "both operands are partial sums over the same axis", "reduce one of them first");
  return {};
}

}  // namespace assay::plan
