#include "assay/base/explain.h"

#include <fmt/format.h>

#include <set>
#include <tuple>

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

std::string formula(const Ledger& ledger, const Node& node) {
  const int level = precedence(node.op);
  switch (node.op) {
    case Node::Op::given:
      return "";
    case Node::Op::constant:
      return human_number(node.quantity.value);
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

void walk(const Ledger& ledger, int id, int depth, Seen& seen, std::vector<DerivationLine>& lines) {
  const Node& node = ledger.at(id);
  const bool line = !node.name.empty() || depth == 0;
  if (line) {
    const bool repeated = !seen.insert(id, node);
    // A given number that was already shown needs no second line.
    if (repeated && node.op == Node::Op::given && depth > 0) return;
    DerivationLine text{depth, id, node.name, formula(ledger, node), node.quantity, node.source, {}, repeated};
    if (node.op == Node::Op::max) text.bound_by = ledger.at(limiter(ledger, id)).name;
    lines.push_back(std::move(text));
    if (repeated) return;
  }
  const int below = line ? depth + 1 : depth;
  if (node.lhs >= 0) walk(ledger, node.lhs, below, seen, lines);
  if (node.rhs >= 0) walk(ledger, node.rhs, below, seen, lines);
}

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
  std::vector<DerivationLine> lines;
  Seen seen;
  for (int root : roots) walk(ledger, root, 0, seen, lines);
  return lines;
}

}  // namespace assay
