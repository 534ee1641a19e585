// The sharding notation, "EXPRESSION|MESH|SIZES": any text gives an expression or an error that points at a character;
// an expression reads back from its text, and small ones are planned and their gradients too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "assay/base/text.h"
#include "assay/plan/backward.h"
#include "assay/plan/planner.h"

namespace {

using namespace assay;

constexpr std::size_t few_axes = 3, few_dims = 3;  // beyond, the space takes seconds under the sanitizers

void require(bool truth) {
  if (!truth) std::abort();
}

bool small(const Mesh& mesh, const ShardingExpression& e) {
  std::size_t axes = 0;
  for (const MeshAxis& axis : mesh.axes) axes += axis.size > 1;
  const auto few = [](const Tensor& tensor) { return tensor.dims.size() <= few_dims; };
  return axes <= few_axes && few(e.left) && (!e.right || few(*e.right)) && (!e.result || few(*e.result));
}

void check_plan(const Mesh& mesh, const ShardingExpression& e) {
  const Prices prices = byte_prices(mesh);
  if (!e.right) {
    if (e.result->sharding.unreduced & ~e.left.sharding.unreduced) return;
    const Plan plan = plan_reshard(mesh, e.left, e.result->sharding, prices);
    require(plan.cost >= 0.0);
    reshard_backward(mesh, plan);
    return;
  }
  if (!check_product(e)) return;
  const Plan plan = plan_product(mesh, e, prices).best;
  require(!plan.steps.empty() && plan.cost >= 0.0 && product_case(e) >= 1);
  require(plan_backward(mesh, e, plan).bytes >= Bytes(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = split(std::string_view(reinterpret_cast<const char*>(data), size), '|');
  if (parts.size() != 3) return 0;
  const Result<Mesh> mesh = parse_mesh(parts[1], "mesh");
  const Result<DimensionSizes> sizes = parse_dimension_sizes(parts[2], "sizes");
  if (!mesh || !sizes) return 0;
  const Result<ShardingExpression> e = parse_sharding(parts[0], *mesh, *sizes, Dtype::bf16);
  if (!e) {
    require(!e.error().what.empty());
    return 0;
  }
  const std::string text = expression_text(*mesh, *e);
  const Result<ShardingExpression> again = parse_sharding(text, *mesh, *sizes, Dtype::bf16);
  require(again && expression_text(*mesh, *again) == text);
  if (e->result && small(*mesh, *e)) check_plan(*mesh, *e);
  return 0;
}
