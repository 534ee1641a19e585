#include "assay/ask/report/derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

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

}  // namespace assay::report
