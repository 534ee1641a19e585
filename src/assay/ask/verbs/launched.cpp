#include "assay/ask/verbs/launched.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/launch/command.h"
#include "assay/ask/verbs/model_shape.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/cluster.h"
#include "assay/model/model_catalogue.h"

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
  if (!cluster) return {};
  launch::Settings out{{"slices", std::to_string(cluster->slices)}};
  if (has_count(*request.value("on"))) out["chips"] = std::to_string(cluster->chips());
  return out;
}

/// Options of the program that starts processes say nothing where --on gives the cluster.
void drop_launcher(const launch::Target& target, std::vector<launch::Given>& given,
                   std::vector<launch::Unused>& unused) {
  std::erase_if(given, [&](const launch::Given& one) {
    const bool starts = std::any_of(target.options.begin(), target.options.end(), [&](const launch::Option& option) {
      return option.launcher && (option.name == one.name || std::find(option.aliases.begin(), option.aliases.end(),
                                                                      one.name) != option.aliases.end());
    });
    if (starts) unused.push_back({one.name, one.value, "--on gives the cluster"});
    return starts;
  });
}

Result<void> fill_model(Request& request, const Context& context, Launched& out) {
  if (request.arguments().size() >= request.verb().arguments.size()) return {};
  auto named = out.reading.plan.find("model");
  if (named == out.reading.plan.end()) named = out.reading.plan.find("model_path");
  if (named != out.reading.plan.end() && !named->second.starts_with('$')) {
    out.filled.emplace_back("model", named->second);
    return request.fill_argument(named->second);
  }
  ASSAY_TRY(alike, models_alike(context.catalogue, out.reading.plan));
  if (alike.empty())
    return fail("--from", "it does not name a model, and no model of the catalogue has such layers",
                fmt::format("name one: assay {} MODEL --from ...", request.verb().name));
  if (alike.size() > 1)
    out.notes.push_back(fmt::format("its layers are those of {}; the first one is taken", join(alike, ", ")));
  out.filled.emplace_back("model", alike.front());
  return request.fill_argument(alike.front());
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
  return std::pair(field, value);
}

std::span<const launch::Relation> relations_of(std::string_view verb) {
  if (verb == "train") return train_relations;
  return serve_relations;
}

Result<std::optional<Launched>> fill_from(Request& request, const Context& context) {
  if (!is_launched(request)) return std::optional<Launched>();
  const auto from = request.value(from_option.name);
  const Request given = request;
  ASSAY_TRY(targets, launch::targets_of(context.catalogue, request.verb().name));
  ASSAY_TRY(found, launch::find_options(*targets, *from, "--from"));
  const auto on = request.value("on");
  if (!on)
    return fail("--from", "it does not say on which chips it runs", "add --on, e.g. --on h100-sxm", Error::Kind::usage);
  Launched out{std::move(found.target), {}, {}, std::move(found.notes)};
  std::vector<launch::Unused> dropped;
  launch::Settings known = known_of(request, context);
  if (has_count(*on)) drop_launcher(out.target, found.given, dropped);
  const auto relations = relations_of(request.verb().name);
  ASSAY_TRY(reading, launch::read_lines(out.target, found.given, known, relations));
  if (!has_count(*on) && reading.plan.find("chips") == reading.plan.end()) {
    // Nothing says how many: as everywhere, a chip alone is one chip.
    known["chips"] = "1";
    ASSAY_SET(reading, launch::read_lines(out.target, found.given, known, relations));
  } else if (!has_count(*on)) {
    const std::string cluster = fmt::format("{}:{}", *on, reading.plan.at("chips"));
    request.replace("on", cluster);
    out.filled.emplace_back("on", cluster);
  }
  out.reading = std::move(reading);
  out.reading.unused.insert(out.reading.unused.end(), dropped.begin(), dropped.end());
  if (!out.target.software.empty() && !request.has("software"))
    out.reading.plan.emplace("software", out.target.software);
  ASSAY_CHECK(fill_model(request, context, out));
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
  response.results.emplace_back("from", report::Members{{"program", launched.target.name},
                                                        {"version", launched.target.version},
                                                        {"request", std::move(request)},
                                                        {"used", std::move(used)},
                                                        {"not_used", std::move(unused)}});
}

}  // namespace assay::verbs
