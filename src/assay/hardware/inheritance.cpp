#include "assay/hardware/inheritance.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

constexpr std::string_view toml_ending = ".toml";
/// Bases of a file, one above the other. The catalogue has up to three; each costs a parse of all that are above it.
constexpr std::size_t most_bases = 32;

void stamp(Toml& node, const std::string& file) {
  if (node.file.empty()) node.file = file;
  for (auto& [key, member] : node.members) stamp(member, file);
  for (Toml& item : node.items) stamp(item, file);
}

/// A table of keys, not a number with its source: { value = "80 GiB", source = "datasheet" }.
bool is_section(const Toml& node) { return node.kind == Toml::Kind::table && !node.find("value"); }

void lay_over(Toml& base, Toml own) {
  base.line = own.line;
  base.column = own.column;
  base.file = own.file;
  for (auto& [key, member] : own.members) {
    Toml* there = base.find(key);
    if (!there)
      base.members.emplace_back(key, std::move(member));
    else if (is_section(*there) && is_section(member))
      lay_over(*there, std::move(member));
    else
      *there = std::move(member);
  }
}

Result<Toml> merged(Toml own, std::string_view file, std::string_view folder, const Catalogue& catalogue,
                    const std::vector<std::string>& left_out, std::vector<std::string> chain) {
  const Toml* named = own.find("base");
  if (!named) return own;
  const std::string where = fmt::format("{}:{}:{}: base", file, named->line, named->column);
  if (named->kind != Toml::Kind::text)
    return fail(where, fmt::format("expected text, got {}", describe(named->kind)), "base = \"ID\"");
  const std::string base = named->text;
  const bool again = std::find(chain.begin(), chain.end(), base) != chain.end();
  chain.push_back(base);
  if (again)
    return fail(where, fmt::format("the bases form a cycle: {}", join(chain, " -> ")),
                "a base must not be based on what it is a base of; give your file an id of its own");
  if (chain.size() > most_bases)
    return fail(where, fmt::format("more than {} bases stand one above the other", most_bases),
                "base the file on one that is nearer to the first");
  const std::string path = fmt::format("{}{}{}", folder, base, toml_ending);
  for (const auto& [name, text] : catalogue.files(path)) {
    if (name != path) continue;
    ASSAY_TRY(parsed, parse_toml(text, path));
    ASSAY_TRY(root, merged(std::move(parsed), path, folder, catalogue, left_out, std::move(chain)));
    stamp(root, path);
    std::erase_if(root.members, [&](const auto& member) {
      return std::find(left_out.begin(), left_out.end(), member.first) != left_out.end();
    });
    lay_over(root, std::move(own));
    return std::move(root);
  }
  std::vector<std::string> known;
  for (const auto& [name, text] : catalogue.files(folder)) known.push_back(file_stem(name));
  return fail(where, fmt::format("unknown base {}", in_quotes(base)), suggestion(base, known), Error::Kind::missing);
}

}  // namespace

std::string file_stem(std::string_view file) {
  if (const std::size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  if (file.ends_with(toml_ending)) file.remove_suffix(toml_ending.size());
  return std::string(file);
}

Result<Toml> with_bases(Toml own, std::string_view file, std::string_view folder, const Catalogue& catalogue,
                        const std::vector<std::string>& left_out) {
  const bool inherits = own.find("base") != nullptr;
  ASSAY_TRY(root, merged(std::move(own), file, folder, catalogue, left_out, {file_stem(file)}));
  if (inherits && !root.find("id")) root.members.emplace_back("id", Toml::make_text(file_stem(file)));
  return std::move(root);
}

}  // namespace assay::hardware
