#include "assay/ask/launch/references.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "assay/ask/launch/document.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

using model::Json;
using Parents = std::vector<const Json*>;  ///< from the root to what holds a value

constexpr int deepest_reference = 8, most_references = 10'000;
constexpr std::size_t longest_resolved = 4096;

/// The end of the ${...} that starts here; nothing where it is not closed.
std::optional<std::size_t> end_of_reference(std::string_view text, std::size_t at) {
  for (int open = 0; at < text.size(); ++at) {
    open += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (text[at] == '}' && open == 0) return at + 1;
  }
  return std::nullopt;
}

/// What a resolver makes of its arguments.
std::optional<std::string> made_by(std::string_view name, const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  if (name == "oc.env") return arguments[1];
  const auto a = parse_number(arguments[0]), b = parse_number(arguments[1]);
  if (!a || !b) return std::nullopt;
  if (name == "multiply") return exact_number(*a * *b);
  if (name == "divide_ceil" && *b != 0.0) return exact_number(std::ceil(*a / *b));
  if (name == "divide_floor" && *b != 0.0) return exact_number(std::floor(*a / *b));
  return std::nullopt;
}

class References {
 public:
  /// Values of a tree as it is written, put into a copy of it.
  void put_in(const Json& written, Json& copy, Parents& parents) {
    if (written.kind == Json::Kind::text && written.text.size() < longest_resolved)
      copy.text = resolved(written.text, parents, 0);
    if (written.kind == Json::Kind::object) parents.push_back(&written);
    for (std::size_t i = 0; i < written.members.size(); ++i)
      put_in(written.members[i].second, copy.members[i].second, parents);
    for (std::size_t i = 0; i < written.items.size(); ++i) put_in(written.items[i], copy.items[i], parents);
    if (written.kind == Json::Kind::object) parents.pop_back();
  }

 private:
  std::optional<std::string> value_at(Parents parents, std::string_view path, int depth) {
    if (path.starts_with('.')) {  // each further dot is one level up
      path.remove_prefix(1);
      for (; path.starts_with('.') && parents.size() > 1; path.remove_prefix(1)) parents.pop_back();
    } else {
      parents.resize(1);
    }
    const Json* node = parents.back();
    for (const std::string& key : split(path, '.')) {
      if (node != parents.back()) parents.push_back(node);
      node = node->find(key);
      if (!node) return std::nullopt;
    }
    if (!node->members.empty() || !node->items.empty()) return std::nullopt;
    return resolved(scalar_of(*node), parents, depth + 1);
  }

  /// What stands between the braces of a reference.
  std::optional<std::string> value_of(std::string_view inside, const Parents& parents, int depth) {
    const std::size_t colon = inside.find(':');
    if (colon == std::string_view::npos) return value_at(parents, trim(inside), depth);
    std::vector<std::string> arguments = split(resolved(inside.substr(colon + 1), parents, depth + 1), ',');
    for (std::string& one : arguments) one = std::string(trim(one));
    return made_by(trim(inside.substr(0, colon)), arguments);
  }

  std::string resolved(std::string_view text, const Parents& parents, int depth) {
    std::string out;
    for (std::size_t at = 0; at < text.size() && out.size() < longest_resolved;) {
      const auto end = text.substr(at).starts_with("${") ? end_of_reference(text, at) : std::nullopt;
      const bool reads = end && !parents.empty() && depth < deepest_reference && left_-- > 0;
      const auto value = reads ? value_of(text.substr(at + 2, *end - at - 3), parents, depth) : std::nullopt;
      out += value ? *value : std::string(1, text[at]);
      at = value ? *end : at + 1;
    }
    return out;
  }

  int left_ = most_references;
};

}  // namespace

void resolve_references(Json& tree) {
  const Json written = tree;
  Parents parents;
  References().put_in(written, tree, parents);
}

}  // namespace assay::launch
