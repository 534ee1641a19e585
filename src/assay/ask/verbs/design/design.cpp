// assay design: what a chip takes in area, power and money, from its parts; or the best chips of a space.
#include "assay/ask/verbs/design/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"

namespace assay::verbs::design_verb {
namespace {

using design::ChipFigures, design::Die, design::DieArea, design::Ranged;

report::Members range_members(const Ranged& range, Dim dim) {
  const auto any = [&](double value) { return AnyQuantity(value, dim); };
  return report::range(any(range.low), any(range.typical), any(range.high));
}

/// Ranges of what is asked for on top: the die areas, the power and the cost.
std::vector<Ranged> ranges(const DesignQuery& query) {
  return design::ranges_of(query.designed(), [](const ChipFigures<Plain>& figures) {
    std::vector<double> out{figures.area.value(), figures.power.all.value(), figures.cost.all.value()};
    for (const DieArea<Plain>& die : figures.dies) out.push_back(die.all.value());
    return out;
  });
}

report::Items die_rows(const DesignQuery& query, const ChipFigures<Plain>& figures, const std::vector<Ranged>& ranges) {
  report::Items rows;
  for (std::size_t i = 0; i < query.chip.dies.size(); ++i) {
    const Die& die = query.chip.dies[i];
    const DieArea<Plain>& area = figures.dies[i];
    const design::Yield yield = design::yield_of(query.designed(), die, area);
    const design::Technology& t = *query.technology;
    report::Members row{
        {"count", die.count},
        {"node", die.node->name},
        {"area", range_members(ranges[i + 3], Area::dim)},
        {"logic", area.logic},
        {"memory", area.memory},
        {"stacks", area.stacks},
        {"links", area.links},
        {"other", area.other},
        {"unlisted", area.all - area.listed},
        {"dies_per_wafer", design::dies_per_wafer(area.all, t.diameter.typical, t.edge.typical, t.scribe.typical)},
        {"yield", yield.with_spares},
        {"yield_without_spares", yield.without_spares}};
    if (die.published) {
      row.emplace_back("published", die.published->value);
      row.emplace_back("error", area.all / die.published->value - 1.0);
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

/// Predicted beside published, each by a calibration without the chip.
Result<report::Response> known_chips(const Context& context) {
  ASSAY_TRY(known, design::known_designs(context.catalogue));
  ASSAY_TRY(technology, design::technology_of(context.catalogue));
  report::Response response;
  report::Items areas, powers;
  std::vector<double> area_errors, power_errors;
  for (const design::ChipDesign& chip : *known) {
    const design::Calibration calibration = design::calibrate(*known, *technology, chip.id);
    const ChipFigures<Plain> figures = design::chip_figures(Plain{}, {chip, *technology, calibration});
    for (std::size_t i = 0; i < chip.dies.size(); ++i)
      if (const auto& published = chip.dies[i].published) {
        area_errors.push_back(figures.dies[i].all / published->value - 1.0);
        areas.emplace_back(report::Members{{"chip", chip.id},
                                           {"node", chip.dies[i].node->name},
                                           {"published", published->value},
                                           {"predicted", figures.dies[i].all},
                                           {"error", area_errors.back()},
                                           {"source", published->source}});
      }
    if (!chip.published) continue;
    power_errors.push_back(figures.power.all / chip.published->value - 1.0);
    powers.emplace_back(report::Members{{"chip", chip.id},
                                        {"published", chip.published->value},
                                        {"predicted", figures.power.all},
                                        {"error", power_errors.back()},
                                        {"source", chip.published->source}});
  }
  const auto within = [](const std::vector<double>& errors) {
    return std::count_if(errors.begin(), errors.end(), [](double e) { return std::abs(e) <= 0.15; });
  };
  const auto median = [](std::vector<double> errors) {
    for (double& error : errors) error = std::abs(error);
    std::sort(errors.begin(), errors.end());
    const std::size_t n = errors.size();
    return n == 0 ? 0.0 : 0.5 * (errors[n / 2] + errors[(n - 1) / 2]);
  };
  response.results = {{"areas", std::move(areas)},
                      {"powers", std::move(powers)},
                      {"median_area_error", median(area_errors)},
                      {"median_power_error", median(power_errors)},
                      {"areas_within_15_percent", within(area_errors)},
                      {"powers_within_15_percent", within(power_errors)}};
  response.table_key = "areas";
  response.headline =
      fmt::format("{} dies: areas {:.1f} % off (median), {} of {} within 15 %; power {:.1f} %, {} of {}",
                  area_errors.size(), 100.0 * median(area_errors), within(area_errors), area_errors.size(),
                  100.0 * median(power_errors), within(power_errors), power_errors.size());
  response.notes.emplace_back("each chip is predicted by what all others say about parts that nobody lists");
  return response;
}

/// What an hour of the chip costs who owns it.
Result<void> add_owning(const Request& request, const DesignQuery& query, const ChipFigures<Plain>& figures,
                        Watts power, const std::string& file, const Context& context, report::Response& response) {
  ASSAY_TRY(owning, owning_of(request, context));
  ASSAY_TRY(root, parse_toml(file, query.chip.chip_id()));
  ASSAY_TRY(chip, hardware::load_chip(std::move(root), query.chip.chip_id(), true, context.catalogue));
  std::int64_t chips = 0;
  ASSAY_SET(chips, count_or(request, "chips", design::usual_chips));
  const design::Installed at = installed(query, figures, power, chip, owning, static_cast<double>(chips));
  report::Members members = owning_members(owning, design::owning(Plain{}, owning, at));
  members.emplace_back("chips", chips);
  response.results.emplace_back("owning", std::move(members));
  if (request.explain()) response.derived.push_back(design::owning(Traced{&response.ledger}, owning, at).all.id);
  return {};
}

/// Options of the search of shapes need its model.
Result<void> check_options(const Request& request) {
  if (request.has("model-shape")) return {};
  for (const char* option :
       {"on", "batch", "seq", "parameters", "flops", "time", "latency", "tokens", "fields", "range", "law"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "it counts for the search of a model's shape",
                  "--model-shape MODEL names it", Error::Kind::usage);
  return {};
}

/// Replaces the parts that --set names. What is published is of the design as it was.
Result<void> replace_parts(const Request& request, Toml& root) {
  const auto drop = [](Toml* table, std::string_view key) {
    if (table) std::erase_if(table->members, [&](const auto& member) { return member.first == key; });
  };
  for (const std::string& text : request.values("set")) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string path(trim(std::string_view(text).substr(0, equals)));
    if (equals == text.size() || path.empty() || path.starts_with('.') || path.ends_with('.'))
      return fail("--set", fmt::format("{} is not KEY=VALUE", in_quotes(text)), "e.g. --set die.0.cores_on=120",
                  Error::Kind::usage);
    const std::size_t dot = path.rfind('.');
    Toml* table = dot == std::string::npos ? &root : toml_at(root, path.substr(0, dot));
    if (!table || table->kind != Toml::Kind::table)
      return fail("--set", fmt::format("the design has no {}", in_quotes(path)),
                  "e.g. die.0.cores, memory.kind, clock or power");
    const std::string key = path.substr(dot + 1), value(trim(std::string_view(text).substr(equals + 1)));
    drop(table, key);
    if (value.empty()) continue;
    Toml part = toml_scalar(value);
    part.file = "--set " + path;
    table->members.emplace_back(key, std::move(part));
  }
  if (!request.has("set")) return {};
  drop(&root, "published");
  if (Toml* dies = root.find("die"))
    for (Toml& die : dies->items) drop(&die, "published");
  return {};
}

/// What a design may be made of.
report::Members choices(const design::Technology& technology) {
  const auto names = [](const auto& all) {
    report::Items out;
    for (const auto& one : all) out.emplace_back(one.name);
    return out;
  };
  return {{"nodes", names(technology.nodes)},
          {"memories", names(technology.stacks)},
          {"links", names(technology.links)},
          {"packages", names(technology.packages)}};
}

Result<void> write_chip(const Request& request, const DesignQuery& query, const std::string& text,
                        report::Response& response) {
  const auto directory = request.value("out");
  if (!directory) return {};
  if (query.chip.base.empty())
    return fail("--out", "a chip file needs a base",
                "base = \"h100-sxm\" in the design: the chip whose network and hosts it has");
  response.files.emplace_back(fmt::format("{}/chips/{}.toml", *directory, query.chip.chip_id()), text);
  return {};
}

}  // namespace

Result<std::string> attached_text(const std::string& path, std::string_view where, const Context& context) {
  const auto attached = context.surroundings.attached.find(path);
  if (attached != context.surroundings.attached.end()) return std::string(attached->second);
  return hardware::read_file(path, where);
}

Result<std::string> design_text(const std::string& name, const Context& context) {
  std::vector<std::string> known;
  for (const auto& [path, text] : context.catalogue.files("designs/")) {
    known.push_back(path.substr(8, path.size() - 13));
    if (known.back() == name) return std::string(text);
  }
  if (name.find('.') == std::string::npos && name.find('/') == std::string::npos)
    return fail("FILE", fmt::format("unknown design {}", in_quotes(name)), suggestion(name, known));
  return attached_text(name, "FILE", context);
}

Result<void> read_chip(const Toml& root, const std::string& file, DesignQuery& query) {
  ASSAY_SET(query.chip, design::read_design(root, file, *query.technology));
  for (const Die& die : query.chip.dies)
    if (!query.calibration.layout(die.style)) {
      std::vector<std::string> styles;
      for (const auto& [style, spread] : query.calibration.layouts) styles.push_back(style);
      return fail(file + ": die.style", fmt::format("no known die has the style {}", in_quotes(die.style)),
                  "one of " + join(styles, ", "));
    }
  return {};
}

Result<DesignQuery> query_of(const Toml& root, const std::string& file, const Context& context) {
  DesignQuery query;
  ASSAY_SET(query.technology, design::technology_of(context.catalogue));
  ASSAY_TRY(known, design::known_designs(context.catalogue));
  const Toml* id = root.find("id");
  query.calibration = design::calibrate(*known, *query.technology, id ? id->text : "");
  ASSAY_CHECK(read_chip(root, file, query));
  if (query.chip.base.empty()) return query;
  ASSAY_TRY(base, context.catalogue.chip(query.chip.base, file + ": base"));
  if (base.power && base.power->system)
    query.beside = std::max(Watts(), base.power->system->value - base.power->chip.value);
  return query;
}

std::string impossible(const DesignQuery& query, const ChipFigures<Plain>& figures) {
  const Area reticle = query.technology->reticle.typical;
  const bool is_large = std::any_of(figures.dies.begin(), figures.dies.end(),
                                    [&](const DieArea<Plain>& die) { return die.all > reticle; });
  const std::vector<Ranged> around = is_large ? ranges(query) : std::vector<Ranged>();
  for (std::size_t i = 0; i < query.chip.dies.size(); ++i) {
    const Die& die = query.chip.dies[i];
    const Area area = figures.dies[i].all;
    if (area > reticle && Area(around[i + 3].low) > reticle)
      return fmt::format("a die of {} or more is larger than the reticle of {}: fewer cores, less cache, or {} dies",
                         human(Area(around[i + 3].low)), human(reticle), std::ceil(area / reticle) * die.count);
    // Two opposite edges hold the memory; links and other dies have the others.
    if (die.stacks > 0.0) {
      const double wanted = die.stacks * query.chip.memory->edge.typical.value, edge = 2.0 * std::sqrt(area.value());
      if (wanted > edge)
        return fmt::format("{} stacks want {:.0f} mm of edge, and two edges of the die have {:.0f} mm: {} stacks fit",
                           die.stacks, wanted, edge, std::floor(edge / query.chip.memory->edge.typical.value));
    }
  }
  return {};
}

Clocked clocked(const DesignQuery& query, const ChipFigures<Plain>& figures, std::optional<Watts> limit) {
  if (!limit) return {query.chip.clock, figures.power.all, {}};
  const auto clock = design::clock_within(query.designed(), figures.power, *limit);
  if (!clock)
    return {query.chip.clock, figures.power.all,
            fmt::format("memory, links and leakage alone draw {}, more than {}",
                        human(figures.power.all - figures.power.arithmetic), human(*limit))};
  return {*clock, std::min(figures.power.all, *limit), {}};
}

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_CHECK(check_options(request));
  if (request.has("workload")) return search(request, context);
  if (request.has("model-shape")) return model_shapes(request, context);
  if (request.arguments().empty()) return known_chips(context);
  const std::string& name = request.arguments().front();
  ASSAY_TRY(text, design_text(name, context));
  ASSAY_TRY(root, parse_toml(text, name));
  ASSAY_CHECK(replace_parts(request, root));
  ASSAY_TRY(query, query_of(root, name, context));
  const design::ChipDesign& chip = query.chip;
  const ChipFigures<Plain> figures = design::chip_figures(Plain{}, query.designed());
  const std::vector<Ranged> around = ranges(query);
  const Clocked at = clocked(query, figures, chip.limit);
  Area largest;
  for (const DieArea<Plain>& die : figures.dies) largest = std::max(largest, die.all);

  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("design", chip.id);
  out.emplace_back("peak", (at.clock / chip.clock) * chip.peak());
  out.emplace_back("clock", at.clock);
  if (chip.memory)
    out.emplace_back("memory", report::Members{{"kind", chip.memory->name},
                                               {"stacks", chip.stacks},
                                               {"capacity", chip.stacks * chip.stack_capacity},
                                               {"bandwidth", chip.memory_bandwidth()}});
  if (chip.link_bandwidth() > BytesPerSecond()) out.emplace_back("link_bandwidth", chip.link_bandwidth());
  out.emplace_back("area", report::Members{{"total", range_members(around[0], Area::dim)},
                                           {"largest_die", largest},
                                           {"of_reticle", largest / query.technology->reticle.typical.value},
                                           {"dies", die_rows(query, figures, around)}});
  report::Members power{{"total", range_members(around[1], Watts::dim)},
                        {"arithmetic", figures.power.arithmetic},
                        {"memory", figures.power.memory},
                        {"links", figures.power.links},
                        {"leakage", figures.power.leakage},
                        {"density", figures.power.all / figures.area}};
  if (chip.limit) power.emplace_back("limit", *chip.limit);
  if (chip.published) {
    power.emplace_back("published", chip.published->value);
    power.emplace_back("error", figures.power.all / chip.published->value - 1.0);
  }
  out.emplace_back("power", std::move(power));
  report::Members cost{{"total", range_members(around[2], Dollars::dim)},
                       {"dies", figures.cost.dies},
                       {"memory", figures.cost.memory},
                       {"package", figures.cost.package},
                       {"test", figures.cost.test}};
  if (chip.volume) cost.emplace_back("masks_and_design", figures.cost.once);
  out.emplace_back("cost", std::move(cost));
  const std::string file = design::chip_file(chip, design::rates_of(chip, at.clock), at.power);
  if (!chip.base.empty()) {
    out.emplace_back("chip", file);
    ASSAY_CHECK(add_owning(request, query, figures, at.power, file, context, response));
  }
  out.emplace_back("file", toml_text(root));
  out.emplace_back("technology", choices(*query.technology));
  ASSAY_CHECK(write_chip(request, query, file, response));
  response.notes.push_back(
      "ranges vary one figure of the technology after the other; the parts that nobody lists are those of known dies");
  if (request.explain()) {
    const Traced num{&response.ledger};
    const ChipFigures<Traced> traced = design::chip_figures(num, query.designed());
    for (const int id : {traced.cost.all.id, traced.power.all.id, traced.area.id})
      response.derived.insert(response.derived.begin(), id);
  }
  if (request.picture()) response.picture = picture_of(query, figures);
  const std::string reason = !at.impossible.empty() ? at.impossible : impossible(query, figures);
  if (!reason.empty()) {
    response.outcome = report::Outcome::infeasible;
    response.headline = "cannot be built: " + reason;
    return response;
  }
  if (largest > query.technology->reticle.typical)
    response.notes.push_back(
        fmt::format("a die of {} would be larger than the reticle of {}; the low end of its range fits", human(largest),
                    human(query.technology->reticle.typical.value)));
  response.headline =
      fmt::format("{}, {} at {}, {} in 16 bits, {}", human(figures.area), human(at.power), human(at.clock),
                  human((at.clock / chip.clock) * chip.peak()), human(figures.cost.all));
  return response;
}

}  // namespace assay::verbs::design_verb
