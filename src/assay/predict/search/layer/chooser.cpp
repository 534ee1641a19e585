#include "assay/predict/search/layer/chooser.h"

#include <algorithm>
#include <map>
#include <utility>

#include "assay/predict/search/layer/product_table.h"

namespace assay::search {
namespace {

/// The fastest option that needs no more than `memory`, if there is one.
const ProductOption* fastest(const std::vector<ProductOption>& front, Bytes memory) {
  for (const ProductOption& option : front)
    if (option.working <= memory) return &option;
  return nullptr;
}

Bytes least_working(const std::vector<ProductOption>& front) {
  Bytes least(HUGE_VAL);
  for (const ProductOption& option : front) least = std::min(least, option.working);
  return least;
}

/// A complete choice, as indices into the shardings.
struct Division {
  std::vector<std::size_t> tensors;
  std::size_t intermediate = 0, result = 0;
  std::vector<ProductOption> options;  ///< one for each product
  Seconds lower{HUGE_VAL}, upper{HUGE_VAL};
  Bytes memory{HUGE_VAL};
  double shortest_side = 0;  ///< shortest side of the shards; longer ones fill the tiles of matrix units better
};

bool equal(const Division& a, const Division& b) {
  return nearly_equal(a.lower, b.lower) && nearly_equal(a.upper, b.upper) && nearly_equal(a.memory, b.memory);
}

bool better(const Division& a, const Division& b) {
  if (!nearly_equal(a.lower, b.lower)) return a.lower < b.lower;
  if (!nearly_equal(a.upper, b.upper)) return a.upper < b.upper;
  if (!nearly_equal(a.memory, b.memory)) return a.memory < b.memory;
  return a.shortest_side > b.shortest_side;
}

class Search {
 public:
  Search(const program::Mesh& mesh, const ChooserProblem& problem, const ChooserHardware& hardware)
      : mesh_(mesh), problem_(problem), hardware_(hardware), shardings_(all_shardings(mesh, 2)) {
    const auto& t = problem.tensors;
    products_.reserve(2);
    if (problem.layer()) {
      products_.emplace_back(mesh, shardings_, t[0], true, t[1], problem.intermediate, hardware);
      products_.emplace_back(mesh, shardings_, problem.intermediate, false, t[2], problem.result, hardware);
    } else {
      products_.emplace_back(mesh, shardings_, t[0], true, t[1], problem.result, hardware);
    }
    for (std::size_t i = 0; i < t.size(); ++i)
      allowed_.push_back(problem.fixed.size() > i && problem.fixed[i] ? std::vector{index_of(t[i].sharding)} : all());
    results_ = problem.layer() || problem.result_free ? all() : std::vector{index_of(problem.result.sharding)};
  }

  LayerSearch run() {
    visit([&](const std::vector<std::size_t>& tensors, Bytes stored) {
      ++search_.considered;
      const Bytes slack = hardware_.memory - stored;
      std::optional<Division> candidate = slack >= Bytes() ? best_of(tensors, stored, slack) : std::nullopt;
      if (candidate)
        keep(std::move(*candidate));
      else
        ++search_.over_memory;
    });
    finish_kept();
    if (search_.choices.empty()) search_.smallest = finished(smallest());
    return std::move(search_);
  }

 private:
  std::size_t index_of(const program::Sharding& sharding) const {
    const auto found = std::find(shardings_.begin(), shardings_.end(), plan::without_unit_axes(mesh_, sharding));
    if (found == shardings_.end()) throw InternalError("a sharding that the chooser does not know");
    return static_cast<std::size_t>(found - shardings_.begin());
  }

  std::vector<std::size_t> all() const {
    std::vector<std::size_t> list(shardings_.size());
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = i;
    return list;
  }

  program::Tensor sharded(program::Tensor tensor, std::size_t sharding) const {
    tensor.sharding = shardings_[sharding];
    return tensor;
  }

  template <class F>
  void visit(const F& each) {
    std::vector<std::vector<Bytes>> bytes(allowed_.size());
    for (std::size_t i = 0; i < allowed_.size(); ++i)
      for (std::size_t s = 0; s < shardings_.size(); ++s)
        bytes[i].push_back(program::local_bytes(mesh_, sharded(problem_.tensors[i], s)));
    for (std::size_t a : allowed_[0])
      for (std::size_t b : allowed_[1]) {
        if (!problem_.layer()) {
          each({a, b}, bytes[0][a] + bytes[1][b]);
          continue;
        }
        for (std::size_t c : allowed_[2]) each({a, b, c}, bytes[0][a] + bytes[1][b] + bytes[2][c]);
      }
  }

  /// The best way to compute with these shardings in that much memory in addition to the tensors.
  std::optional<Division> best_of(const std::vector<std::size_t>& t, Bytes stored, Bytes slack) {
    Division best;
    const ProductOption *first = nullptr, *second = nullptr;
    for (std::size_t middle : results_) {
      const ProductOption* one = fastest(products_[0].front(t[0], t[1], middle), slack);
      const ProductOption* two =
          problem_.layer() && one ? fastest(products_[1].front(middle, t[2], t[0]), slack) : nullptr;
      if (!one || (problem_.layer() && !two)) continue;
      Division candidate;
      candidate.lower = one->lower + (two ? two->lower : Seconds());
      candidate.upper = one->upper + (two ? two->upper : Seconds());
      candidate.memory = stored + std::max(one->working, two ? two->working : Bytes());
      if (first && !better(candidate, best)) continue;
      candidate.intermediate = middle;
      best = candidate;
      first = one;
      second = two;
    }
    if (!first) return std::nullopt;
    best.tensors = t;
    best.result = problem_.layer() ? t[0] : best.intermediate;
    best.options.push_back(*first);
    if (second) best.options.push_back(*second);
    best.shortest_side = shortest_side(t);
    return best;
  }

  double shortest_side(const std::vector<std::size_t>& t) const {
    double shortest = HUGE_VAL;
    for (std::size_t i = 0; i < t.size(); ++i)
      for (std::int64_t side : program::local_shape(mesh_, sharded(problem_.tensors[i], t[i])))
        shortest = std::min(shortest, static_cast<double>(side));
    return shortest;
  }

  /// Keeps the best choice for each way to divide the work, the first of equal ones, so that runners-up are different
  /// ideas and not the best one with a tensor stored less well.
  void keep(Division candidate) {
    if (best_ && equal(candidate, *best_)) ++search_.equal;
    if (!best_ || better(candidate, *best_)) {
      if (best_ && !equal(candidate, *best_)) search_.equal = 0;
      best_ = candidate;
    }
    std::vector<double> division;
    for (std::size_t p = 0; p < candidate.options.size(); ++p)
      for (double ways : products_[p].meeting(candidate.options[p].meeting).ways) division.push_back(ways);
    const auto [place, is_new] = kept_.try_emplace(std::move(division), candidate);
    if (!is_new && better(candidate, place->second)) place->second = std::move(candidate);
  }

  void finish_kept() {
    std::vector<Division> sorted;
    for (const auto& [division, candidate] : kept_) sorted.push_back(candidate);
    std::stable_sort(sorted.begin(), sorted.end(), better);
    if (sorted.size() > problem_.runners_up + 1) sorted.resize(problem_.runners_up + 1);
    for (const Division& candidate : sorted) search_.choices.push_back(finished(candidate));
  }

  Division smallest() {
    std::optional<Division> least;
    visit([&](const std::vector<std::size_t>& t, Bytes stored) {
      if (least && stored > least->memory) return;
      Bytes working(HUGE_VAL);
      for (std::size_t middle : results_) {
        Bytes needed = least_working(products_[0].front(t[0], t[1], middle));
        if (problem_.layer()) needed = std::max(needed, least_working(products_[1].front(middle, t[2], t[0])));
        working = std::min(working, needed);
      }
      if (least && clearly_less(least->memory, stored + working)) return;
      Division candidate = *best_of(t, stored, working);
      if (!least || clearly_less(candidate.memory, least->memory) || better(candidate, *least))
        least = std::move(candidate);
    });
    return *least;
  }

  /// The candidate with its plans, step by step.
  LayerChoice finished(const Division& candidate) {
    LayerChoice choice;
    for (std::size_t i = 0; i < candidate.tensors.size(); ++i) {
      choice.tensors.push_back(sharded(problem_.tensors[i], candidate.tensors[i]));
      choice.stored += program::local_bytes(mesh_, choice.tensors.back());
    }
    choice.result = sharded(problem_.result, candidate.result);
    if (problem_.layer()) choice.intermediate = sharded(problem_.intermediate, candidate.intermediate);
    const std::size_t first_result = problem_.layer() ? candidate.intermediate : candidate.result;
    for (std::size_t p = 0; p < candidate.options.size(); ++p) {
      const std::size_t left = p == 0 ? candidate.tensors[0] : candidate.intermediate, right = candidate.tensors[p + 1],
                        result = p == 0 ? first_result : candidate.result;
      add_product(choice, p, left, right, result, candidate.options[p]);
    }
    return choice;
  }

  void add_product(LayerChoice& choice, std::size_t p, std::size_t left, std::size_t right, std::size_t result,
                   const ProductOption& option) {
    const ProductMeeting& at = products_[p].meeting(option.meeting);
    const bool first = p == 0;
    const program::Tensor& x = first ? problem_.tensors[0] : problem_.intermediate;
    const program::Tensor& y = problem_.tensors[p + 1];
    program::Tensor product = first && problem_.layer() ? problem_.intermediate : problem_.result;
    product.sharding = at.result;
    plan::Plan plan;
    const int given_left = plan.add(sharded(x, left)), given_right = plan.add(sharded(y, right));
    const int first_factor = planner_.reshard(plan, given_left, shardings_[at.left], hardware_.prices);
    const int second_factor = planner_.reshard(plan, given_right, shardings_[at.right], hardware_.prices);
    const int made = plan.multiply(mesh_, first_factor, second_factor, std::move(product));
    planner_.reshard(plan, made, shardings_[result], hardware_.prices);
    plan.total = option.lower.value();
    choice.plans.push_back(std::move(plan));

    ProductTimes times{at.compute, at.memory, products_[p].communication(left, right, result, option), option.lower,
                       option.upper};
    choice.products.push_back(times);
    choice.times.compute += times.compute;
    choice.times.memory += times.memory;
    choice.times.communication += times.communication;
    choice.times.lower += times.lower;
    choice.times.upper += times.upper;
    choice.working = std::max(choice.working, option.working);
    choice.weight_traffic += at.weight_bytes;
  }

  const program::Mesh& mesh_;
  const ChooserProblem& problem_;
  const ChooserHardware& hardware_;
  std::vector<program::Sharding> shardings_;
  std::vector<ProductTable> products_;
  std::vector<std::vector<std::size_t>> allowed_;
  std::vector<std::size_t> results_;  ///< shardings that the intermediate, or the result of one product, may have
  plan::Planner planner_{mesh_};
  std::map<std::vector<double>, Division> kept_;  ///< by how the work is divided
  std::optional<Division> best_;
  LayerSearch search_;
};

/// Recursively puts each unused axis into each dimension, innermost.
void add_shardings(const std::vector<int>& axes, std::size_t rank, const program::Sharding& from,
                   std::vector<program::Sharding>& all) {
  if (std::find(all.begin(), all.end(), from) != all.end()) return;
  all.push_back(from);
  for (std::size_t d = 0; d < rank; ++d)
    for (int axis : axes) {
      if (from.split_axes() & program::axis_bit(axis)) continue;
      program::Sharding next = from;
      next.dims[d] = next.dims[d].pushed(axis);
      add_shardings(axes, rank, next, all);
    }
}

}  // namespace

std::vector<program::Sharding> all_shardings(const program::Mesh& mesh, std::size_t rank) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) axes.push_back(static_cast<int>(i));
  std::vector<program::Sharding> all;
  add_shardings(axes, rank, {}, all);
  return all;
}

LayerSearch choose_sharding(const program::Mesh& mesh, const ChooserProblem& problem, const ChooserHardware& hardware) {
  return Search(mesh, problem, hardware).run();
}

std::string_view limiter_of(const ProductTimes& times) {
  if (times.communication >= times.compute && times.communication >= times.memory) return "network";
  return times.compute >= times.memory ? "compute" : "memory";
}

std::string_view limiter_of(const LayerChoice& choice) {
  return limiter_of(*std::max_element(choice.products.begin(), choice.products.end(),
                                      [](const auto& a, const auto& b) { return a.lower < b.lower; }));
}

Seconds expected_time(const hardware::Chip& chip, const LayerChoice& choice) {
  Seconds sum;
  for (const ProductTimes& p : choice.products)
    sum += std::max({p.compute / chip.efficiency.matrix.value, p.memory / chip.efficiency.memory.value,
                     p.communication / hardware::network_efficiency(chip)});
  return sum;
}

}  // namespace assay::search
