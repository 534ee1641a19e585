// The sharding notation, "EXPRESSION|MESH|SIZES": any text gives an expression or an error that points at a character;
// an expression reads back from its text, and small ones are planned and their gradients too.
#include <string>
#include <string_view>

#include "assay/base/text.h"
#include "assay/program/plan/backward.h"
#include "assay/program/plan/planner.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

constexpr std::size_t few_axes = 3, few_dims = 3;  // beyond, the space takes seconds under the sanitizers

bool small(const program::Mesh& mesh, const plan::ShardingExpression& e) {
  std::size_t axes = 0;
  for (const program::MeshAxis& axis : mesh.axes) axes += axis.size > 1;
  const auto few = [](const program::Tensor& tensor) { return tensor.dims.size() <= few_dims; };
  return axes <= few_axes && few(e.left) && (!e.right || few(*e.right)) && (!e.result || few(*e.result));
}

void check_plan(const program::Mesh& mesh, const plan::ShardingExpression& e) {
  const plan::Prices prices = plan::byte_prices(mesh);
  if (!e.right) {
    if (e.result->sharding.unreduced & ~e.left.sharding.unreduced) return;
    const plan::Plan plan = plan::plan_reshard(mesh, e.left, e.result->sharding, prices);
    require(plan.cost >= 0.0);
    plan::reshard_backward(mesh, plan, prices);
    return;
  }
  if (!plan::check_product(e)) return;
  const plan::Plan plan = plan::plan_product(mesh, e, prices).best;
  require(!plan.steps.empty() && plan.cost >= 0.0 && plan::product_case(e) >= 1);
  require(plan::plan_backward(mesh, e, plan, prices).plan.bytes >= Bytes(0));
}

const fuzz::Target sharding_target("sharding", [](std::string_view input) {
  const auto parts = split(input, '|');
  if (parts.size() != 3) return;
  const Result<program::Mesh> mesh = program::parse_mesh(parts[1], "mesh");
  const Result<plan::DimensionSizes> sizes = plan::parse_dimension_sizes(parts[2], "sizes");
  if (!mesh || !sizes) return;
  const Result<plan::ShardingExpression> e = plan::parse_sharding(parts[0], *mesh, *sizes, Dtype::bf16);
  if (!e) {
    require(!e.error().what.empty());
    return;
  }
  const std::string text = plan::expression_text(*mesh, *e);
  const Result<plan::ShardingExpression> again = plan::parse_sharding(text, *mesh, *sizes, Dtype::bf16);
  require(again && plan::expression_text(*mesh, *again) == text);
  if (e->result && small(*mesh, *e)) check_plan(*mesh, *e);
});

}  // namespace
