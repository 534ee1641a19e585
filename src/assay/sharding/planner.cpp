#include "assay/sharding/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "assay/base/text.h"
#include "assay/sharding/explorer.h"

namespace assay {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// How the dimensions of a product correspond: indices into each tensor, -1 where it has none.
struct Correspondence {
  struct Row {
    int left = -1, right = -1, result = -1;
    std::int64_t size = 1;
  };
  std::vector<Row> rows;
};

int find_dim(const Tensor& tensor, const std::string& name) {
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.dims[i].name == name) return static_cast<int>(i);
  return -1;
}

Correspondence correspond(const ShardingExpression& e) {
  Correspondence all;
  for (std::size_t i = 0; i < e.left.dims.size(); ++i)
    all.rows.push_back({static_cast<int>(i), find_dim(*e.right, e.left.dims[i].name),
                        find_dim(*e.result, e.left.dims[i].name), e.left.dims[i].size});
  for (std::size_t i = 0; i < e.right->dims.size(); ++i)
    if (find_dim(e.left, e.right->dims[i].name) < 0)
      all.rows.push_back({-1, static_cast<int>(i), find_dim(*e.result, e.right->dims[i].name), e.right->dims[i].size});
  return all;
}

AxisList list_of(const Sharding& sharding, int dim) {
  return dim < 0 ? AxisList{} : sharding.dims[static_cast<std::size_t>(dim)];
}

/// The sharding of the product of two shards that lie together, or nothing if they do not match.
std::optional<Sharding> multiply(const Correspondence& c, const Sharding& a, const Sharding& b) {
  Sharding out;
  out.unreduced = a.unreduced ^ b.unreduced;
  // A product of two partial sums over one axis is not the partial sum of products.
  if (a.unreduced & b.unreduced) return std::nullopt;
  AxisSet used = out.unreduced;
  for (const auto& row : c.rows) {
    AxisList list = row.left >= 0 ? list_of(a, row.left) : list_of(b, row.right);
    if (row.left >= 0 && row.right >= 0 && !(list == list_of(b, row.right))) return std::nullopt;
    const AxisSet set = list.set();
    if (used & set) return std::nullopt;
    used |= set;
    if (row.result >= 0)
      out.dims[static_cast<std::size_t>(row.result)] = list;
    else
      out.unreduced |= set;
  }
  return out;
}

/// What decides whether two shardings can be multiplied: shared dimensions must be split alike, others by other axes.
struct Side {
  std::uint64_t shared;
  AxisSet own;
  int id;

  bool fits(const Side& other) const { return shared == other.shared && (own & other.own) == 0; }
};

Side side_of(const Correspondence& c, const Sharding& sharding, bool left, int id) {
  Side side{0, sharding.unreduced, id};
  for (const auto& row : c.rows) {
    const AxisList list = list_of(sharding, left ? row.left : row.right);
    if (row.left >= 0 && row.right >= 0)
      side.shared = side.shared * 0x9e3779b97f4a7c15ull + list.bits();
    else
      side.own |= list.set();
  }
  return side;
}

Flops local_flops(const Mesh& mesh, const Correspondence& c, const Sharding& a, const Sharding& b) {
  double flops = 2.0;
  for (const auto& row : c.rows)
    flops *=
        static_cast<double>(local_size(mesh, row.size, row.left >= 0 ? list_of(a, row.left) : list_of(b, row.right)));
  return Flops(flops);
}

Tensor with(const Tensor& tensor, const Sharding& sharding) {
  Tensor copy = tensor;
  copy.sharding = sharding;
  return copy;
}

void add_step(const Mesh& mesh, const Tensor& tensor, const Sharding& from, const Sharding& to, StepKind kind,
              AxisSet axes, double cost, std::vector<PlanStep>& steps) {
  PlanStep step{kind, axes, with(tensor, from), std::nullopt, with(tensor, to), {}, cost};
  step.bytes = received_bytes(mesh, kind, axes, local_bytes(mesh, step.before));
  steps.push_back(std::move(step));
}

/// The steps from the explorer's start to a sharding it reached forwards.
void forward_steps(const Mesh& mesh, const Tensor& tensor, const Explorer& explorer, int id,
                   std::vector<PlanStep>& steps) {
  const std::size_t first = steps.size();
  for (; explorer.at(id).parent >= 0; id = explorer.at(id).parent) {
    const Reached& here = explorer.at(id);
    const Reached& before = explorer.at(here.parent);
    add_step(mesh, tensor, explorer.sharding(here.parent), explorer.sharding(id), here.kind, here.axes,
             here.cost - before.cost, steps);
  }
  std::reverse(steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end());
}

/// The steps from a sharding that was reached backwards to the explorer's start.
void backward_steps(const Mesh& mesh, const Tensor& tensor, const Explorer& explorer, int id,
                    std::vector<PlanStep>& steps) {
  for (; explorer.at(id).parent >= 0; id = explorer.at(id).parent) {
    const Reached& here = explorer.at(id);
    const Reached& after = explorer.at(here.parent);
    add_step(mesh, tensor, explorer.sharding(id), explorer.sharding(here.parent), here.kind, here.axes,
             here.cost - after.cost, steps);
  }
}

void finish(Plan& plan) {
  plan.cost = 0;
  plan.bytes = Bytes(0);
  for (const PlanStep& step : plan.steps) plan.cost += step.cost, plan.bytes += step.bytes;
}

/// The cost of the plan that replicates both operands and slices the result.
double gather_all(const Mesh& mesh, const ShardingExpression& e, const Correspondence& c, const Prices& prices) {
  double cost = 0.0;
  for (const Tensor* tensor : {&e.left, &*e.right}) {
    Tensor partial = *tensor;
    if (const AxisSet split = tensor->sharding.split_axes())
      cost += prices(StepKind::all_gather, split, local_bytes(mesh, *tensor)), partial.sharding = {};
    if (tensor->sharding.unreduced)
      cost += prices(StepKind::all_reduce, tensor->sharding.unreduced, local_bytes(mesh, partial));
  }
  // A target that is itself a partial sum cannot be had from a whole result; then nothing is certain.
  if (e.result->sharding.unreduced) return infinity;
  return std::max(cost, prices.per_flop * local_flops(mesh, c, {}, {}).value()) * (1.0 + 1e-12);
}

struct Candidate {
  int left, right, result;
  double cost, total;
  int steps;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.total != b.total) return a.total < b.total;
  return a.cost != b.cost ? a.cost < b.cost : a.steps < b.steps;
}

/// What a plan moves, for telling alternatives apart.
std::string signature(const Mesh& mesh, const Plan& plan) {
  std::string text;
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::slice && step.kind != StepKind::multiply) text += step_text(mesh, step) + ";";
  return text;
}

}  // namespace

std::string_view name(StepKind kind) {
  switch (kind) {
    case StepKind::slice:
      return "slice";
    case StepKind::all_gather:
      return "all-gather";
    case StepKind::all_to_all:
      return "all-to-all";
    case StepKind::permute:
      return "permute";
    case StepKind::reduce_scatter:
      return "reduce-scatter";
    case StepKind::all_reduce:
      return "all-reduce";
    case StepKind::multiply:
      break;
  }
  return "multiply";
}

Bytes received_bytes(const Mesh& mesh, StepKind kind, AxisSet axes, Bytes local) {
  const double n = shard_count(mesh, axes);
  switch (kind) {
    case StepKind::all_gather:
      return (n - 1.0) * local;
    case StepKind::reduce_scatter:
    case StepKind::all_to_all:
      return (n - 1.0) / n * local;
    case StepKind::all_reduce:
      return 2.0 * ((n - 1.0) / n) * local;
    case StepKind::permute:
      return local;
    case StepKind::slice:
    case StepKind::multiply:
      break;
  }
  return Bytes(0);
}

Prices::Prices(const Mesh& mesh)
    : axes_(mesh.axes.size()), table_(static_cast<std::size_t>(StepKind::multiply) << mesh.axes.size()) {}

Prices byte_prices(const Mesh& mesh) {
  Prices prices(mesh);
  for (AxisSet axes = 1; axes < axis_bit(static_cast<int>(mesh.axes.size())); ++axes)
    for (StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::reduce_scatter,
                          StepKind::all_reduce})
      prices.set(kind, axes, {received_bytes(mesh, kind, axes, 1_B).value(), 0.0});
  return prices;
}

Sharding without_unit_axes(const Mesh& mesh, const Sharding& sharding) {
  Sharding bare = sharding;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const AxisSet bit = axis_bit(static_cast<int>(axis));
    if (mesh.axes[axis].size > 1 || !(sharding.used_axes() & bit)) continue;
    bare.unreduced &= ~bit;
    for (AxisList& list : bare.dims) {
      if (!(list.set() & bit)) continue;
      AxisList rest;
      for (int kept : list.axes())
        if (kept != static_cast<int>(axis)) rest = rest.pushed(kept);
      list = rest;
    }
  }
  return bare;
}

int product_case(const ShardingExpression& e) {
  const Correspondence c = correspond(e);
  AxisSet contracted_left = 0, contracted_right = 0, kept_left = 0, kept_right = 0;
  bool alike = true;
  for (const auto& row : c.rows) {
    const AxisList a = list_of(e.left.sharding, row.left), b = list_of(e.right->sharding, row.right);
    if (row.left >= 0 && row.right >= 0) {
      if (row.result >= 0) continue;
      contracted_left |= a.set(), contracted_right |= b.set();
      alike = alike && a == b;
    } else {
      (row.left >= 0 ? kept_left : kept_right) |= row.left >= 0 ? a.set() : b.set();
    }
  }
  if (kept_left & kept_right) return 4;
  if (!contracted_left && !contracted_right) return 1;
  return contracted_left && contracted_right && alike ? 3 : 2;
}

Result<void> check_product(const ShardingExpression& e) {
  for (const Tensor* tensor : {&e.left, &*e.right, &*e.result})
    for (std::size_t i = 0; i < tensor->dims.size(); ++i)
      if (find_dim(*tensor, tensor->dims[i].name) != static_cast<int>(i))
        return fail("expression",
                    fmt::format("dimension {} is twice in {}, so it is not clear what is summed",
                                in_quotes(tensor->dims[i].name), tensor->name),
                    "give names and --sizes");
  const Correspondence c = correspond(e);
  bool contracted = false;
  for (const auto& row : c.rows) {
    const std::string& dim = row.left >= 0 ? e.left.dims[static_cast<std::size_t>(row.left)].name
                                           : e.right->dims[static_cast<std::size_t>(row.right)].name;
    contracted = contracted || (row.left >= 0 && row.right >= 0 && row.result < 0);
    if ((row.left < 0 || row.right < 0) && row.result < 0)
      return fail("expression",
                  fmt::format("dimension {} is in one operand only and not in the result", in_quotes(dim)),
                  "sum it first, or keep it in the result");
  }
  for (const Dimension& dim : e.result->dims)
    if (find_dim(e.left, dim.name) < 0 && find_dim(*e.right, dim.name) < 0)
      return fail("expression", fmt::format("dimension {} of the result is in neither operand", in_quotes(dim.name)),
                  "");
  if (!contracted)
    return fail("expression", "no dimension is contracted",
                "a dimension that both operands have and the result has not is summed over");
  if (e.left.sharding.unreduced & e.right->sharding.unreduced)
    return fail("expression", "both operands are partial sums over one axis", "reduce one of them first");
  return {};
}

Planner::Planner(const Mesh& mesh) : mesh_(mesh), spaces_(2 * (max_tensor_rank + 1)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner::~Planner() = default;

ShardingSpace& Planner::space(std::size_t rank, bool forward) {
  auto& kept = spaces_[2 * rank + (forward ? 1 : 0)];
  if (!kept) kept = std::make_unique<ShardingSpace>(mesh_, rank, forward);
  return *kept;
}

PlanChoice plan_product(const Mesh& mesh, const ShardingExpression& expression, const Prices& prices,
                        std::size_t alternatives) {
  return Planner(mesh).product(expression, prices, alternatives);
}

PlanChoice Planner::product(const ShardingExpression& expression, const Prices& prices, std::size_t alternatives) {
  const Mesh& mesh = mesh_;
  ShardingExpression e = expression;
  for (Tensor* tensor : {&e.left, &*e.right, &*e.result}) tensor->sharding = without_unit_axes(mesh, tensor->sharding);
  const Correspondence c = correspond(e);
  Explorer left(space(e.left.dims.size(), true), e.left, e.left.sharding, prices),
      right(space(e.right->dims.size(), true), *e.right, e.right->sharding, prices);
  Explorer result(space(e.result->dims.size(), false), *e.result, e.result->sharding, prices);
  std::vector<Side> lefts, rights;
  lefts.reserve(64), rights.reserve(64);
  std::vector<Candidate> found;
  const std::size_t wanted = alternatives == 0 ? 1 : 8 * (alternatives + 1);
  // Gathering both operands whole and multiplying everywhere is always possible, so nothing dearer needs to be looked
  // at.
  const double certain = alternatives == 0 ? gather_all(mesh, e, c, prices) : infinity;
  const auto limit = [&] { return found.size() < wanted ? certain : found.back().total; };
  // The result's distances, settled only as far as a pair needs them.
  const auto finish_cost = [&](const Sharding& sharding, double budget) {
    const int id = result.find(sharding);
    while (!result.settled(id))
      if (result.next(budget) < 0) return -1;
    return id;
  };
  const auto consider = [&](int l, int r) {
    const Reached &a = left.at(l), &b = right.at(r);
    const double before = a.cost + b.cost;
    if (before > limit()) return;
    const auto product = multiply(c, left.sharding(l), right.sharding(r));
    if (!product) return;
    const double compute = prices.per_flop > 0.0
                               ? prices.per_flop * local_flops(mesh, c, left.sharding(l), right.sharding(r)).value()
                               : 0.0;
    if (compute > limit()) return;
    const int end = finish_cost(*product, limit() - before);
    if (end < 0) return;
    const double cost = before + result.at(end).cost;
    const Candidate candidate{l, r, end, cost, std::max(cost, compute), a.steps + b.steps + result.at(end).steps};
    if (candidate.total > limit()) return;
    found.insert(std::upper_bound(found.begin(), found.end(), candidate, better), candidate);
    if (found.size() > wanted) found.pop_back();
  };
  // Each round settles the cheaper side's next sharding and pairs it with all of the other side's.
  while (true) {
    const bool take_left = left.frontier() <= right.frontier();
    const double cheapest = take_left ? left.frontier() : right.frontier();
    if (cheapest > limit() || cheapest == infinity) break;
    if (take_left) {
      const int id = left.next(limit());
      if (id < 0) continue;
      const Side& side = lefts.emplace_back(side_of(c, left.sharding(id), true, id));
      for (const Side& other : rights)
        if (other.fits(side)) consider(id, other.id);
    } else {
      const int id = right.next(limit());
      if (id < 0) continue;
      const Side& side = rights.emplace_back(side_of(c, right.sharding(id), false, id));
      for (const Side& other : lefts)
        if (other.fits(side)) consider(other.id, id);
    }
  }
  PlanChoice choice;
  std::vector<std::string> seen;
  for (const Candidate& candidate : found) {
    Plan plan;
    forward_steps(mesh, e.left, left, candidate.left, plan.steps);
    forward_steps(mesh, *e.right, right, candidate.right, plan.steps);
    const Sharding a = left.sharding(candidate.left), b = right.sharding(candidate.right),
                   product = result.sharding(candidate.result);
    plan.steps.push_back(
        {StepKind::multiply, 0, with(e.left, a), with(*e.right, b), with(*e.result, product), {}, 0.0});
    backward_steps(mesh, *e.result, result, candidate.result, plan.steps);
    plan.flops = local_flops(mesh, c, a, b);
    finish(plan);
    plan.total = candidate.total;
    const std::string moves = signature(mesh, plan);
    if (std::find(seen.begin(), seen.end(), moves) != seen.end()) continue;
    seen.push_back(moves);
    if (seen.size() == 1)
      choice.best = std::move(plan);
    else if (choice.others.size() < alternatives)
      choice.others.push_back(std::move(plan));
  }
  return choice;
}

RefinedMesh refine(const Mesh& mesh) {
  RefinedMesh refined;
  for (const MeshAxis& axis : mesh.axes) {
    std::vector<std::int64_t> factors;
    std::int64_t rest = axis.size;
    for (std::int64_t prime = 2; prime * prime <= rest; ++prime)
      for (; rest % prime == 0; rest /= prime) factors.push_back(prime);
    if (rest > 1 || factors.empty()) factors.push_back(rest);
    std::vector<int> parts;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      parts.push_back(static_cast<int>(refined.mesh.axes.size()));
      refined.mesh.axes.push_back(
          {factors.size() == 1 ? axis.name : fmt::format("{}({})", axis.name, i + 1), factors[i]});
    }
    refined.parts.push_back(std::move(parts));
  }
  return refined;
}

Sharding RefinedMesh::refine(const Sharding& sharding) const {
  Sharding fine;
  for (std::size_t d = 0; d < max_tensor_rank; ++d)
    for (int axis : sharding.dims[d].axes())
      for (int part : parts[static_cast<std::size_t>(axis)]) fine.dims[d] = fine.dims[d].pushed(part);
  for (std::size_t axis = 0; axis < parts.size(); ++axis)
    if (sharding.unreduced & axis_bit(static_cast<int>(axis)))
      for (int part : parts[axis]) fine.unreduced |= axis_bit(part);
  return fine;
}

namespace {

/// True if splitting by the parts of an axis one after the other gives the shards that splitting by the axis gives:
/// below the first part of each axis nothing is padded.
bool keeps_shards(const RefinedMesh& fine, const Tensor& tensor) {
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    std::int64_t size = tensor.dims[d].size;
    for (int axis : tensor.sharding.dims[d].axes()) {
      const std::vector<int>& parts = fine.parts[static_cast<std::size_t>(axis)];
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t ways = fine.mesh.size(parts[i]);
        if (i > 0 && size % ways != 0) return false;
        size = (size + ways - 1) / ways;
      }
    }
  }
  return true;
}

}  // namespace

ThoroughPlan plan_product_thoroughly(const Mesh& mesh, const ShardingExpression& expression) {
  constexpr std::size_t most_parts = 6;  // beyond, the space is too large to search while someone waits
  ThoroughPlan coarse{mesh, plan_product(mesh, expression, byte_prices(mesh)).best};
  const RefinedMesh fine = assay::refine(mesh);
  if (coarse.plan.cost == 0.0 || fine.mesh.axes.size() == mesh.axes.size() || fine.mesh.axes.size() > most_parts)
    return coarse;
  for (const Tensor* tensor : {&expression.left, &*expression.right, &*expression.result})
    if (!keeps_shards(fine, *tensor)) return coarse;
  ShardingExpression parts = expression;
  parts.left.sharding = fine.refine(expression.left.sharding);
  parts.right->sharding = fine.refine(expression.right->sharding);
  parts.result->sharding = fine.refine(expression.result->sharding);
  Plan plan = plan_product(fine.mesh, parts, byte_prices(fine.mesh)).best;
  if (plan.cost < coarse.plan.cost * (1.0 - 1e-12)) return {fine.mesh, std::move(plan)};
  return coarse;
}

Plan plan_reshard(const Mesh& mesh, const Tensor& from, const Sharding& to, const Prices& prices) {
  return Planner(mesh).reshard(from, to, prices);
}

Plan Planner::reshard(const Tensor& tensor, const Sharding& target, const Prices& prices) {
  const Mesh& mesh = mesh_;
  const Tensor from = with(tensor, without_unit_axes(mesh, tensor.sharding));
  const Sharding to = without_unit_axes(mesh, target);
  Explorer explorer(space(from.dims.size(), true), from, from.sharding, prices);
  Plan plan;
  for (int id = explorer.next(infinity); id >= 0; id = explorer.next(infinity))
    if (explorer.sharding(id) == to) {
      forward_steps(mesh, from, explorer, id, plan.steps);
      finish(plan);
      plan.total = plan.cost;
      return plan;
    }
  throw InternalError("a sharding cannot be reached");
}

PlanStep transpose(const PlanStep& step, const Mesh& mesh) {
  PlanStep back = step;
  std::swap(back.before, back.after);
  // The gradient of a partial sum is the same for every addend: it is replicated.
  back.before.sharding.unreduced = back.after.sharding.unreduced = 0;
  switch (step.kind) {
    case StepKind::all_gather:
      // Every device used all of the gathered tensor, so its gradient there is a partial sum.
      back.kind = StepKind::reduce_scatter;
      back.before.sharding.unreduced = step.axes;
      break;
    case StepKind::reduce_scatter:
    case StepKind::slice:
      back.kind = StepKind::all_gather;
      break;
    case StepKind::all_reduce:
      back.kind = StepKind::slice;
      back.axes = 0;
      break;
    default:
      break;
  }
  back.bytes = received_bytes(mesh, back.kind, back.axes, local_bytes(mesh, back.before));
  return back;
}

std::string step_text(const Mesh& mesh, const PlanStep& step) {
  const std::string after = tensor_text(mesh, step.after);
  static constexpr std::pair<StepKind, std::string_view> names[] = {
      {StepKind::slice, "Slice"},     {StepKind::all_gather, "AllGather"},         {StepKind::all_to_all, "AllToAll"},
      {StepKind::permute, "Permute"}, {StepKind::reduce_scatter, "ReduceScatter"}, {StepKind::all_reduce, "AllReduce"}};
  for (const auto& [kind, text] : names)
    if (kind == step.kind)
      return fmt::format("{} = {}{}{}({})", after, text, step.axes ? "_" : "", axes_text(mesh, step.axes),
                         tensor_text(mesh, step.before));
  std::string contracted;
  for (const Dimension& dim : step.before.dims)
    if (find_dim(*step.second, dim.name) >= 0 && find_dim(step.after, dim.name) < 0) contracted += dim.name;
  return fmt::format("{} = {} *{} {}", after, tensor_text(mesh, step.before), contracted,
                     tensor_text(mesh, *step.second));
}

}  // namespace assay
