#include "assay/profile/hlo/trips.h"

#include <cmath>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

/// What a number of a loop is made of: a constant, or a value that the loop carries and something added to it.
struct Origin {
  std::optional<double> constant;
  std::optional<std::int64_t> carried;
  double added = 0.0;
};

constexpr int deepest_origin = 64, most_looks = 10'000;

class OriginFinder {
 public:
  explicit OriginFinder(const Module& module) : module_(module) {}

  /// `bound` are the origins of the computation's parameters; without them its parameter is what a loop carries.
  Origin of(const Computation& computation, std::uint32_t number, const std::vector<Origin>* bound,
            int depth = 0) const {
    if (depth > deepest_origin || --looks_left_ < 0) return {};
    const Instruction& at = computation.instructions[number];
    const auto operand = [&](std::size_t i) { return of(computation, at.operands[i], bound, depth + 1); };
    if (at.opcode == "constant") return {parse_number(trim(at.argument)), {}, 0.0};
    if (at.opcode == "parameter" && bound) {
      const auto index = number_list(at.argument);
      if (index.size() == 1 && index.front() >= 0 && static_cast<std::size_t>(index.front()) < bound->size())
        return (*bound)[static_cast<std::size_t>(index.front())];
      return {};
    }
    if (at.opcode == "get-tuple-element" && at.operands.size() == 1) {
      const Instruction& from = computation.instructions[at.operands.front()];
      const auto index = number_list(at.attribute("index"));
      if (index.size() != 1) return {};
      if (from.opcode == "parameter" && !bound) return {{}, index.front(), 0.0};
      const bool tuple = from.opcode == "tuple" && index.front() >= 0 &&
                         static_cast<std::size_t>(index.front()) < from.operands.size();
      return tuple ? of(computation, from.operands[static_cast<std::size_t>(index.front())], bound, depth + 1)
                   : Origin{};
    }
    if ((at.opcode == "add" || at.opcode == "subtract") && at.operands.size() == 2) {
      const double sign = at.opcode == "add" ? 1.0 : -1.0;
      Origin a = operand(0);
      const Origin b = operand(1);
      if (b.constant && (a.carried || a.constant)) {
        if (a.constant) return {*a.constant + sign * *b.constant, {}, 0.0};
        a.added += sign * *b.constant;
        return a;
      }
      if (a.constant && b.carried && sign > 0.0) return {{}, b.carried, b.added + *a.constant};
      return {};
    }
    if (at.opcode == "copy" || at.opcode == "convert" || at.opcode == "bitcast" || at.opcode == "reshape" ||
        at.opcode == "broadcast" || at.opcode == "copy-done" || at.opcode == "copy-start")
      return at.operands.empty() ? Origin{} : operand(0);
    if ((at.opcode == "fusion" || at.opcode == "call") && at.callees.size() == 1) {
      const Computation& callee = module_.computations[at.callees.front()];
      if (callee.instructions.empty()) return {};
      std::vector<Origin> inner;
      for (std::size_t i = 0; i < at.operands.size(); ++i) inner.push_back(operand(i));
      return of(callee, callee.root, &inner, depth + 1);
    }
    return {};
  }

  struct Comparison {
    std::string_view direction;
    Origin left, right;
  };
  std::optional<Comparison> comparison(const Computation& computation, std::uint32_t number,
                                       const std::vector<Origin>* bound, int depth = 0) const {
    const Instruction& at = computation.instructions[number];
    if (depth > deepest_origin) return std::nullopt;
    if (at.opcode == "compare" && at.operands.size() == 2)
      return Comparison{at.attribute("direction"), of(computation, at.operands[0], bound),
                        of(computation, at.operands[1], bound)};
    if ((at.opcode == "fusion" || at.opcode == "call") && at.callees.size() == 1) {
      const Computation& callee = module_.computations[at.callees.front()];
      if (callee.instructions.empty()) return std::nullopt;
      std::vector<Origin> inner;
      for (const std::uint32_t operand : at.operands) inner.push_back(of(computation, operand, bound));
      return comparison(callee, callee.root, &inner, depth + 1);
    }
    return std::nullopt;
  }

 private:
  const Module& module_;
  mutable int looks_left_ = most_looks;  ///< a number that takes more is none of a loop
};

}  // namespace

std::optional<double> trip_count(const Module& module, const Computation& computation, const Instruction& loop) {
  if (const std::string_view config = loop.attribute("backend_config"); !config.empty())
    if (const std::size_t at = config.find("known_trip_count"); at != std::string_view::npos)
      if (const auto known = number_after(config.substr(at), "n"); known && *known >= 0.0) return *known;
  const std::uint32_t condition = loop.callee("condition"), body = loop.callee("body");
  if (condition == no_computation || body == no_computation || loop.operands.size() != 1) return std::nullopt;
  const OriginFinder finder(module);
  const Computation& tests = module.computations[condition];
  const Computation& steps = module.computations[body];
  if (tests.instructions.empty() || steps.instructions.empty()) return std::nullopt;
  const auto found = finder.comparison(tests, tests.root, nullptr);
  if (!found) return std::nullopt;
  Origin counter = found->left, limit = found->right;
  std::string_view direction = found->direction;
  if (!counter.carried) {
    std::swap(counter, limit);
    direction = direction == "GT" ? "LT" : direction == "GE" ? "LE" : direction == "LT" ? "GT" : direction;
  }
  if (!counter.carried) return std::nullopt;
  // What the loop carries has its value before the loop, where the loop does not change it.
  const auto before = [&](std::int64_t index) -> std::optional<double> {
    const Instruction& initial = computation.instructions[loop.operands.front()];
    if (initial.opcode != "tuple" || index < 0 || static_cast<std::size_t>(index) >= initial.operands.size())
      return std::nullopt;
    return finder.of(computation, initial.operands[static_cast<std::size_t>(index)], nullptr).constant;
  };
  const auto end = limit.constant ? limit.constant : limit.carried ? before(*limit.carried) : std::nullopt;
  const auto start = before(*counter.carried);
  const Instruction& result = steps.instructions[steps.root];
  if (!end || !start || result.opcode != "tuple" || *counter.carried < 0 ||
      static_cast<std::size_t>(*counter.carried) >= result.operands.size())
    return std::nullopt;
  const Origin step = finder.of(steps, result.operands[static_cast<std::size_t>(*counter.carried)], nullptr);
  if (step.carried != counter.carried || step.added == 0.0) return std::nullopt;
  double distance = (*end - counter.added - *start) / step.added;
  if (direction == "LE" || direction == "GE") distance += 1.0 / std::abs(step.added);
  const bool towards = (step.added > 0.0 && (direction == "LT" || direction == "LE" || direction == "NE")) ||
                       (step.added < 0.0 && (direction == "GT" || direction == "GE" || direction == "NE"));
  constexpr double most_trips = 1e12;
  if (!towards || !(distance <= most_trips)) return std::nullopt;
  return std::max(0.0, std::ceil(distance - 1e-9));
}

}  // namespace assay::hlo
