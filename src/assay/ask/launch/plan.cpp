#include "assay/ask/launch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::launch {

std::string filled(std::string text, const Settings& plan) {
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    const auto found = plan.find(std::string_view(text).substr(open + 1, close - open - 1));
    if (found == plan.end()) continue;
    std::string value = found->second;
    std::replace_if(
        value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    text.replace(open, close - open + 1, value);
    open += value.size() == 0 ? 0 : value.size() - 1;
  }
  return text;
}

namespace {

std::optional<double> number_of(const Settings& plan, std::string_view field) {
  const auto found = plan.find(field);
  return found == plan.end() ? std::nullopt : parse_number(found->second);
}

/// Whether a list is another one with some items left out.
bool is_within(std::string_view list, std::string_view whole) {
  const std::vector<std::string> items = split(list, ','), all = split(whole, ',');
  std::size_t at = 0;
  for (const std::string& item : items) {
    if (item.empty()) continue;
    while (at < all.size() && all[at] != item) ++at;
    if (at++ == all.size()) return false;
  }
  return true;
}

/// The value of a product; nothing where a field is not known.
std::optional<double> value_of(const Product& product, const Settings& plan) {
  double value = 1.0;
  for (const Factor& factor : product) {
    const auto number = factor.field.empty() ? std::optional(factor.number) : number_of(plan, factor.field);
    if (!number || *number == 0.0) return std::nullopt;
    value = factor.power > 0 ? value * *number : value / *number;
  }
  return value;
}

constexpr std::string_view within_word = "within ", equal_word = "= ", not_word = "not ";

bool holds(std::string_view condition, std::string_view value, const Settings& plan) {
  if (condition.starts_with(equal_word)) {
    const auto product = parse_product(condition.substr(equal_word.size()));
    const auto wanted = product ? value_of(*product, plan) : std::nullopt;
    return wanted && parse_number(value) == wanted;
  }
  if (condition.starts_with('>')) {
    const auto limit = parse_number(condition.substr(1)), number = parse_number(value);
    return limit && number && *number > *limit;
  }
  if (condition.starts_with(not_word)) return condition.substr(not_word.size()) != value;
  if (condition.starts_with(within_word)) return is_within(value, condition.substr(within_word.size()));
  return condition == value;
}

/// Whether all of these conditions are known to hold.
bool hold(const Pairs& when, const Settings& plan) {
  return std::all_of(when.begin(), when.end(), [&](const auto& condition) {
    const auto found = plan.find(condition.first);
    return found != plan.end() && holds(condition.second, found->second, plan);
  });
}

/// The same, but what is not known does not contradict it.
bool may_hold(const Pairs& when, const Settings& plan) {
  return std::all_of(when.begin(), when.end(), [&](const auto& condition) {
    const auto found = plan.find(condition.first);
    return found == plan.end() || holds(condition.second, found->second, plan);
  });
}

/// Fields that make a case hold, with their values; none where a value is not a single one.
Pairs changes_for(const Case& one, const Settings& plan) {
  Pairs out;
  for (const auto& condition : one.when) {
    if (hold({condition}, plan)) continue;
    const auto& [field, value] = condition;
    if (value.starts_with('>') || value.starts_with(equal_word)) return {};
    out.emplace_back(field, value.starts_with(within_word) ? value.substr(within_word.size()) : value);
  }
  return out;
}

/// A field as people give it: an option, or a fact that no option changes.
std::string field_text(std::string_view field) {
  constexpr std::string_view facts[] = {"adapters", "layers", "model", "network", "nodes"};
  const bool fact = std::find(std::begin(facts), std::end(facts), field) != std::end(facts);
  return fmt::format("{}{}", fact ? "" : "--", field);
}

std::string condition_text(const std::pair<std::string, std::string>& condition) {
  const auto& value = condition.second;
  const std::string field = field_text(condition.first);
  if (value.starts_with(within_word)) return fmt::format("{} {}", field, value.substr(within_word.size()));
  if (value.starts_with('>')) return fmt::format("{} above {}", field, value.substr(1));
  return fmt::format("{} {}", field, value);
}

/// What an option says of a plan; nothing where the plan leaves it open.
std::optional<std::string> value_of(const Option& option, const Settings& plan) {
  if (!option.pattern.empty()) return filled(option.pattern, plan);
  if (!option.field.empty()) {
    const auto found = plan.find(option.field);
    return found == plan.end() ? std::nullopt : std::optional(found->second);
  }
  const auto number = value_of(option.product, plan);
  return number ? std::optional(exact_number(*number)) : std::nullopt;
}

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

std::vector<std::string> names_of(const Choice& choice) {
  std::vector<std::string> names;
  for (const Case& one : choice.cases)
    for (const auto& [name, value] : one.options)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
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
    // A slip of the pen, not a longer name of something else, nor another key of the same table.
    const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
    const bool slip =
        !near.empty() &&
        std::max(near.front().size(), one.name.size()) <= std::min(near.front().size(), one.name.size()) + 2 &&
        !nearest(last(one.name), std::vector{last(near.front())}).empty();
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

/// What sets the model apart and the program cannot run.
std::optional<Refusal> refusal_of_model(const Target& target, const Settings& plan) {
  const auto traits = plan.find("traits");
  if (!target.runs || traits == plan.end()) return std::nullopt;
  std::vector<std::string> missing;
  for (const std::string& trait : split(traits->second, ','))
    if (!trait.empty() && std::find(target.runs->begin(), target.runs->end(), trait) == target.runs->end())
      missing.push_back(trait);
  if (missing.empty()) return std::nullopt;
  const auto words = [](std::string list) {
    std::replace(list.begin(), list.end(), '-', ' ');
    return list;
  };
  const auto model = plan.find("model");
  return Refusal{fmt::format("{} {} has no option for what {} has: {}", target.name, target.version,
                             model == plan.end() ? "the model" : model->second, words(join(missing, ", "))),
                 fmt::format("beyond plain layers it can run {}; leave --emit out for the prediction alone",
                             words(join(*target.runs, ", "))),
                 {}};
}

}  // namespace

std::optional<Refusal> refusal_of(const Target& target, const Settings& plan) {
  if (auto refused = refusal_of_model(target, plan)) return refused;
  for (const Choice& choice : target.choices) {
    std::vector<const Case*> cases;
    for (const Case& one : choice.cases) cases.push_back(&one);
    const auto differs = [&](const Case* one) {
      return std::count_if(one->when.begin(), one->when.end(),
                           [&](const auto& condition) { return !hold({condition}, plan); });
    };
    std::stable_sort(cases.begin(), cases.end(), [&](const Case* a, const Case* b) { return differs(a) < differs(b); });
    if (differs(cases.front()) == 0) continue;
    std::vector<std::string> asked, change;
    for (const auto& condition : cases.front()->when) {
      const auto found = plan.find(condition.first);
      if (found != plan.end()) asked.push_back(fmt::format("{} {}", field_text(condition.first), found->second));
      if (!hold({condition}, plan)) change.push_back(condition_text(condition));
    }
    Refusal out{fmt::format("{} {} cannot run {}", target.name, target.version, join(asked, " ")),
                fmt::format("the nearest that it can run: {}", join(change, " ")),
                {},
                choice.about};
    for (const Case* one : cases)
      if (auto changes = changes_for(*one, plan); !changes.empty()) out.changes.push_back(std::move(changes));
    return out;
  }
  for (const Demand& demand : target.demands) {
    const auto value = hold(demand.when, plan) ? value_of(demand.product, plan) : std::nullopt;
    if (!value || *value == std::round(*value)) continue;
    return Refusal{
        fmt::format("{} {} cannot run this plan", target.name, target.version), filled(demand.text, plan), {}};
  }
  return std::nullopt;
}

bool runs_model(const Target& target, const Settings& plan) {
  return !refusal_of_model(target, plan) &&
         std::all_of(target.choices.begin(), target.choices.end(), [&](const Choice& choice) {
           return (choice.about != "model" && choice.about != "network") ||
                  std::any_of(choice.cases.begin(), choice.cases.end(),
                              [&](const Case& one) { return hold(one.when, plan); });
         });
}

Result<std::vector<Line>> lines_of(const Target& target, const Settings& plan) {
  if (const auto refused = refusal_of(target, plan)) return fail("--emit " + target.id, refused->what, refused->hint);
  std::vector<Line> lines;
  for (const Option& option : target.options) {
    if (option.read_only || !hold(option.when, plan)) continue;
    if (!option.unless.empty() && hold(option.unless, plan)) continue;
    const auto value = value_of(option, plan);
    if (value && (option.first || *value != option.standard))
      lines.push_back({.name = option.name,
                       .value = *value,
                       .reason = filled(option.reason, plan),
                       .is_text = !option.field.empty() || !option.pattern.empty(),
                       .launcher = option.launcher,
                       .first = option.first});
  }
  for (const Choice& choice : target.choices) {
    const auto found =
        std::find_if(choice.cases.begin(), choice.cases.end(), [&](const Case& one) { return hold(one.when, plan); });
    for (const std::string& name : names_of(choice)) {
      const auto said =
          std::find_if(found->options.begin(), found->options.end(), [&](const auto& o) { return o.first == name; });
      const std::string standard(choice.standard(name).value_or("false"));
      const std::string& value = said == found->options.end() ? standard : said->second;
      const bool again = std::any_of(lines.begin(), lines.end(), [&](const Line& line) { return line.name == name; });
      if (again || value == "*" || (value == standard && !target.explicit_)) continue;
      const auto about = plan.find(choice.about);
      const std::string what = about == plan.end() ? choice.about : fmt::format("{} {}", choice.about, about->second);
      lines.push_back(
          {.name = name, .value = value, .reason = found->reason.empty() ? what : filled(found->reason, plan)});
    }
  }
  for (const Constant& constant : target.constants)
    if (hold(constant.when, plan))
      lines.push_back({.name = constant.name,
                       .value = constant.value,
                       .reason = constant.reason,
                       .environment = constant.environment});
  for (Line& line : lines)
    line.is_list = std::find(target.lists.begin(), target.lists.end(), line.name) != target.lists.end();
  return lines;
}

Result<void> check_accepted(const Target& target, const Settings& plan, std::span<const Line> lines) {
  const std::string where = "--emit " + target.id;
  for (const Line& line : lines)
    if (!line.first && !line.environment && !target.knows(line.name))
      return fail(where, fmt::format("{} {} has no option {}", target.name, target.version, line.name),
                  suggestion(line.name, target.known));
  for (const Required& one : target.required) {
    if (!hold(one.when, plan)) continue;
    const auto said = std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.name == one.name; });
    if (said == lines.end() || (!one.value.empty() && said->value != one.value))
      return fail(where, fmt::format("{} {} needs {} {}", target.name, target.version, one.name, one.value),
                  "leave --emit out for the prediction alone");
  }
  return {};
}

std::optional<std::string> layer_places(const Settings& plan) {
  const auto split = plan.find("split");
  const auto layers = number_of(plan, "layers");
  if (split == plan.end() || !layers) return std::nullopt;
  const double ends = split->second == "ends"                                   ? 2.0
                      : split->second == "embedding" || split->second == "loss" ? 1.0
                                                                                : 0.0;
  return exact_number(*layers + ends);
}

std::string rendezvous_of(const Target& target, const Settings& plan) {
  const auto nodes = plan.find(plan.find("server_nodes") == plan.end() ? "nodes" : "server_nodes");
  if (nodes == plan.end() || nodes->second == "1") return "";
  const auto found = std::find_if(target.rendezvous.begin(), target.rendezvous.end(),
                                  [&](const Rendezvous& one) { return hold(one.when, plan); });
  return found == target.rendezvous.end() ? "" : filled(found->text, plan);
}

std::vector<std::string> open_options(const Target& target, const Settings& plan) {
  std::vector<std::string> out;
  for (const Option& option : target.options)
    if (option.asked && hold(option.when, plan) && !value_of(option, plan)) out.push_back(option.name);
  return out;
}

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
    if (!option.field.empty()) {
      if (value) out.plan.emplace(option.field, *value);
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
      continue;
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
