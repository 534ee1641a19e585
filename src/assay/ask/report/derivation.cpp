#include "assay/ask/report/derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "assay/ask/report/patterns.h"
#include "assay/base/text.h"

namespace assay::report {
namespace {

constexpr int usual_levels = 3;
constexpr std::size_t short_lines = 100;  ///< of a derivation that is shown whole

/// A name as paths have it.
std::string path_word(std::string_view name) {
  std::string word(name);
  for (char& c : word)
    c = c == ' ' || c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

/// Adds the values with names that a value is computed from.
void add_named_operands(const Ledger& ledger, int id, std::set<int>& seen, std::vector<int>& out) {
  const Node& node = ledger.at(id);
  for (const int operand : {node.lhs, node.rhs}) {
    if (operand < 0 || !seen.insert(operand).second) continue;
    if (ledger.at(operand).name.empty())
      add_named_operands(ledger, operand, seen, out);
    else
      out.push_back(operand);
  }
}

/// The nearest value of that name at `level` or below; the names there go to `names`. Below 0: none.
int find_below(const Ledger& ledger, std::vector<int> level, const std::string& word, std::set<std::string>& names) {
  std::set<int> seen;
  while (!level.empty()) {
    int begins = -1;
    for (const int id : level) {
      const std::string name = path_word(ledger.at(id).name);
      names.insert(name);
      if (name == word) return id;
      if (begins < 0 && name.starts_with(word + "_")) begins = id;
    }
    if (begins >= 0) return begins;
    std::vector<int> below;
    for (const int id : level) add_named_operands(ledger, id, seen, below);
    level = std::move(below);
  }
  return -1;
}

}  // namespace

Result<void> choose_derivation(std::string_view path, Response& response) {
  response.derived_levels = path.empty() ? usual_levels : 0;
  if (path.empty() || path == "all") return {};
  std::vector<int> level = response.derived;
  int found = -1;
  for (const std::string& part : split(path, '.')) {
    std::set<std::string> names;
    const std::string word = path_word(trim(part));
    found = find_below(response.ledger, level, word, names);
    if (found < 0) {
      const std::string hint = suggestion(word, std::vector<std::string>(names.begin(), names.end()));
      return fail("--explain", fmt::format("the derivation has no {} in {}", in_quotes(part), in_quotes(path)),
                  hint.empty() ? "--explain shows the first names, --explain=all every one" : hint, Error::Kind::usage);
    }
    level.clear();
    std::set<int> seen;
    add_named_operands(response.ledger, found, seen, level);
  }
  response.derived = {found};
  return {};
}

ShownDerivation shown_derivation(const Response& response) {
  ShownDerivation shown;
  std::vector<DerivationLine> all = derivation(response.ledger, response.derived);
  const bool whole = response.derived_levels == 0 || all.size() <= short_lines;
  std::set<int> above;
  for (DerivationLine& line : all) {
    if (!whole && line.depth >= response.derived_levels) {
      ++shown.left_out;
      continue;
    }
    // What was first derived in a line that is left out is not above.
    line.repeated = line.repeated && above.contains(line.id);
    above.insert(line.id);
    shown.lines.push_back(std::move(line));
  }
  return shown;
}

namespace {

/// The derivative of a root by every value of the record that comes before it.
std::vector<double> derivatives_of(const Ledger& ledger, int root) {
  std::vector<double> by(static_cast<std::size_t>(root) + 1, 0.0);
  by.back() = 1.0;
  for (int id = root; id >= 0; --id) {
    const double own = by[static_cast<std::size_t>(id)];
    const Node& node = ledger.at(id);
    if (own == 0.0 || node.lhs < 0) continue;
    const double left = ledger.at(node.lhs).quantity.value;
    const double right = node.rhs < 0 ? 0.0 : ledger.at(node.rhs).quantity.value;
    const auto add = [&](int to, double more) { by[static_cast<std::size_t>(to)] += more; };
    switch (node.op) {
      case Node::Op::given:
      case Node::Op::constant:
      case Node::Op::ceil:  // flat but for its steps
        break;
      case Node::Op::alias:
        add(node.lhs, own);
        break;
      case Node::Op::mul:
        add(node.lhs, own * right);
        add(node.rhs, own * left);
        break;
      case Node::Op::div:
        add(node.lhs, own / right);
        add(node.rhs, -own * left / (right * right));
        break;
      case Node::Op::add:
        add(node.lhs, own);
        add(node.rhs, own);
        break;
      case Node::Op::sub:
        add(node.lhs, own);
        add(node.rhs, -own);
        break;
      case Node::Op::max:
        add(left < right ? node.rhs : node.lhs, own);
        break;
      case Node::Op::min:
        add(right < left ? node.rhs : node.lhs, own);
        break;
      case Node::Op::sqrt:
        add(node.lhs, 0.5 * own / node.quantity.value);
        break;
    }
  }
  return by;
}

/// The name of a value, or of what it is first computed from.
std::string nearest_name(const Ledger& ledger, int id) {
  while (id >= 0 && ledger.at(id).name.empty()) id = ledger.at(id).lhs;
  return id < 0 ? "a constant" : ledger.at(id).name;
}

}  // namespace

Items moving_inputs(const Ledger& ledger, const std::vector<int>& roots,
                    const std::function<bool(const Node&)>& counts) {
  Items rows;
  for (const int root : roots) {
    struct Input {
      int id = -1;
      double elasticity = 0.0;
    };
    // One figure under several names is one number; what has no place in a file is told by its name.
    std::map<std::tuple<std::string_view, std::string_view, double>, Input> inputs;
    const std::vector<double> by = derivatives_of(ledger, root);
    const double result = ledger.at(root).quantity.value;
    for (int id = 0; id <= root; ++id) {
      const Node& node = ledger.at(id);
      if (node.op != Node::Op::given || by[static_cast<std::size_t>(id)] == 0.0 || !counts(node)) continue;
      const bool is_placed = contains(node.source, ".toml:");
      Input& input = inputs[{is_placed ? "" : node.name, node.source, is_placed ? node.quantity.value : 0.0}];
      if (input.id < 0) input.id = id;
      input.elasticity += by[static_cast<std::size_t>(id)] * node.quantity.value / result;
    }
    std::vector<Input> sorted;
    for (const auto& [name, input] : inputs) sorted.push_back(input);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Input& a, const Input& b) { return std::abs(a.elasticity) > std::abs(b.elasticity); });
    for (const Input& input : sorted) {
      const Node& node = ledger.at(input.id);
      rows.emplace_back(Members{{"result", nearest_name(ledger, root)},
                                {"input", node.name},
                                {"value", Value(node.quantity)},
                                {"elasticity", input.elasticity},
                                {"source", node.source}});
    }
  }
  return rows;
}

Items near_kinks(const Ledger& ledger, const std::vector<int>& roots, double near, std::size_t most) {
  Items rows;
  for (const int root : roots) {
    const std::vector<double> by = derivatives_of(ledger, root);
    std::vector<std::pair<double, Members>> found;
    for (int id = 0; id <= root; ++id) {
      const Node& node = ledger.at(id);
      if ((node.op != Node::Op::max && node.op != Node::Op::min) || by[static_cast<std::size_t>(id)] == 0.0) continue;
      const double left = ledger.at(node.lhs).quantity.value, right = ledger.at(node.rhs).quantity.value;
      const double apart = std::abs(left - right) / std::max(std::abs(left), std::abs(right));
      if (!(apart <= near)) continue;
      const bool right_wins = node.op == Node::Op::max ? left < right : right < left;
      found.emplace_back(apart, Members{{"result", nearest_name(ledger, root)},
                                        {"wins", nearest_name(ledger, right_wins ? node.rhs : node.lhs)},
                                        {"next", nearest_name(ledger, right_wins ? node.lhs : node.rhs)},
                                        {"apart", apart}});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < std::min(found.size(), most); ++i) rows.emplace_back(std::move(found[i].second));
  }
  return rows;
}

void add_derivatives(Response& response) {
  constexpr std::size_t most_kinks = 12;
  constexpr double near = 0.1;
  if (response.derived.empty()) {
    response.notes.emplace_back("this answer has no derivation, and so no derivatives");
    return;
  }
  const auto all = [](const Node&) { return true; };
  const auto is_figure = [](const Node& node) {
    return contains(node.source, ".toml:") || node.source.starts_with("--");
  };
  response.results.emplace_back("derivatives",
                                Members{{"inputs", moving_inputs(response.ledger, response.derived, all)},
                                        {"figures", moving_inputs(response.ledger, response.derived, is_figure)},
                                        {"kinks", near_kinks(response.ledger, response.derived, near, most_kinks)}});
  if (response.screen)
    add_blocks(*response.screen, Reader(response.results),
               "Moved by: 8 rows of derivatives.figures: result = {result} | input = {input} | value = {value} | "
               "1 % of it = {elasticity:+.2f} %\n"
               "Near: 4 rows of derivatives.kinks: result = {result} | wins = {wins} | next = {next} | "
               "apart = {apart%}\n");
}

}  // namespace assay::report
