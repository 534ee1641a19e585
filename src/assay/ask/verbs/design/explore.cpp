// Which designs of a space are asked: groups are bounded by a chip with the most of each resource.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "assay/ask/verbs/design/space.h"

namespace assay::verbs::design_verb {
namespace {

/// A group of designs that differ in rates alone, and how fast a chip with the most of each would be.
struct Group {
  std::vector<Candidate*> members;
  double bound = 0;
};

/// The rates as numbers of which more is never slower.
std::vector<double> numbers_of(const design::ChipRates& rates) {
  std::vector<double> out{rates.cores, rates.capacity.value(), rates.bandwidth.value(), rates.links,
                          rates.link_bandwidth.value()};
  for (const auto& [format, peak] : rates.peaks) out.push_back(peak.value());
  return out;
}

design::ChipRates most_of(const std::vector<Candidate*>& members) {
  design::ChipRates out = members.front()->rates;
  for (const Candidate* one : members) {
    out.cores = std::max(out.cores, one->rates.cores);
    out.capacity = std::max(out.capacity, one->rates.capacity);
    out.bandwidth = std::max(out.bandwidth, one->rates.bandwidth);
    out.links = std::max(out.links, one->rates.links);
    out.link_bandwidth = std::max(out.link_bandwidth, one->rates.link_bandwidth);
    for (std::size_t i = 0; i < out.peaks.size(); ++i)
      out.peaks[i].second = std::max(out.peaks[i].second, one->rates.peaks[i].second);
  }
  return out;
}

/// Two halves along the rate that differs most; one where all are equal.
std::vector<Group> halves(Group group) {
  std::vector<double> low = numbers_of(group.members.front()->rates), high = low;
  for (const Candidate* one : group.members) {
    const std::vector<double> numbers = numbers_of(one->rates);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      low[i] = std::min(low[i], numbers[i]);
      high[i] = std::max(high[i], numbers[i]);
    }
  }
  std::size_t widest = 0;
  for (std::size_t i = 0; i < low.size(); ++i)
    if (high[i] * low[widest] > high[widest] * low[i]) widest = i;
  if (high[widest] == low[widest]) return {std::move(group)};
  const auto of = [&](const Candidate* one) { return numbers_of(one->rates)[widest]; };
  std::sort(group.members.begin(), group.members.end(),
            [&](const Candidate* a, const Candidate* b) { return of(a) < of(b); });
  auto middle = group.members.begin() + static_cast<std::ptrdiff_t>(group.members.size() / 2);
  const double split = of(*middle);
  middle =
      std::find_if(group.members.begin(), group.members.end(), [&](const Candidate* one) { return of(one) >= split; });
  if (middle == group.members.begin())
    middle = std::find_if(middle, group.members.end(), [&](const Candidate* one) { return of(one) > split; });
  Group upper{{middle, group.members.end()}, group.bound};
  group.members.erase(middle, group.members.end());
  return {std::move(group), std::move(upper)};
}

/// Explores groups from the most promising on.
class Exploration {
 public:
  Exploration(Space& space, std::vector<Candidate>& all) : space_(space) {
    std::map<std::string, Group> groups;
    for (Candidate& one : all)
      if (one.why_not.empty())
        groups[space.is_bounded() ? one.rest : std::to_string(groups.size())].members.push_back(&one);
    for (auto& [rest, group] : groups) open_.push_back(std::move(group));
  }

  Result<void> run() {
    for (Group& group : open_) group.bound = std::numeric_limits<double>::infinity();
    while (!open_.empty()) ASSAY_CHECK(step());
    return {};
  }

 private:
  /// Asks the chips that bound the halves of the most promising groups.
  Result<void> step() {
    constexpr std::size_t at_once = 16;
    const Workload& workload = space_.workload();
    const auto promise = [&](const Group& group) {
      double best = 0.0;
      for (const Candidate* one : group.members) best = std::max(best, merit(workload, *one, group.bound));
      return best;
    };
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < open_.size(); ++i) order.emplace_back(-promise(open_[i]), i);
    std::sort(order.begin(), order.end());
    std::vector<Group> taken, rest;
    for (const auto& [negative, i] : order) (taken.size() < at_once ? taken : rest).push_back(std::move(open_[i]));
    open_ = std::move(rest);
    std::vector<Group> asked;
    for (Group& group : taken)
      for (Group& half : std::isfinite(group.bound) ? halves(std::move(group)) : std::vector<Group>{std::move(group)})
        asked.push_back(std::move(half));
    std::vector<Space::Question> questions;
    for (const Group& group : asked) questions.push_back({group.members.front(), most_of(group.members)});
    ASSAY_TRY(answers, space_.ask(questions));
    for (std::size_t i = 0; i < asked.size(); ++i) settle(std::move(asked[i]), *answers[i]);
    for (Group& group : open_) drop_beaten(group);
    std::erase_if(open_, [](const Group& group) { return group.members.empty(); });
    return {};
  }

  void settle(Group group, const Answered& answered) {
    if (!answered.why_not.empty()) {
      for (Candidate* one : group.members) one->why_not = answered.why_not;
      return;
    }
    group.bound = answered.speed;
    const std::vector<double> first = numbers_of(group.members.front()->rates);
    if (std::all_of(group.members.begin(), group.members.end(),
                    [&](const Candidate* one) { return numbers_of(one->rates) == first; })) {
      for (Candidate* one : group.members) {
        one->answered = &answered;
        known_.push_back(one);
      }
      return;
    }
    drop_beaten(group);
    if (!group.members.empty()) open_.push_back(std::move(group));
  }

  /// Members that cannot be on the front, nor the best: one that is known costs no more and is at least as fast as they
  /// could be. Rounding of tiles and waves makes more of a resource slower now and then: by less than this.
  void drop_beaten(Group& group) const {
    constexpr double rounding = 1.01;
    const Workload& workload = space_.workload();
    std::erase_if(group.members, [&](const Candidate* one) {
      return std::any_of(known_.begin(), known_.end(), [&](const Candidate* other) {
        return price_of(workload, *other) <= price_of(workload, *one) && other->speed() >= rounding * group.bound;
      });
    });
  }

  Space& space_;
  std::vector<Group> open_;
  std::vector<const Candidate*> known_;
};

}  // namespace

double price_of(const Workload& workload, const Candidate& one) {
  return workload.objective == Objective::speed_per_watt ? one.power.value() : one.owning.value();
}

double merit(const Workload& workload, const Candidate& one, double speed) {
  return workload.objective == Objective::speed ? speed : speed / price_of(workload, one);
}

Result<Found> explore(Space& space, std::vector<Candidate>& all) {
  ASSAY_CHECK(Exploration(space, all).run());
  const Workload& workload = space.workload();
  std::vector<const Candidate*> sorted;
  for (const Candidate& one : all)
    if (one.speed() > 0.0) sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Candidate* a, const Candidate* b) {
    const double left = price_of(workload, *a), right = price_of(workload, *b);
    return left != right ? left < right : a->speed() > b->speed();
  });
  Found out;
  for (const Candidate* one : sorted) {
    if (out.front.empty() || one->speed() > out.front.back()->speed()) out.front.push_back(one);
    if (!out.best || merit(workload, *one, one->speed()) > merit(workload, *out.best, out.best->speed()))
      out.best = one;
  }
  return out;
}

}  // namespace assay::verbs::design_verb
