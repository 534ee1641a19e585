#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/verbs/profile/profile.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

/// One thing in both profiles.
struct Pair {
  std::string label, shapes, category, kind;
  double calls[2] = {0.0, 0.0};
  Seconds time[2];

  Seconds change() const { return time[1] - time[0]; }
};

/// The largest changes first, whichever their sign.
report::Items pair_rows(std::vector<Pair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::abs(a.change().value()) > std::abs(b.change().value());
  });
  return report::rows_of(pairs, [&](const Pair& pair) {
    report::Members row;
    const auto add = [&](const char* key, const std::string& text) {
      if (!text.empty()) row.emplace_back(key, text);
    };
    add("label", pair.label);
    add("shapes", pair.shapes);
    add("category", pair.category);
    add("kind", pair.kind);
    row.emplace_back("calls_before", pair.calls[0]);
    row.emplace_back("calls_after", pair.calls[1]);
    row.emplace_back("before", pair.time[0]);
    row.emplace_back("after", pair.time[1]);
    row.emplace_back("change", pair.change());
    return row;
  });
}

template <class Key>
std::vector<Pair> values_of(std::map<Key, Pair> pairs) {
  std::vector<Pair> out;
  for (auto& [key, pair] : pairs) out.push_back(std::move(pair));
  return out;
}

}  // namespace

void add_comparison(const Query& query, report::Members& out) {
  if (!query.before) return;
  const trace::DeviceSummary* summaries[2] = {&query.before->summary, &query.device().summary};
  const bool by_step = !summaries[0]->steps.empty() && !summaries[1]->steps.empty();
  std::map<std::pair<std::string, std::string>, Pair> categories, operations;
  report::Members sides[2];
  Seconds totals[2];
  for (std::size_t side = 0; side < 2; ++side) {
    const trace::DeviceSummary& summary = *summaries[side];
    const double steps = by_step ? static_cast<double>(summary.steps.size()) : 1.0;
    for (const trace::CategoryTime& one : summary.categories) {
      const std::string& id = query.vocabulary->categories[one.category].id;
      Pair& pair = categories[{id, one.kind}];
      pair.category = id;
      pair.kind = one.kind;
      pair.calls[side] += static_cast<double>(one.count) / steps;
      pair.time[side] += one.time / steps;
    }
    for (const trace::OperationTime& one : summary.operations) {
      // Kernels of one operation change with versions of libraries: where the operation is known, it is what is
      // compared.
      const std::string label = one.name.empty() ? short_kernel(one.kernel) : one.name;
      Pair& pair = operations[{label, one.shapes}];
      pair.label = label;
      pair.shapes = one.shapes;
      pair.category = query.vocabulary->categories[one.category].id;
      pair.calls[side] += static_cast<double>(one.calls) / steps;
      pair.time[side] += one.time / steps;
    }
    totals[side] = summary.times.total / steps;
    const Device& device = side == 0 ? *query.before : query.device();
    sides[side].emplace_back("file", query.traces[device.trace].file);
    sides[side].emplace_back("steps", static_cast<std::int64_t>(summary.steps.size()));
    sides[side].emplace_back("time", totals[side]);
    sides[side].emplace_back("computation_time", summary.times.computation / steps);
    sides[side].emplace_back("exposed_communication_time", summary.times.exposed_communication / steps);
    sides[side].emplace_back("exposed_copy_time", summary.times.exposed_copies / steps);
    sides[side].emplace_back("idle_time", summary.times.idle / steps);
  }
  report::Members comparison{{"per", by_step ? "step" : "profile"},
                             {"before", std::move(sides[0])},
                             {"after", std::move(sides[1])},
                             {"change", totals[1] - totals[0]}};
  if (totals[0] > Seconds(0)) comparison.emplace_back("relative_change", totals[1] / totals[0] - 1.0);
  comparison.emplace_back("categories", pair_rows(values_of(std::move(categories))));
  comparison.emplace_back("operations", pair_rows(values_of(std::move(operations))));
  out.emplace_back("comparison", std::move(comparison));
}

}  // namespace assay::verbs::profile
