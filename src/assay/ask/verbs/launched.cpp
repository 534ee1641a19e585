#include "assay/ask/verbs/launched.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "assay/ask/launch/command.h"
#include "assay/ask/verbs/model_shape.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/cluster.h"
#include "assay/model/model_catalogue.h"
#include "assay/model/model_names.h"

namespace assay::verbs {
namespace {

constexpr launch::Relation train_relations[] = {{"chips", "dp * fsdp * tp * cp * pp"},
                                                {"chips", "nodes * node_chips"},
                                                {"sequences", "dp * fsdp * micro-batch * microbatches"}};
constexpr launch::Relation serve_relations[] = {{"chips", "dp * tp * pp"}, {"chips", "nodes * node_chips"}};

/// Fields that divide the chips.
constexpr std::string_view mesh_fields[] = {"dp", "fsdp", "tp", "pp", "cp"};

bool has_count(std::string_view cluster) { return cluster.find_first_of(":@*,") != std::string_view::npos; }

/// What --on says of the cluster, where that is one.
launch::Settings known_of(const Request& request, const Context& context) {
  const auto cluster = hardware::parse_cluster(*request.value("on"), context.catalogue, "--on");
  if (!cluster) return {{"servers", "1"}};
  launch::Settings out{{"chip", cluster->chip.id}, {"slices", std::to_string(cluster->slices)}, {"servers", "1"}};
  if (has_count(*request.value("on"))) out["chips"] = std::to_string(cluster->chips());
  return out;
}

/// Options of the program that starts processes say nothing where --on gives the cluster.
void drop_launcher(const launch::Target& target, std::vector<launch::Given>& given, std::vector<launch::Unused>& unused,
                   std::string_view why = "--on gives the cluster") {
  std::erase_if(given, [&](const launch::Given& one) {
    const bool starts = std::any_of(target.options.begin(), target.options.end(), [&](const launch::Option& option) {
      return option.launcher && (option.name == one.name || std::find(option.aliases.begin(), option.aliases.end(),
                                                                      one.name) != option.aliases.end());
    });
    if (starts) unused.push_back({one.name, one.value, std::string(why)});
    return starts;
  });
}

std::string field_of(const launch::Settings& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

/// What a request still lacks: in words, and what gives it.
struct Asked {
  std::vector<std::string> what, give;
};

/// Of models with the same parts, those that the program has with such sequences if it has any, and first the ones
/// whose words the name of the file has.
void sort_alike(std::vector<std::string>& alike, const launch::Target& target, double sequence, const std::string& file,
                const Context& context) {
  std::vector<std::string> its_own = alike;
  std::erase_if(its_own, [&](const std::string& id) {
    const auto known = model::catalogue_model(id, context.catalogue, "--from");
    if (!known || !launch::has_layers_of(target, model_shape(known->imported.model))) return true;
    const auto positions = static_cast<double>(known->imported.model.learned_positions);
    return positions > 0.0 && sequence > positions;
  });
  if (!its_own.empty()) alike = std::move(its_own);
  const auto shared_words = [name = lower_case(file)](const std::string& id) {
    std::size_t count = 0;
    for (const std::string& part : split(id, '-')) {
      const std::string word = part.substr(0, part.find_first_of("0123456789"));
      count += word.size() > 2 && name.find(word) != std::string::npos ? 1 : 0;
    }
    return count;
  };
  std::stable_sort(alike.begin(), alike.end(),
                   [&](const auto& a, const auto& b) { return shared_words(a) > shared_words(b); });
}

/// The model by the name or path that is given, by its parts, or by the name of the file.
Result<void> fill_model(Request& request, const Context& context, Launched& out, Asked& asked) {
  if (request.arguments().size() >= request.verb().arguments.size()) return {};
  const launch::Settings& plan = out.reading.plan;
  auto named = plan.find("model");
  if (named == plan.end()) named = plan.find("model_path");
  const bool has_name = named != plan.end() && named->second.find('$') == std::string::npos;
  const model::ModelNames names(context.catalogue);
  const std::string from = *request.value("from");
  const auto file = names.find_within(std::filesystem::path(from.substr(0, 4096)).stem().string());
  std::string id;
  std::error_code failed;
  if (has_name && (names.find(named->second) ||
                   (context.catalogue.reads_files() && std::filesystem::exists(named->second, failed)))) {
    id = named->second;
  } else if (const auto within = has_name ? names.find_within(named->second) : std::nullopt) {
    id = *within;
    out.notes.push_back(fmt::format("{} is read as {}", in_quotes(named->second), id));
  } else {
    ASSAY_TRY(alike, models_alike(context.catalogue, plan));
    sort_alike(alike, out.target, parse_number(field_of(plan, "seq")).value_or(0.0),
               std::filesystem::path(from.substr(0, 4096)).stem().string(), context);
    // Of several models with these layers, the one that the file is named for.
    const auto of_file = std::find(alike.begin(), alike.end(), file.value_or(""));
    if (of_file != alike.end()) std::rotate(alike.begin(), of_file, of_file + 1);
    if (alike.size() > 1)
      out.notes.push_back(fmt::format("its layers are those of {}; the first one is taken", join(alike, ", ")));
    if (!alike.empty()) id = alike.front();
  }
  const auto layers_of = [&](const std::string& model) {
    const auto known = model::catalogue_model(model, context.catalogue, "--from");
    return known ? std::to_string(known->imported.model.decoder.layers()) : "";
  };
  const std::string layers = field_of(plan, "layers");
  if (id.empty() && !has_name && file && (layers.empty() || layers == layers_of(*file))) {
    out.notes.push_back(fmt::format("it names no model; its file is named for {}", *file));
    id = *file;
  }
  if (!id.empty() && !layers.empty() && names.find(id) && layers != layers_of(*names.find(id))) {
    out.notes.push_back(fmt::format("it is {} with {} layers instead of {}", id, layers, layers_of(*names.find(id))));
    id = fmt::format(R"({{"base": "{}", "num_hidden_layers": {}}})", *names.find(id), layers);
  }
  if (!id.empty()) {
    out.filled.emplace_back("model", id);
    return request.fill_argument(id);
  }
  asked.what.push_back(has_name ? fmt::format("which model of the catalogue {} is", in_quotes(named->second))
                                : "which model it runs");
  asked.give.push_back(fmt::format("the model (assay {} MODEL --from ...)", request.verb().name));
  return {};
}

Result<void> fill_options(Request& request, const Request& given, Launched& out) {
  const launch::Settings& plan = out.reading.plan;
  const bool own_mesh =
      std::any_of(std::begin(mesh_fields), std::end(mesh_fields), [&](std::string_view f) { return given.has(f); });
  const auto& options = request.verb().options;
  for (const auto& [field, value] : plan) {
    const auto said = option_of(field, value, plan);
    if (!said || (own_mesh && (field == "dp" || field == "fsdp"))) continue;
    const auto& name = said->first;
    const auto spec =
        std::find_if(options.begin(), options.end(), [&, &n = name](const OptionSpec& o) { return o.name == n; });
    if (spec == options.end() || request.has(name)) continue;
    const bool flag = spec->value.empty();
    if (flag && said->second == "no") continue;
    ASSAY_CHECK(request.fill(name, flag ? "" : said->second, "--from"));
    out.filled.push_back(*said);
  }
  return {};
}

}  // namespace

std::optional<std::pair<std::string, std::string>> option_of(const std::string& field, const std::string& value,
                                                             const launch::Settings& plan) {
  if (field == "sequences") return std::pair<std::string, std::string>("batch", value + "seq");
  if (value == "published" || value == "default") return std::nullopt;
  if (value == "none" && field != "recompute" && field != "offload" && field != "optimizer") return std::nullopt;
  const auto stages = plan.find("pp"), experts = plan.find("ep");
  if (field == "ep-over" && experts != plan.end() && experts->second == "1") return std::nullopt;
  if (field == "interleave" && stages != plan.end() && stages->second == "1") return std::nullopt;
  if (field == "draft" && value == "model") {  // the request names it
    const auto path = plan.find("draft_path");
    return path == plan.end() ? std::nullopt : std::optional(std::pair(field, path->second));
  }
  return std::pair(field, value);
}

std::span<const launch::Relation> relations_of(std::string_view verb) {
  if (verb == "train") return train_relations;
  return serve_relations;
}

namespace {

/// Variables that a request gives.
Result<launch::Variables> variables_of(const Request& request) {
  launch::Variables out;
  for (const std::string& one : request.values("var")) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail("--var", fmt::format("{} is not NAME=VALUE", in_quotes(one)), "e.g. --var TP=8", Error::Kind::usage);
    out[one.substr(0, equals)] = one.substr(equals + 1);
  }
  return out;
}

/// How to give the variables that a value depends on and that nothing sets: $TP, ${TP}, $((2 * TP)), but not
/// $(command).
void add_variables(std::string_view value, const launch::Variables& set, std::vector<std::string>& out, int depth = 0) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  constexpr int deepest = 8;  // variables may name each other
  const std::size_t first = value.find('$');
  if (first == std::string_view::npos || depth == deepest) return;
  if (value.substr(first).starts_with("$(") && !value.substr(first).starts_with("$((")) return;
  for (std::size_t at = first, end = at; at < value.size(); at = std::max(end, at + 1)) {
    for (end = at; end < value.size() && in_name(value[end]);) ++end;
    const std::string name(value.substr(at, end - at)), option = fmt::format("--var {}=VALUE", name);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) continue;
    if (const auto found = set.find(name); found != set.end() && found->second.find(name) == std::string::npos)
      add_variables(found->second, set, out, depth + 1);
    else if (std::find(out.begin(), out.end(), option) == out.end())
      out.push_back(option);
  }
}

/// The cluster that what starts the program names; empty where it names none.
std::string cluster_of(const launch::Settings& job, const hardware::Catalogue& catalogue) {
  const std::string device = field_of(job, "device"), topology = field_of(job, "topology"),
                    slices = field_of(job, "slices");
  const std::size_t dash = device.rfind('-');
  std::vector<std::string> names{topology.empty() ? device : fmt::format("{}:{}", device, topology)};
  if (topology.empty() && dash != std::string::npos)
    names.push_back(fmt::format("{}:{}", device.substr(0, dash), device.substr(dash + 1)));
  for (std::string& name : names) {
    if (slices != "1" && !slices.empty()) name = fmt::format("{}*{}", slices, name);
    if (!device.empty() && hardware::parse_cluster(name, catalogue, "--from")) return name;
  }
  return "";
}

/// How many chips what starts the program asks for.
std::string chips_of(const launch::Settings& job) {
  const std::string chips = field_of(job, "chips");
  const auto nodes = parse_number(field_of(job, "nodes")), each = parse_number(field_of(job, "node_chips"));
  if (chips.empty() && nodes && each) return exact_number(*nodes * *each);
  return parse_number(chips) ? chips : "";
}

/// A service of several replicas: engines whose options are read, each on chips of its own.
void add_replicas(launch::Settings& plan, const std::string& chips, std::vector<std::string>& notes) {
  const auto all = parse_number(chips), one = parse_number(field_of(plan, "chips"));
  if (!all || !one || *all <= *one || std::fmod(*all, *one) != 0.0) return;
  for (const char* field : {"chips", "dp", "batch"})
    if (const auto number = parse_number(field_of(plan, field))) plan[field] = exact_number(*number * (*all / *one));
  notes.push_back(fmt::format("{} replicas of {} chips each", exact_number(*all / *one), exact_number(*one)));
}

}  // namespace

Result<std::optional<Launched>> fill_from(Request& request, const Context& context) {
  if (!is_launched(request)) return std::optional<Launched>();
  const auto from = request.value("from");
  const std::string verb(request.verb().name);
  ASSAY_TRY(targets, launch::targets_of(context.catalogue, verb));
  ASSAY_TRY(jobs, launch::jobs_of(context.catalogue));
  ASSAY_TRY(variables, variables_of(request));
  ASSAY_TRY(found, launch::find_options({*targets, *jobs, std::move(variables), {}, context.catalogue.reads_files()},
                                        *from, "--from"));
  Launched out{std::move(found.target), {}, {}, std::move(found.notes)};
  if (out.target.explicit_) out.notes.emplace_back("what its recipe sets beyond these options is not known");
  if (!request.has("on"))
    if (const std::string cluster = cluster_of(found.job, context.catalogue); !cluster.empty()) {
      ASSAY_CHECK(request.fill("on", cluster, "--from"));
      out.filled.emplace_back("on", cluster);
    }
  const Request given = request;
  const auto on = request.value("on");
  const bool counted = on && has_count(*on);
  std::vector<launch::Unused> dropped;
  launch::Settings known = on ? known_of(request, context) : launch::Settings{{"slices", "1"}, {"chip", ""}};
  if (counted) drop_launcher(out.target, found.given, dropped);
  const auto relations = relations_of(verb);
  // A service may have several replicas of what the options say, each on chips of its own.
  std::string chips = counted ? field_of(known, "chips") : chips_of(found.job);
  if (verb == "serve") known.erase("chips");
  auto read = launch::read_lines(out.target, found.given, known, relations);
  if (!read && !counted) {
    // The chips of one of its parts, or of an example, are too few for the plan: their number is asked for.
    drop_launcher(out.target, found.given, dropped, "its number of chips is not that of the plan");
    if (auto again = launch::read_lines(out.target, found.given, known, relations)) read = std::move(again);
  }
  ASSAY_TRY(reading, std::move(read));
  if (!chips.empty() && reading.plan.find("chips") == reading.plan.end()) {
    known["chips"] = chips;
    ASSAY_SET(reading, launch::read_lines(out.target, found.given, known, relations));
  } else if (!chips.empty() && verb == "serve") {
    add_replicas(reading.plan, chips, out.notes);
    if (counted && field_of(reading.plan, "chips") != chips)
      return fail("--from", fmt::format("its plan is for {} chips", field_of(reading.plan, "chips")),
                  fmt::format("{} has {}; give a multiple", *on, chips));
  }
  out.reading = std::move(reading);
  out.reading.unused.insert(out.reading.unused.end(), dropped.begin(), dropped.end());
  if (!out.target.software.empty() && !request.has("software"))
    out.reading.plan.emplace("software", out.target.software);

  Asked asked;
  chips = field_of(out.reading.plan, "chips");
  if (!on) {
    asked.what.emplace_back("on which chips it runs");
    asked.give.push_back(fmt::format("--on, e.g. --on h100-sxm:{}", chips.empty() ? "8" : chips));
  } else if (!counted && chips.empty()) {
    asked.what.emplace_back("on how many chips it runs");
    asked.give.push_back(fmt::format("their number, e.g. --on {}:8", *on));
  } else if (!counted) {
    const std::string cluster = fmt::format("{}:{}", *on, chips);
    request.replace("on", cluster);
    out.filled.emplace_back("on", cluster);
  }
  ASSAY_CHECK(fill_model(request, context, out, asked));
  const auto& plan = out.reading.plan;
  std::vector<std::string> values, names;
  for (const launch::Unused& one : out.reading.unused) {
    const bool matters = std::any_of(out.reading.open.begin(), out.reading.open.end(), [&](const std::string& field) {
      const bool names_batch = field == "sequences" && request.has("batch");
      return plan.find(field) == plan.end() && !request.has(field) && !names_batch;
    });
    if (!matters || !one.is_open || one.value.find('$') == std::string::npos) continue;
    values.push_back(fmt::format("{} = {}", one.name, one.value));
    add_variables(one.value, found.variables, names);
  }
  for (const std::string& file : found.asked) values.push_back(fmt::format("the file {}", file));
  if (!values.empty()) {
    asked.what.push_back(fmt::format("the value of {}", join(values, ", ")));
    asked.give.push_back(
        fmt::format("{}{}", names.empty() ? "--var NAME=VALUE for each" : join(names, " "),
                    found.unset.empty() ? "" : fmt::format("; it also asks for {}", join(found.unset, ", "))));
  }
  if (verb == "train" && values.empty() && !request.has("batch") && plan.find("sequences") == plan.end() &&
      !(asked.what.size() > 0 && chips.empty())) {
    asked.what.emplace_back("how many sequences a step has");
    asked.give.emplace_back("--batch, e.g. --batch 256seq");
  }
  if (!asked.what.empty())
    return fail("--from", fmt::format("it does not say {}", join(asked.what, ", nor ")),
                fmt::format("add {}", join(asked.give, ", and ")), Error::Kind::usage);
  ASSAY_CHECK(fill_options(request, given, out));
  return std::optional(std::move(out));
}

void add_from(const Launched& launched, report::Response& response) {
  report::Items used, unused;
  for (const launch::Given& one : launched.reading.used)
    used.emplace_back(report::Members{{"option", one.name}, {"value", one.value}});
  for (const launch::Unused& one : launched.reading.unused)
    unused.emplace_back(report::Members{{"option", one.name}, {"value", one.value}, {"why", one.why}});
  report::Members request;
  for (const auto& [name, value] : launched.filled) request.emplace_back(name, value);
  std::vector<std::string> names;
  for (const launch::Unused& one : launched.reading.unused) names.push_back(one.name);
  if (!names.empty())
    response.notes.insert(response.notes.begin(), fmt::format("--from: not used: {}", join(names, ", ")));
  response.notes.insert(response.notes.begin(), launched.notes.begin(), launched.notes.end());
  response.important.insert(response.important.begin(), launched.notes.begin(), launched.notes.end());
  for (const launch::Unused& one : launched.reading.unused)
    if (one.is_open) response.important.push_back(fmt::format("--from: {} {}: {}", one.name, one.value, one.why));
  response.results.emplace_back("from", report::Members{{"program", launched.target.name},
                                                        {"version", launched.target.version},
                                                        {"request", std::move(request)},
                                                        {"used", std::move(used)},
                                                        {"not_used", std::move(unused)}});
}

}  // namespace assay::verbs
