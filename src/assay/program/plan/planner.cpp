#include "assay/program/plan/planner.h"

#include <algorithm>
#include <unordered_map>

#include "assay/program/plan/correspondence.h"
#include "assay/program/plan/explorer.h"

namespace assay::plan {
namespace {

/// Decides whether two shardings can be multiplied: shared dimensions must be split alike, others by other axes.
struct Side {
  std::uint64_t shared;
  program::AxisSet own;
};

Side side_of(const Correspondence& c, const program::Sharding& sharding, bool left) {
  Side side{0, sharding.unreduced};
  for (const auto& row : c.rows()) {
    const program::AxisList list = list_of(sharding, left ? row.left : row.right);
    if (row.shared())
      side.shared = side.shared * 0x9e3779b97f4a7c15ull + list.bits();
    else
      side.own |= list.set();
  }
  return side;
}

program::Tensor with(const program::Tensor& tensor, const program::Sharding& sharding) {
  program::Tensor copy = tensor;
  copy.sharding = sharding;
  return copy;
}

/// Bytes on one device under some sharding; like local_bytes, without building a tensor.
Bytes held_bytes(const program::Mesh& mesh, const program::Tensor& tensor, const program::Sharding& sharding) {
  double elements = 1.0;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    elements *= static_cast<double>(program::local_size(mesh, tensor.dims[d].size, sharding.dims[d]));
  return storage(tensor.dtype, elements);
}

/// The shardings of one operand that a search has taken, in order of cost, found by what they can be multiplied with.
class TakenSides {
 public:
  std::size_t size() const { return next_.size(); }
  void clear() {
    ++search_;
    used_ = 0;
    sets_.clear();
    next_.clear();
  }
  /// Adds the next sharding.
  void add(const Side& side) {
    if (2 * used_ >= table_.size()) grow();
    Slot& slot = table_[slot_of(table_, side.shared)];
    if (slot.search != search_) slot = {side.shared, search_, none}, ++used_;
    int set = slot.sets;
    while (set != none && sets_[at(set)].own != side.own) set = sets_[at(set)].next;
    const int place = static_cast<int>(next_.size());
    next_.push_back(none);
    if (set == none) {
      sets_.push_back({side.own, slot.sets, place, place});
      slot.sets = static_cast<int>(sets_.size()) - 1;
    } else {
      next_[at(sets_[at(set)].last)] = place;
      sets_[at(set)].last = place;
    }
  }
  /// Visits those that fit, cheapest first among those with equal axes, until `visit` refuses one of these.
  template <class F>
  void each_fitting(const Side& side, F visit) const {
    if (table_.empty()) return;
    const Slot& slot = table_[slot_of(table_, side.shared)];
    if (slot.search != search_) return;
    for (int set = slot.sets; set != none; set = sets_[at(set)].next)
      if ((sets_[at(set)].own & side.own) == 0)
        for (int place = sets_[at(set)].first; place != none && visit(place); place = next_[at(place)]) continue;
  }

 private:
  static constexpr int none = -1;
  struct Slot {
    std::uint64_t shared = 0;
    std::uint32_t search = 0;  ///< in which it was filled: clearing the table takes no time
    int sets = none;
  };
  struct Set {
    program::AxisSet own;
    int next, first, last;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::size_t slot_of(const std::vector<Slot>& table, std::uint64_t shared) const {
    std::size_t i = mixed(shared, 1) & (table.size() - 1);
    while (table[i].search == search_ && table[i].shared != shared) i = (i + 1) & (table.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> larger(std::max<std::size_t>(16, 4 * table_.size()));
    for (const Slot& slot : table_)
      if (slot.search == search_) larger[slot_of(larger, slot.shared)] = slot;
    table_ = std::move(larger);
  }

  std::vector<Slot> table_;  ///< by hash of the shared dimensions, open addressing
  std::uint32_t search_ = 1;
  std::size_t used_ = 0;
  std::vector<Set> sets_;  ///< of axes, each with its shardings as a list
  std::vector<int> next_;  ///< of each sharding in its list
};

/// An exploration and the unit of its costs; several tensors may share one.
struct View {
  Explorer* explorer = nullptr;
  double scale = 1;

  double cost(int id) const { return scale * explorer->cost(id); }
  double frontier() const { return scale * explorer->frontier(); }
  int steps(int id) const { return explorer->at(id).steps; }
  const program::Sharding& sharding(int id) const { return explorer->sharding(id); }
  /// The limit gets a margin for rounding, so that a cost reported by `frontier` is never refused.
  bool next(double limit) const { return explorer->next(limit / scale * (1.0 + 1e-12)); }
  /// The cost of the nth sharding in order of cost, settled (maybe by another search) or next; infinity if none.
  double cost_of(std::size_t nth) const {
    return nth < explorer->order().size() ? cost(explorer->order()[nth]) : frontier();
  }
};

/// The steps between the explorer's start and a sharding that it reached, forwards or backwards.
void find_moves(const View& view, int id, bool forwards, std::vector<PlanOutline::Move>& moves) {
  const Explorer& explorer = *view.explorer;
  moves.clear();
  for (; explorer.at(id).parent >= 0; id = explorer.at(id).parent) {
    const Reached& here = explorer.at(id);
    const auto [from, to] = forwards ? std::pair(here.parent, id) : std::pair(id, here.parent);
    moves.push_back(
        {here.kind, here.axes, explorer.sharding(from), explorer.sharding(to), view.cost(id) - view.cost(here.parent)});
  }
  if (forwards) std::reverse(moves.begin(), moves.end());
}

/// Adds the moves of a tensor to a plan; returns its number at the end.
int add_moves(const program::Mesh& mesh, int tensor, const std::vector<PlanOutline::Move>& moves, Plan& plan) {
  for (const PlanOutline::Move& move : moves)
    tensor = plan.move(mesh, tensor, move.kind, move.axes, move.after, move.cost);
  return tensor;
}

Plan plan_of(const program::Mesh& mesh, const ShardingExpression& e, const PlanOutline& outline) {
  Plan plan;
  plan.steps.reserve(outline.left.size() + outline.right.size() + outline.result.size() + 1);
  int left = plan.add(with(e.left, without_unit_axes(mesh, e.left.sharding)));
  int right = plan.add(with(*e.right, without_unit_axes(mesh, e.right->sharding)));
  left = add_moves(mesh, left, outline.left, plan);
  right = add_moves(mesh, right, outline.right, plan);
  add_moves(mesh, plan.multiply(mesh, left, right, with(*e.result, outline.product)), outline.result, plan);
  plan.total = outline.total;
  return plan;
}

/// Where the tensors of a product start and must end, without axes of size one.
struct Ends {
  program::Sharding left, right, result;
};

/// The cost of the plan that replicates both operands and slices the result.
double gather_all(const program::Mesh& mesh, const ShardingExpression& e, const Ends& ends, const Correspondence& c,
                  const Prices& prices) {
  // A whole result cannot become a partial sum, so with such a target no bound is certain.
  if (ends.result.unreduced) return infinity;
  double cost = 0.0;
  const auto replicate = [&](const program::Tensor& tensor, const program::Sharding& sharding) {
    const program::AxisSet split = sharding.split_axes();
    if (split) cost += prices(program::Collective::all_gather, split, held_bytes(mesh, tensor, sharding));
    if (sharding.unreduced)
      cost += prices(program::Collective::all_reduce, sharding.unreduced, held_bytes(mesh, tensor, {}));
  };
  replicate(e.left, ends.left);
  replicate(*e.right, ends.right);
  return std::max(cost, prices.per_flop * local_flops(mesh, c, {}, {}).value()) * (1.0 + 1e-12);
}

struct Candidate {
  int left, right, result;
  double cost, total;
  int steps;
  std::pair<std::size_t, int> turn;  ///< when a search that takes shardings in order of cost gets to it
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.total != b.total) return a.total < b.total;
  if (a.cost != b.cost) return a.cost < b.cost;
  return a.steps != b.steps ? a.steps < b.steps : a.turn < b.turn;
}

/// The data that a plan moves, to tell alternatives apart.
std::string signature(const program::Mesh& mesh, const Plan& plan) {
  std::string text;
  for (const program::Step& step : plan.steps)
    if (program::is_collective(step.op)) text += program::step_text(mesh, plan.tensors, step) + ";";
  return text;
}

}  // namespace

/// What an exploration depends on, besides mesh and prices.
struct ExplorationKey {
  TensorExtent extent;
  program::Sharding start;
  std::size_t rank = 0;
  bool forward = true;

  friend bool operator==(const ExplorationKey&, const ExplorationKey&) = default;
};

struct ExplorationHash {
  std::size_t operator()(const ExplorationKey& key) const {
    std::uint64_t h = key.start.unreduced * 2 + (key.forward ? 1 : 0);
    for (std::size_t d = 0; d < key.rank; ++d) {
      h = mixed(h, key.start.dims[d].bits());
      h = mixed(h, static_cast<std::uint64_t>(key.extent.sizes[d]));
    }
    return h + static_cast<std::size_t>(key.extent.dtype);
  }
};

/// The memory of all searches on one mesh.
struct Planner::Workspace {
  Workspace(const program::Mesh& over, bool single) : mesh(over), once(single), prices(over) {}

  void begin(const Prices& at);
  View view(const program::Tensor& tensor, const program::Sharding& start, bool forward);
  void search(const ShardingExpression& e, const Prices& at, std::size_t wanted);
  bool consider(double per_flop, int l, int r, std::size_t wanted, std::pair<std::size_t, int> turn);
  void describe(const Candidate& candidate);
  double limit(std::size_t wanted) const { return found.size() < wanted ? certain : found.back().total; }

  program::Mesh mesh;
  bool once;
  Prices prices;  ///< prices of the explorations
  bool proportional = false;
  std::array<std::unique_ptr<ShardingSpace>, 2 * (program::max_tensor_rank + 1)> spaces;
  std::unordered_map<ExplorationKey, std::unique_ptr<Explorer>, ExplorationHash> explorations;
  View left, right, result;
  TakenSides lefts, rights;
  std::vector<Candidate> found;
  Correspondence rows;
  double certain = infinity;  ///< a plan of this cost exists
  PlanOutline outline;
};

/// Forgets explorations at other prices, or too many of them.
void Planner::Workspace::begin(const Prices& at) {
  constexpr std::size_t most_remembered = 1 << 20;  // shardings; about 50 MB
  std::size_t largest = 1;
  for (const auto& space : spaces)
    if (space) largest = std::max(largest, static_cast<std::size_t>(space->size()));
  if (!once && explorations.size() * largest <= most_remembered && prices.same_lines(at)) return;
  explorations.clear();
  prices = at;
  proportional = !once && prices.proportional();
}

View Planner::Workspace::view(const program::Tensor& tensor, const program::Sharding& start, bool forward) {
  ExplorationKey key{{{}, tensor.dtype, false}, start, tensor.dims.size(), forward};
  bool divides = proportional;
  for (std::size_t d = 0; d < key.rank; ++d) {
    key.extent.sizes[d] = tensor.dims[d].size;
    divides = divides && tensor.dims[d].size % mesh.devices() == 0;
  }
  double scale = 1.0;
  if (divides) {
    scale = held_bytes(mesh, tensor, {}).value();
    key.extent = {{}, Dtype::bf16, true};
  }
  std::unique_ptr<Explorer>& kept = explorations[key];
  if (!kept) {
    auto& space = spaces[2 * key.rank + (forward ? 1 : 0)];
    if (!space) space = std::make_unique<ShardingSpace>(mesh, key.rank, forward);
    kept = std::make_unique<Explorer>(*space, key.extent, start, prices, once);
  }
  return {kept.get(), scale};
}

/// One pair of operands; the result's distances are settled only as far as the pair needs them. False if the pair, and
/// so all with more expensive operands, cost too much.
bool Planner::Workspace::consider(double per_flop, int l, int r, std::size_t wanted, std::pair<std::size_t, int> turn) {
  const double before = left.cost(l) + right.cost(r), most = limit(wanted);
  if (before > most) return false;
  const auto product = multiply(rows, left.sharding(l), right.sharding(r));
  if (!product) return true;
  const double compute =
      per_flop > 0.0 ? per_flop * local_flops(mesh, rows, left.sharding(l), right.sharding(r)).value() : 0.0;
  if (compute > most) return true;
  const int end = result.explorer->find(*product);
  while (!result.explorer->settled(end))
    if (!result.next(most - before)) return true;
  const double cost = before + result.cost(end);
  const Candidate candidate{
      l, r, end, cost, std::max(cost, compute), left.steps(l) + right.steps(r) + result.steps(end), turn};
  if (candidate.total > most) return true;
  found.insert(std::upper_bound(found.begin(), found.end(), candidate, better), candidate);
  if (found.size() > wanted) found.pop_back();
  return true;
}

/// Finds the `wanted` best candidates.
void Planner::Workspace::search(const ShardingExpression& e, const Prices& at, std::size_t wanted) {
  begin(at);
  const Ends ends{without_unit_axes(mesh, e.left.sharding), without_unit_axes(mesh, e.right->sharding),
                  without_unit_axes(mesh, e.result->sharding)};
  rows = correspond(e);
  left = view(e.left, ends.left, true);
  right = view(*e.right, ends.right, true);
  result = view(*e.result, ends.result, false);
  lefts.clear();
  rights.clear();
  found.clear();
  // Gathering both operands whole and multiplying everywhere is always possible, so nothing more expensive needs
  // a look.
  certain = wanted == 1 ? gather_all(mesh, e, ends, rows, at) : infinity;
  // Each round takes the next sharding of the cheaper side and pairs it with all known shardings of the other side.
  while (true) {
    const double next_left = left.cost_of(lefts.size()), next_right = right.cost_of(rights.size());
    const bool take_left = next_left <= next_right;
    const double cheapest = take_left ? next_left : next_right, most = limit(wanted);
    if (cheapest > most || cheapest == infinity) break;
    const View &view = take_left ? left : right, &other = take_left ? right : left;
    TakenSides& sides = take_left ? lefts : rights;
    if (sides.size() == view.explorer->order().size() && !view.next(most)) continue;
    const int id = view.explorer->order()[sides.size()];
    const Side side = side_of(rows, view.sharding(id), take_left);
    sides.add(side);
    const std::size_t round = lefts.size() + rights.size();
    (take_left ? rights : lefts).each_fitting(side, [&](int place) {
      const int with = other.explorer->order()[static_cast<std::size_t>(place)];
      return consider(at.per_flop, take_left ? id : with, take_left ? with : id, wanted, {round, place});
    });
  }
}

void Planner::Workspace::describe(const Candidate& candidate) {
  find_moves(left, candidate.left, true, outline.left);
  find_moves(right, candidate.right, true, outline.right);
  find_moves(result, candidate.result, false, outline.result);
  outline.left_factor = left.sharding(candidate.left);
  outline.right_factor = right.sharding(candidate.right);
  outline.product = result.sharding(candidate.result);
  outline.cost = candidate.cost;
  outline.total = candidate.total;
  outline.flops = local_flops(mesh, rows, outline.left_factor, outline.right_factor);
}

Planner::Planner(const program::Mesh& mesh, bool once) : workspace_(std::make_unique<Workspace>(mesh, once)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner::~Planner() = default;

const PlanOutline& Planner::outline(const ShardingExpression& expression, const Prices& prices) {
  workspace_->search(expression, prices, 1);
  workspace_->describe(workspace_->found.front());
  return workspace_->outline;
}

PlanChoice Planner::product(const ShardingExpression& expression, const Prices& prices, std::size_t alternatives) {
  Workspace& at = *workspace_;
  PlanChoice choice;
  if (alternatives == 0) {
    choice.best = plan_of(at.mesh, expression, outline(expression, prices));
    return choice;
  }
  at.search(expression, prices, 8 * (alternatives + 1));
  std::vector<std::string> seen;
  for (const Candidate& candidate : at.found) {
    at.describe(candidate);
    Plan plan = plan_of(at.mesh, expression, at.outline);
    const std::string moves = signature(at.mesh, plan);
    if (std::find(seen.begin(), seen.end(), moves) != seen.end()) continue;
    seen.push_back(moves);
    if (seen.size() == 1)
      choice.best = std::move(plan);
    else if (choice.others.size() < alternatives)
      choice.others.push_back(std::move(plan));
  }
  return choice;
}

Plan Planner::reshard(const program::Tensor& tensor, const program::Sharding& target, const Prices& prices) {
  Plan plan;
  reshard(plan, plan.add(with(tensor, without_unit_axes(workspace_->mesh, tensor.sharding))), target, prices);
  plan.total = plan.cost;
  return plan;
}

int Planner::reshard(Plan& plan, int from, const program::Sharding& target, const Prices& prices) {
  Workspace& at = *workspace_;
  const program::Tensor& tensor = plan.tensor(from);
  at.begin(prices);
  const View view = at.view(tensor, tensor.sharding, true);
  const int id = view.explorer->find(without_unit_axes(at.mesh, target));
  while (!view.explorer->settled(id))
    if (!view.next(infinity)) throw InternalError("a sharding cannot be reached");
  find_moves(view, id, true, at.outline.left);
  return add_moves(at.mesh, from, at.outline.left, plan);
}

PlanChoice plan_product(const program::Mesh& mesh, const ShardingExpression& expression, const Prices& prices,
                        std::size_t alternatives) {
  return Planner(mesh, true).product(expression, prices, alternatives);
}

Plan plan_reshard(const program::Mesh& mesh, const program::Tensor& from, const program::Sharding& to,
                  const Prices& prices) {
  return Planner(mesh, true).reshard(from, to, prices);
}

}  // namespace assay::plan
