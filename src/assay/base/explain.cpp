#include "assay/base/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "assay/base/text.h"

namespace assay {
namespace {

int precedence(Node::Op op) {
  switch (op) {
    case Node::Op::add:
    case Node::Op::sub:
      return 1;
    case Node::Op::mul:
    case Node::Op::div:
      return 2;
    default:
      return 3;
  }
}

std::string label(const Ledger& ledger, int id, int parent_precedence, bool right);

/// A sum of many terms, each written once with how often it occurs.
std::string sum_of_repeated(const Ledger& ledger, std::vector<int> terms) {
  std::vector<std::pair<int, int>> counts;
  for (const int term : terms) {
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& one) { return one.first == term; });
    if (known != counts.end())
      ++known->second;
    else
      counts.emplace_back(term, 1);
  }
  std::string text;
  for (const auto& [term, count] : counts)
    text += fmt::format("{}{}{}", text.empty() ? "" : " + ", count > 1 ? fmt::format("{} * ", count) : "",
                        label(ledger, term, count > 1 ? 2 : 1, true));
  return text;
}

/// The terms of a sum in their order.
std::vector<int> terms_of(const Ledger& ledger, const Node& sum) {
  std::vector<int> terms{sum.rhs};
  int id = sum.lhs;
  for (; ledger.at(id).op == Node::Op::add && ledger.at(id).name.empty(); id = ledger.at(id).lhs)
    terms.push_back(ledger.at(id).rhs);
  terms.push_back(id);
  std::reverse(terms.begin(), terms.end());
  return terms;
}

std::string formula(const Ledger& ledger, const Node& node) {
  constexpr std::size_t many_terms = 24;
  if (node.op == Node::Op::add)
    if (std::vector<int> terms = terms_of(ledger, node); terms.size() > many_terms)
      return sum_of_repeated(ledger, std::move(terms));
  const int level = precedence(node.op);
  switch (node.op) {
    case Node::Op::given:
      return "";
    case Node::Op::constant:
      return human(node.quantity);
    case Node::Op::ceil:
      return fmt::format("ceil({})", label(ledger, node.lhs, 0, false));
    case Node::Op::sqrt:
      return fmt::format("sqrt({})", label(ledger, node.lhs, 0, false));
    case Node::Op::alias:
      return label(ledger, node.lhs, 0, false);
    case Node::Op::max:
      return fmt::format("max({}, {})", label(ledger, node.lhs, 0, false), label(ledger, node.rhs, 0, false));
    case Node::Op::min:
      return fmt::format("min({}, {})", label(ledger, node.lhs, 0, false), label(ledger, node.rhs, 0, false));
    default:
      break;
  }
  const char* sign = node.op == Node::Op::mul   ? "*"
                     : node.op == Node::Op::div ? "/"
                     : node.op == Node::Op::add ? "+"
                                                : "-";
  return fmt::format("{} {} {}", label(ledger, node.lhs, level, false), sign, label(ledger, node.rhs, level, true));
}

std::string label(const Ledger& ledger, int id, int parent_precedence, bool right) {
  const Node& node = ledger.at(id);
  if (!node.name.empty()) return node.name;
  const std::string text = formula(ledger, node);
  const int level = precedence(node.op);
  const bool parentheses = level < parent_precedence || (right && level == parent_precedence);
  return parentheses ? "(" + text + ")" : text;
}

/// Given numbers are the same if they agree in name, value and source, wherever they were recorded.
using GivenKey = std::tuple<std::string, double, std::string>;

struct Seen {
  std::set<int> ids;
  std::set<GivenKey> given;

  bool insert(int id, const Node& node) {
    if (node.op == Node::Op::given) return given.insert({node.name, node.quantity.value, node.source}).second;
    return ids.insert(id).second;
  }
};

/// Writes the lines of a derivation.
class Walk {
 public:
  explicit Walk(const Ledger& ledger) : ledger_(ledger) {}

  /// Adds a value and what it is computed from. A value is an operand of `siblings` once, however often it occurs.
  void add(int id, int depth, std::set<int>& siblings) {
    const Node& node = ledger_.at(id);
    if (node.name.empty() && depth > 0) return add_operands(node, depth, siblings);
    if (!siblings.insert(id).second) return;
    const bool repeated = !seen_.insert(id, node);
    // A given number that was already shown needs no second line.
    if (repeated && node.op == Node::Op::given && depth > 0) return;
    DerivationLine text{
        depth,         id,          node.name, node.op == Node::Op::constant ? "" : formula(ledger_, node),
        node.quantity, node.source, {},        repeated};
    if (node.op == Node::Op::max) text.bound_by = ledger_.at(limiter(ledger_, id)).name;
    lines_.push_back(std::move(text));
    if (repeated) return;
    std::set<int> operands;
    add_operands(node, depth + 1, operands);
  }

  std::vector<DerivationLine> take() { return std::move(lines_); }

 private:
  void add_operands(const Node& node, int depth, std::set<int>& siblings) {
    if (node.op == Node::Op::add) {  // there may be many terms
      for (const int term : terms_of(ledger_, node)) add(term, depth, siblings);
      return;
    }
    if (node.lhs >= 0) add(node.lhs, depth, siblings);
    if (node.rhs >= 0) add(node.rhs, depth, siblings);
  }

  const Ledger& ledger_;
  Seen seen_;
  std::vector<DerivationLine> lines_;
};

}  // namespace

std::string_view SourceTable::of(std::string_view key) const {
  while (true) {
    for (const auto& [known, source] : sources_)
      if (known == key) return source;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string_view::npos) return {};
    key = key.substr(0, dot);
  }
}

int Ledger::origin(std::string_view name, AnyQuantity quantity) const {
  for (std::size_t i = origins_.size(); i-- > 0;)
    if (const Node& known = at(origins_[i]); known.name == name && known.quantity == quantity) return origins_[i];
  return -1;
}

int Traced::derived_or_given(std::string_view name, AnyQuantity quantity, std::string_view source) const {
  if (const int known = ledger->origin(name, quantity); known >= 0) return known;
  return ledger->push({Node::Op::given, quantity, -1, -1, std::string(name), std::string(source)});
}

int limiter(const Ledger& ledger, int id) {
  while (ledger.at(id).op == Node::Op::max || ledger.at(id).op == Node::Op::alias) {
    const Node& node = ledger.at(id);
    if (node.op == Node::Op::alias)
      id = node.lhs;
    else
      id = ledger.at(node.lhs).quantity.value < ledger.at(node.rhs).quantity.value ? node.rhs : node.lhs;
  }
  return id;
}

std::vector<DerivationLine> derivation(const Ledger& ledger, std::span<const int> roots) {
  Walk walk(ledger);
  for (const int root : roots) {
    std::set<int> siblings;
    walk.add(root, 0, siblings);
  }
  return walk.take();
}

}  // namespace assay
