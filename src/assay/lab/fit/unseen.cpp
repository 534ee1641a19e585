#include "assay/lab/fit/unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "assay/hardware/calibration.h"
#include "assay/lab/fit/serving.h"
#include "assay/lab/fit/steps.h"
#include "assay/predict/numbers/interval.h"

namespace assay::validate {
namespace {

/// Classes of all cases but those of one chip.
std::vector<numbers::IntervalClass> classes_without(const std::vector<ValidationCase>& cases,
                                                    std::string_view left_out) {
  std::vector<numbers::Residual> residuals;
  for (const ValidationCase& one : cases)
    if (one.without.chip != left_out)
      residuals.push_back({one.group,
                           std::log(one.predicted.value / one.measured.value),
                           one.without.classes,
                           {},
                           {},
                           one.without.chip});
  return numbers::interval_classes(residuals, hardware::spread_coverage);
}

}  // namespace

void FamiliesSeen::add(const numbers::Family* family, const std::string& of) {
  if (family) seen_[family->id].insert(of);
}

bool FamiliesSeen::without(const numbers::Family* family, const std::string& of) const {
  const auto found = seen_.find(family ? family->id : "");
  return found != seen_.end() && found->second.size() > found->second.count(of);
}

Result<LeftOutResults> left_out_results(const std::string& set, const hardware::Catalogue& catalogue,
                                        const std::optional<std::string>& data, const AskWith& ask_with) {
  LeftOutResults out;
  if (set == "training") {
    ASSAY_TRY(steps, steps_without_chips(catalogue, data));
    out.emplace_back(set, std::move(steps));
    return out;
  }
  if (set == "inference-throughput" && ask_with) {
    ASSAY_TRY(all, without_chips(catalogue, data, ask_with));
    out.emplace_back(set, std::move(all.throughputs));
    return out;
  }
  if (set != "inference-tpot" && set != "inference-ttft")
    return fail("--leave-out",
                ask_with ? "whole chips are left out of training, inference-tpot, inference-ttft and "
                           "inference-throughput"
                         : "training, inference-tpot and inference-ttft have intervals for what has no row",
                "name one", Error::Kind::usage);
  ASSAY_TRY(both, without_chips(catalogue, data));
  out.emplace_back("inference-tpot", std::move(both.tokens));
  out.emplace_back("inference-ttft", std::move(both.first_tokens));
  if (out.front().first != set) std::swap(out.front(), out.back());
  return out;
}

void widen_to_unseen(std::vector<ValidationCase>& cases) {
  std::map<std::string, std::vector<numbers::IntervalClass>> others;
  for (const ValidationCase& one : cases)
    if (!others.contains(one.without.chip)) others[one.without.chip] = classes_without(cases, one.without.chip);
  for (ValidationCase& one : cases)
    if (const auto* found = numbers::interval_of(others[one.without.chip], one.without.classes))
      one.spread = std::max(one.spread, found->spread);
}

std::pair<std::string, std::string> unseen_file_of(const std::vector<ValidationCase>& cases, std::string_view set) {
  numbers::UnseenIntervals unseen;
  unseen.what = "chip";
  std::set<std::string> known;
  for (const ValidationCase& one : cases) known.insert(one.without.chip);
  unseen.known.assign(known.begin(), known.end());
  unseen.classes = classes_without(cases, "");
  return {numbers::unseen_file(set, unseen.what),
          numbers::unseen_text(unseen,
                               fmt::format("errors of {} rows of {} whose whole chip no fit saw", cases.size(), set),
                               fmt::format("assay validate {} --leave-out hardware --fit catalogue --data DIR", set))};
}

}  // namespace assay::validate
