#include "assay/ask/verbs/emission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/ask/launch/command.h"
#include "assay/ask/launch/plan.h"
#include "assay/ask/launch/script.h"
#include "assay/ask/launch/shell.h"
#include "assay/ask/verbs/launched.h"
#include "assay/base/text.h"
#include "assay/base/version.h"

namespace assay::verbs {
namespace {

/// Lower case letters, digits and dashes, as names of jobs are.
std::string job_name(std::string_view model) {
  std::string out = "assay";
  for (const char c : model.substr(model.rfind('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += fmt::format("{}{}", out == "assay" ? "-" : "",
                         static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    else if (!out.ends_with('-'))
      out += '-';
  while (out.ends_with('-')) out.pop_back();
  return out.substr(0, 50);
}

/// Whether two values of a field mean the same; of an order only the axes that there are count.
bool same(std::string_view field, const std::string& a, const std::string& b) {
  if (field != "order") return a == b;
  const auto all = split(b, ',');
  std::size_t at = 0;
  for (const std::string& axis : split(a, ',')) {
    if (axis.empty()) continue;
    while (at < all.size() && all[at] != axis) ++at;
    if (at++ == all.size()) return false;
  }
  return true;
}

/// Reads the script as --from would.
Result<void> check_script(const launch::Target& target, const std::string& script, const Emission& emission,
                          const Request& request, const Context& context) {
  ASSAY_TRY(jobs, launch::jobs_of(context.catalogue));
  ASSAY_TRY(found, launch::find_options_in({{&target, 1}, *jobs, {}, {}}, script, "--emit"));
  launch::Settings known{{"chip", emission.cluster.chip.id}};
  if (const auto servers = emission.plan.find("servers"); servers != emission.plan.end()) known.insert(*servers);
  ASSAY_TRY(reading, launch::read_lines(target, found.given, known, relations_of(request.verb().name)));
  std::vector<std::string_view> promised(emission.promised.begin(), emission.promised.end());
  for (const OptionSpec& option : request.verb().options)
    if (request.has(option.name)) promised.push_back(option.name);
  for (const std::string_view field : promised) {
    if (std::find(target.elsewhere.begin(), target.elsewhere.end(), field) != target.elsewhere.end()) continue;
    const auto wanted = emission.plan.find(field);
    const auto got = reading.plan.find(field);
    if (wanted == emission.plan.end() || (got != reading.plan.end() && same(field, wanted->second, got->second)))
      continue;
    return fail("--emit " + target.id,
                fmt::format("{} {} has no option for --{} {}", target.name, target.version, field, wanted->second),
                got == reading.plan.end() ? "leave it out" : fmt::format("it runs --{} {}", field, got->second));
  }
  return {};
}

/// The options that run the plan; where the program does not have the model, the error names those that do.
Result<std::vector<launch::Line>> lines_or_others(const launch::Target& target, const Emission& emission,
                                                  const std::string& verb, const Context& context) {
  auto lines = launch::lines_of(target, emission.plan);
  if (lines || launch::runs_model(target, emission.plan)) return lines;
  ASSAY_TRY(targets, launch::targets_of(context.catalogue, verb));
  std::vector<std::string> others;
  for (const launch::Target& other : *targets)
    if (!other.reads_only && launch::runs_model(other, emission.plan))
      others.push_back(fmt::format("{} (--emit {})", other.name, other.id));
  Error error = lines.error();
  if (!others.empty()) error.hint = join(others, " or ") + " can run this model; or leave --emit out";
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

launch::Settings cluster_fields(const hardware::Cluster& cluster) {
  const std::int64_t node = std::min(hardware::chips_per_host(cluster), cluster.chips());
  return {{"chips", std::to_string(cluster.chips())},        {"chip", cluster.chip.id},
          {"slices", std::to_string(cluster.slices)},        {"network", cluster.torus ? "torus" : "switched"},
          {"nodes", std::to_string(cluster.chips() / node)}, {"node_chips", std::to_string(node)}};
}

Result<void> add_script(const Request& request, const Context& context, const Emission& emission,
                        report::Response& response) {
  const std::string verb(request.verb().name);
  ASSAY_TRY(target, launch::find_target(context.catalogue, verb, *request.value("emit"), "--emit"));
  ASSAY_TRY(lines, lines_or_others(target, emission, verb, context));
  ASSAY_CHECK(launch::check_accepted(target, emission.plan, lines));
  launch::ScriptParts parts;
  parts.name = job_name(emission.plan.at("model"));
  parts.maker = emission.cluster.chip.vendor;
  parts.header = {fmt::format("{} {} on {}, as predicted by assay {}:", target.name, target.version,
                              emission.cluster.text, version),
                  emission.headline};
  parts.header.insert(parts.header.end(), emission.notes.begin(), emission.notes.end());
  std::vector<std::string> elsewhere;
  for (const std::string& field : target.elsewhere)
    if (const auto found = emission.plan.find(field); found != emission.plan.end())
      elsewhere.push_back(fmt::format("{} {}", field, found->second));
  if (!elsewhere.empty()) parts.header.push_back(fmt::format("set in the program itself: {}", join(elsewhere, ", ")));
  if (const auto open = launch::open_options(target, emission.plan); !open.empty())
    parts.header.push_back(fmt::format("put in {}: not known of {}", join(open, ", "), emission.plan.at("model")));
  ASSAY_TRY(plain, launch::write_script(target, lines, emission.plan, parts));
  ASSAY_CHECK(check_script(target, plain, emission, request, context));
  std::string text = plain;
  if (const auto name = request.value("launcher")) {
    ASSAY_TRY(launcher, launch::find_launcher(context.catalogue, *name, "--launcher"));
    parts.launcher = &launcher;
    ASSAY_SET(text, launch::write_script(target, lines, emission.plan, parts));
  }
  report::Items options;
  for (const launch::Line& line : lines)
    options.emplace_back(report::Members{{"option", line.name}, {"value", line.value}, {"reason", line.reason}});
  report::Members sources;
  for (const launch::TargetSource& source : target.sources) sources.emplace_back(source.title, source.url);
  response.results.emplace_back("launch", report::Members{{"program", target.name},
                                                          {"version", target.version},
                                                          {"options", std::move(options)},
                                                          {"script", text},
                                                          {"sources", std::move(sources)}});
  response.lines = launch::lines_in(text);
  return {};
}

}  // namespace assay::verbs
