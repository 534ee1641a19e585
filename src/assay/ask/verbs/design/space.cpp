#include "assay/ask/verbs/design/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/base/parallel.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::verbs::design_verb {
namespace {

constexpr std::pair<std::string_view, Objective> objectives[] = {{"speed", Objective::speed},
                                                                 {"speed per dollar", Objective::speed_per_dollar},
                                                                 {"speed per watt", Objective::speed_per_watt}};

void read_asked(Asked& asked, RecordReader& in) {
  in.text("ask", asked.ask);
  if (in.has("measure")) in.text("measure", asked.measure);
  if (in.has("weight")) in.number("weight", asked.weight);
  in.flag("less_is_better", asked.is_less_better);
  if (!(asked.weight > 0.0))
    in.fault("weight", "a request counts for more than nothing", "leave it out, or out of the file");
  if (asked.ask.find("{chip}") == std::string::npos)
    in.fault("ask", "the request does not name the designed chip", "e.g. --on {chip}:64");
  if (asked.measure.empty())
    asked.measure = asked.ask.starts_with("serve") ? "served.output_tokens_per_second" : "tokens_per_second";
}

void read_axis(Axis& axis, RecordReader& in, const Toml& table) {
  std::size_t length = 0;
  for (const auto& [key, values] : table.members) {
    const Toml* list = in.find(key);
    if (list->kind != Toml::Kind::array || list->items.empty()) {
      in.fault(key, "what varies is a list of values", "e.g. \"die.0.cores\" = [96, 120, 144]");
      continue;
    }
    if (length != 0 && list->items.size() != length)
      in.fault(key, fmt::format("values that change together are equally many, {} and {}", length, list->items.size()));
    length = list->items.size();
    axis.emplace_back(key, list->items);
  }
}

std::string value_text(const Toml& value) {
  if (value.kind == Toml::Kind::number) return human_number(value.number);
  return value.kind == Toml::Kind::text ? value.text : toml_value(value);
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t from = 0; (from = text.find(what, from)) != std::string::npos; from += with.size())
    text.replace(from, what.size(), with);
}

constexpr std::string_view chip_prefix = "chip.";

}  // namespace

Result<Workload> read_workload(const std::string& text, const std::string& file) {
  Workload out;
  out.file = file;
  RecordFile record{
      .name = file, .keys_hint = "docs/design.md describes the keys", .sourced_tables = false, .own = true};
  ASSAY_TRY(root, parse_toml(text, file));
  RecordReader in(record, root);
  in.text("design", out.design);
  if (in.has("objective")) in.word("objective", objectives, out.objective);
  if (in.has("chips")) in.number("chips", out.chips);
  in.flag("exhaustive", out.exhaustive);
  in.items("request", out.requests, read_asked);
  if (out.requests.empty()) in.fault("request", "there is nothing to be good at", "add a table [[request]]");
  if (const Toml* axes = in.find("vary"))
    for (const Toml& table : axes->items) {
      RecordReader one(record, table, "vary");
      read_axis(out.axes.emplace_back(), one, table);
      one.finish();
    }
  std::erase_if(out.axes, [](const Axis& axis) { return axis.empty(); });
  if (out.axes.empty()) in.fault("vary", "nothing varies", "add a table [[vary]]");
  in.optional_table("limits", [&](RecordReader& one) {
    if (one.has("power")) one.number("power", out.power.emplace());
    if (one.has("cost")) one.number("cost", out.cost.emplace());
  });
  if (!(out.chips >= 1.0)) in.fault("chips", "a cluster has chips");
  in.finish();
  ASSAY_CHECK(joined(std::move(record.faults)));
  return out;
}

Result<Space> Space::make(Workload workload, const Request& request, const Context& context) {
  Space out(std::move(workload), context);
  const Workload& w = out.workload_;
  ASSAY_TRY(text, design_text(w.design, context));
  ASSAY_SET(out.root_, parse_toml(text, w.design));
  ASSAY_SET(out.base_, query_of(out.root_, w.design, context));
  ASSAY_SET(out.owning_, owning_of(request, context));
  out.counts_power_ = std::any_of(w.requests.begin(), w.requests.end(), [](const Asked& asked) {
    return asked.measure.find("power") != std::string::npos || asked.measure.find("energy") != std::string::npos;
  });
  if (out.base_.chip.base.empty())
    return fail(w.design + ": base", "requests ask about a chip with a network and hosts",
                "base = \"h100-sxm\": the chip whose other figures the design has");
  for (const Axis& axis : w.axes)
    for (const auto& [name, values] : axis) {
      if (name.find('.') == std::string::npos && out.kind_of(name) == Kind::part && !out.root_.find(name) &&
          name != "power" && name != "volume" && name != "cache_on")
        return fail(w.file + ": vary", fmt::format("no request has {{{}}}, and the design has no such key", name),
                    fmt::format("write {{{}}} in a request, or a part of the design such as \"die.0.cores\"", name));
    }
  return out;
}

Space::Kind Space::kind_of(const std::string& name) const {
  if (name.starts_with(chip_prefix)) return Kind::chip;
  const bool is_word = std::any_of(workload_.requests.begin(), workload_.requests.end(), [&](const Asked& asked) {
    return asked.ask.find("{" + name + "}") != std::string::npos;
  });
  return is_word ? Kind::word : Kind::part;
}

std::size_t Space::size() const {
  double all = 1.0;
  for (const Axis& axis : workload_.axes) all *= static_cast<double>(axis.front().second.size());
  return all > 1e9 ? std::size_t{1000000000} : static_cast<std::size_t>(all);
}

std::vector<std::size_t> Space::place(std::size_t number) const {
  std::vector<std::size_t> at;
  for (const Axis& axis : workload_.axes) {
    at.push_back(number % axis.front().second.size());
    number /= axis.front().second.size();
  }
  return at;
}

std::string Space::axis_text(std::size_t axis, std::size_t value) const {
  const auto& [path, list] = workload_.axes[axis].front();
  return path.substr(path.rfind('.') + 1) + " " + value_text(list[value]);
}

std::string Space::values(const std::vector<std::size_t>& at) const {
  std::string out;
  for (std::size_t i = 0; i < at.size(); ++i) out += (i == 0 ? "" : ", ") + axis_text(i, at[i]);
  return out;
}

const Toml& Space::value_of(const std::vector<std::size_t>& at, std::size_t axis, std::size_t part) const {
  return workload_.axes[axis][part].second[at[axis]];
}

Result<DesignQuery> Space::query_at(const std::vector<std::size_t>& at) const {
  Toml root = root_;
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t part = 0; part < workload_.axes[i].size(); ++part) {
      const std::string& name = workload_.axes[i][part].first;
      if (kind_of(name) != Kind::part) continue;
      Toml* place = toml_at(root, name);
      if (!place)
        return fail(workload_.file + ": vary", fmt::format("the design has no {}", in_quotes(name)),
                    "e.g. \"die.0.cores\" or \"clock\"");
      *place = value_of(at, i, part);
    }
  DesignQuery query = base_;
  ASSAY_CHECK(read_chip(root, workload_.design, query));
  return query;
}

Result<Space::Documents> Space::documents(const Candidate& candidate, const design::ChipRates& rates) const {
  Documents out;
  out.chip = design::chip_file(base_.chip, rates, candidate.power);
  Toml chip;
  bool is_changed = false;
  const std::vector<std::size_t>& at = candidate.at;
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t part = 0; part < workload_.axes[i].size(); ++part) {
      const std::string& name = workload_.axes[i][part].first;
      const Toml& value = value_of(at, i, part);
      const Kind kind = kind_of(name);
      if (kind == Kind::word) out.words.emplace_back("{" + name + "}", value_text(value));
      if (kind != Kind::chip) continue;
      if (!is_changed) {
        ASSAY_SET(chip, parse_toml(out.chip, workload_.design));
        is_changed = true;
      }
      Toml* place = toml_at(chip, name.substr(chip_prefix.size()));
      if (!place) return fail(workload_.file + ": vary", fmt::format("a chip file has no {}", in_quotes(name)));
      *place = value;
    }
  if (is_changed) out.chip = toml_text(chip);
  return out;
}

Result<std::string> Space::chip_file(const Candidate& candidate) const {
  ASSAY_TRY(made, documents(candidate, candidate.rates));
  return made.chip;
}

double Space::chips_at(const std::vector<std::size_t>& at) const {
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t part = 0; part < workload_.axes[i].size(); ++part)
      if (workload_.axes[i][part].first == "chips") {
        const Toml& value = value_of(at, i, part);
        return value.kind == Toml::Kind::integer ? static_cast<double>(value.integer) : value.number;
      }
  return workload_.chips;
}

Result<Candidate> Space::build(const std::vector<std::size_t>& at) const {
  Candidate out;
  out.at = at;
  ASSAY_TRY(query, query_at(at));
  const design::ChipFigures<Plain> figures = design::chip_figures(Plain{}, query.designed());
  const Clocked clock = clocked(query, figures, workload_.power ? workload_.power : query.chip.limit);
  out.why_not = !clock.impossible.empty() ? clock.impossible : impossible(query, figures);
  out.area = figures.area;
  Area largest;
  for (const auto& die : figures.dies) largest = std::max(largest, die.all);
  out.of_reticle = largest / query.technology->reticle.typical.value;
  out.power = clock.power;
  out.clock = clock.clock;
  out.is_slowed = clock.clock < query.chip.clock;
  out.cost = figures.cost.all;
  if (out.why_not.empty() && workload_.cost && out.cost > *workload_.cost)
    out.why_not = fmt::format("it costs {}", human(out.cost));
  out.rates = design::rates_of(query.chip, clock.clock);
  ASSAY_TRY(rest, documents(out, {}));
  out.rest = key_of(rest);
  if (!out.why_not.empty()) return out;
  ASSAY_TRY(made, documents(out, out.rates));
  ASSAY_TRY(file, parse_toml(made.chip, chip_id()));
  ASSAY_TRY(chip, hardware::load_chip(std::move(file), chip_id(), true, context_.catalogue));
  out.owning =
      design::owning(Plain{}, owning_, installed(query, figures, clock.power, chip, owning_, chips_at(at))).all;
  return out;
}

Result<Answered> Space::answers(const Documents& documents, hardware::Catalogue& catalogue) const {
  const OneOfMany one;
  catalogue.put("chips/" + base_.chip.chip_id() + ".toml", documents.chip);
  const Context context{catalogue, context_.surroundings, true};
  Answered out;
  double logs = 0.0, weights = 0.0;
  for (const Asked& asked : workload_.requests) {
    std::string line = asked.ask;
    replace_all(line, "{chip}", base_.chip.chip_id());
    for (const auto& [word, value] : documents.words) replace_all(line, word, value);
    const auto request = parse_request_text(line);
    auto response = request ? ask_within(*request, context) : tl::unexpected<Error>(request.error());
    if (!response) {
      Error error = std::move(response).error();
      return within(fmt::format("{}: {}", workload_.file, in_quotes(line)), std::move(error));
    }
    if (response->outcome != report::Outcome::ok) {
      out.why_not = response->headline;
      return out;
    }
    const report::Value results(response->results);
    const auto found = report::find_path(results, asked.measure);
    const auto number = found ? report::numeric(*found) : std::nullopt;
    if (!number || !(*number > 0.0))
      return fail(workload_.file + ": request",
                  fmt::format("{} is no number of the answer to {}", in_quotes(asked.measure), in_quotes(line)),
                  "measure names a key of the results, e.g. tokens_per_second or decode.step_time.estimate");
    Answered::One& each = out.each.emplace_back();
    each.value = *number;
    if (const auto chips = report::find_path(results, "chips")) each.chips = report::numeric(*chips).value_or(0.0);
    for (const char* path : {"limiter", "decode.limiter"})
      if (const auto limiter = report::find_path(results, path); limiter && each.limiter.empty())
        if (const auto* text = std::get_if<std::string>(&limiter->data())) each.limiter = *text;
    logs += asked.weight * (asked.is_less_better ? -std::log(*number) : std::log(*number));
    weights += asked.weight;
  }
  out.speed = std::exp(logs / weights);
  return out;
}

std::string Space::key_of(const Documents& made) const {
  std::string out = counts_power_ ? made.chip : made.chip.substr(0, made.chip.find("\n[power]"));
  for (const auto& [word, value] : made.words) out += word + "=" + value + "\n";
  return out;
}

Result<std::vector<const Answered*>> Space::ask(const std::vector<Question>& questions) {
  std::vector<std::string> keys, open;
  std::vector<Documents> asked;
  std::set<std::string> seen;
  for (const Question& question : questions) {
    ASSAY_TRY(made, documents(*question.like, question.rates));
    keys.push_back(key_of(made));
    if (known_.contains(keys.back()) || !seen.insert(keys.back()).second) continue;
    open.push_back(keys.back());
    asked.push_back(std::move(made));
  }
  std::vector<Result<Answered>> answered(open.size(), Answered());
  parallel_for(
      open.size(), 1, [&] { return hardware::Catalogue(context_.catalogue); },
      [&](std::size_t i, hardware::Catalogue& catalogue) { answered[i] = answers(asked[i], catalogue); });
  for (std::size_t i = 0; i < open.size(); ++i) {
    ASSAY_CHECK(answered[i]);
    known_.emplace(open[i], std::move(*answered[i]));
  }
  std::vector<const Answered*> out;
  for (const std::string& key : keys) out.push_back(&known_.at(key));
  return out;
}

}  // namespace assay::verbs::design_verb
