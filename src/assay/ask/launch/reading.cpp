#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/launch/conditions.h"
#include "assay/ask/launch/plan.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

/// Equations between fields: a product that is one.
class Solver {
 public:
  explicit Solver(Settings& plan) : plan_(plan) {}

  void add(std::string name, Product product, double value) {
    product.push_back({"", value, -1});
    equations_.push_back({std::move(name), std::move(product)});
  }

  Result<void> solve() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Equation& equation : equations_) {
        ASSAY_TRY(found, solve(equation));
        changed = changed || found;
      }
    }
    return {};
  }

 private:
  struct Equation {
    std::string name;
    Product product;
  };

  Result<bool> solve(const Equation& equation) {
    const Factor* unknown = nullptr;
    double rest = 1.0;
    for (const Factor& factor : equation.product) {
      const auto number = factor.field.empty() ? std::optional(factor.number) : number_of(plan_, factor.field);
      if (!number) {
        if (unknown) return false;
        unknown = &factor;
      } else {
        rest = factor.power > 0 ? rest * *number : rest / *number;
      }
    }
    if (!unknown) {
      if (std::abs(rest - 1.0) < 1e-9) return false;
      return fail("--from", fmt::format("{} contradicts the rest", equation.name), text_of(equation));
    }
    const double value = unknown->power > 0 ? 1.0 / rest : rest, whole = std::round(value);
    if (!(whole >= 1.0) || std::abs(value - whole) > 1e-6 * whole)
      return fail("--from",
                  fmt::format("{}: {} would be {}, which is not a whole number", equation.name, unknown->field,
                              human_number(value)),
                  text_of(equation));
    plan_[unknown->field] = exact_number(whole);
    return true;
  }

  std::string text_of(const Equation& equation) const {
    std::vector<std::string> parts;
    for (const Factor& factor : equation.product)
      if (!factor.field.empty()) {
        const auto number = number_of(plan_, factor.field);
        parts.push_back(fmt::format("{}{} {}",
                                    factor.power < 0 ? "/ "
                                    : parts.empty()  ? ""
                                                     : "* ",
                                    factor.field, number ? exact_number(*number) : "?"));
      }
    return join(parts, " ");
  }

  Settings& plan_;
  std::vector<Equation> equations_;
};

/// Given options by name. Dashes and underscores are one, as programs treat them.
class GivenOptions {
 public:
  GivenOptions(const Target& target, std::span<const Given> given) : given_(given), used_(given.size(), false) {
    for (const Option& option : target.options)
      for (const std::string& alias : option.aliases) names_[plain(alias)] = option.name;
  }

  static std::string plain(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), '_', '-');
    return out;
  }

  /// The last value counts.
  std::optional<std::string> value(std::string_view option) {
    std::optional<std::string> out;
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (name_of(given_[i].name) == plain(option)) {
        used_[i] = true;
        out = given_[i].value;
      }
    return out;
  }
  std::optional<std::string> peek(std::string_view option) const {
    std::optional<std::string> out;
    for (const Given& one : given_)
      if (name_of(one.name) == plain(option)) out = one.value;
    return out;
  }

  bool used(std::size_t i) const { return used_[i]; }

 private:
  std::string name_of(const std::string& given) const {
    const auto found = names_.find(plain(given));
    return plain(found == names_.end() ? given : found->second);
  }

  std::span<const Given> given_;
  std::vector<bool> used_;
  std::map<std::string, std::string, std::less<>> names_;
};

/// Whether the options of a choice are as in one of its cases.
bool matches(const Choice& choice, const Case& one, const std::vector<std::string>& names, const GivenOptions& given) {
  for (const std::string& name : names) {
    const auto said =
        std::find_if(one.options.begin(), one.options.end(), [&](const auto& o) { return o.first == name; });
    const std::string standard(choice.standard(name).value_or("false"));
    const std::string wanted = said == one.options.end() ? standard : said->second;
    if (wanted == "*" && given.peek(name).value_or(standard) == standard) return false;
    if (wanted != "*" && lower_case(given.peek(name).value_or(standard)) != lower_case(wanted)) return false;
  }
  return true;
}

/// Names that a prediction would use.
std::vector<std::string> used_names(const Target& target) {
  std::vector<std::string> names;
  for (const Option& option : target.options) {
    names.push_back(option.name);
    names.insert(names.end(), option.aliases.begin(), option.aliases.end());
  }
  for (const Choice& choice : target.choices)
    for (const std::string& name : names_of(choice)) names.push_back(name);
  return names;
}

bool knows_plain(const Target& target, const std::string& name) {
  return std::any_of(target.known.begin(), target.known.end(),
                     [&](const std::string& one) { return GivenOptions::plain(one) == GivenOptions::plain(name); });
}

/// Whether two names are one but for a letter or two that stand together: a slip of the pen.
bool is_slip(std::string_view a, std::string_view b) {
  constexpr std::size_t most = 2;
  const std::size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (back < shorter - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return longer - front - back <= most;
}

/// Options that nothing above asked for.
Result<void> name_unused(const Target& target, std::span<const Given> given, const GivenOptions& options,
                         Reading& out) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Given& one = given[i];
    if (options.used(i)) {
      out.used.push_back(one);
      continue;
    }
    if (knows_plain(target, one.name)) {
      out.unused.push_back({one.name, one.value, "does not change the prediction"});
      continue;
    }
    const std::vector<std::string> near = nearest(one.name, target.known), used = used_names(target);
    const bool slip = !near.empty() && is_slip(near.front(), one.name);
    if (!one.launcher && slip && std::find(used.begin(), used.end(), near.front()) != used.end())
      return fail("--from", fmt::format("{} has no option {}", target.name, one.name),
                  fmt::format("did you mean {}?", near.front()));
    if (one.launcher) {
      out.unused.push_back({one.name, one.value, "an option of what starts the program"});
      continue;
    }
    out.unused.push_back({one.name, one.value,
                          fmt::format("{} {} has no such option{}", target.name, target.version,
                                      near.empty() ? "" : fmt::format("; the nearest is {}", near.front()))});
  }
  return {};
}

/// The case of a choice that its options mean, and what that says of the plan.
void settle(const Choice& choice, GivenOptions& options, Reading& out, std::vector<Unused>& unclear) {
  const std::vector<std::string> names = names_of(choice);
  const auto found = std::find_if(choice.cases.begin(), choice.cases.end(), [&](const Case& one) {
    return matches(choice, one, names, options) && may_hold(one.when, out.plan);
  });
  for (const std::string& name : names) {
    const auto value = options.value(name);
    if (value && found == choice.cases.end())
      unclear.push_back(
          {name, *value, fmt::format("no such setting is modelled: --{} is searched", choice.about), true});
  }
  if (found == choice.cases.end()) {
    out.plan.erase(choice.about);
    return;
  }
  for (const auto& [field, value] : found->when) {
    if (value.starts_with('>')) continue;
    if (value.starts_with(equal_word)) {
      if (const auto number = value_of(*parse_product(value.substr(equal_word.size())), out.plan))
        out.plan.emplace(field, exact_number(*number));
      continue;
    }
    out.plan.emplace(field, value.starts_with(within_word) ? value.substr(within_word.size()) : value);
  }
  if (const auto places = layer_places(out.plan)) out.plan.emplace("layer_places", *places);
}

}  // namespace

Result<Reading> read_lines(const Target& target, std::span<const Given> given, Settings known,
                           std::span<const Relation> relations) {
  Reading out;
  out.plan = std::move(known);
  GivenOptions options(target, given);
  Solver solver(out.plan);
  std::vector<Unused> unclear;
  for (const Relation& relation : relations) {
    Product product = *parse_product(relation.product);
    product.push_back({std::string(relation.field), 1, -1});
    solver.add(std::string(relation.field), std::move(product), 1.0);
  }
  const bool launched = std::any_of(target.options.begin(), target.options.end(),
                                    [&](const Option& option) { return option.launcher && options.peek(option.name); });
  const auto add = [&](const Option& option) {
    const auto value = options.value(option.name);
    const bool overridden = std::any_of(target.options.begin(), target.options.end(), [&](const Option& other) {
      return other.instead_of == option.name && options.peek(other.name);
    });
    if (overridden) return;
    if (!option.field.empty()) {
      if (value) out.plan.emplace(option.field, *value + option.suffix);
      if (value && option.field == "layout") out.plan.emplace("split", "uneven");
      return;
    }
    const bool open = !value || *value == "null";
    if (open && !option.unless.empty() && hold(option.unless, out.plan)) return;
    // Another option says the same.
    const bool said = std::any_of(target.options.begin(), target.options.end(), [&](const Option& other) {
      return other.read_only && other.name != option.name && options.peek(other.name) && option.product.size() == 1 &&
             std::any_of(other.product.begin(), other.product.end(),
                         [&](const Factor& factor) { return factor.field == option.product.front().field; });
    });
    if (open && said && !option.read_only) return;
    // The cluster is known, or nothing starts the program here.
    if (open && option.launcher && (out.plan.find("chips") != out.plan.end() || !launched)) return;
    const auto number = parse_number(open ? option.standard : *value);
    if (!open && !number) {
      unclear.push_back({option.name, *value, "its value is not a number that this file gives", true});
      if (value->find('$') != std::string::npos)
        for (const Factor& factor : option.product)
          if (out.plan.find(factor.field) == out.plan.end()) out.open.push_back(factor.field);
    }
    if (number && *number > 0.0)  // -1 and 0 leave it to the program
      solver.add(option.name, option.product, *number);
  };
  // Options that depend on others count once these are known.
  std::vector<bool> added(target.options.size(), false);
  const auto solve = [&]() -> Result<void> {
    for (std::size_t i = 0; i < added.size(); ++i) {
      if (added[i] || target.options[i].write_only || !hold(target.options[i].when, out.plan)) continue;
      added[i] = true;
      add(target.options[i]);
    }
    return solver.solve();
  };
  ASSAY_CHECK(solve());
  if (const auto layout = out.plan.find("layout"); layout != out.plan.end()) {  // "Ettt|tttL": one part for each chunk
    const auto bars = std::count(layout->second.begin(), layout->second.end(), '|');
    solver.add("layout", *parse_product("pp * interleave"), static_cast<double>(bars + 1));
  }
  ASSAY_CHECK(solve());
  for (const Choice& choice : target.choices) {
    settle(choice, options, out, unclear);
    ASSAY_CHECK(solve());
  }
  ASSAY_CHECK(name_unused(target, given, options, out));
  for (Unused& one : unclear) {  // an option that is given twice is named twice
    const std::size_t named = out.unused.size();
    std::erase_if(out.used, [&](const Given& used) {
      if (GivenOptions::plain(used.name) != GivenOptions::plain(one.name)) return false;
      out.unused.push_back({used.name, used.value, one.why, one.is_open});
      return true;
    });
    if (out.unused.size() == named) out.unused.push_back(std::move(one));
  }
  return out;
}

}  // namespace assay::launch
