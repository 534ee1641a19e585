#include "assay/ask/verbs/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/report/figures.h"
#include "assay/ask/report/patterns.h"
#include "assay/ask/report/reader.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/base/text.h"
#include "assay/lab/fit/measured.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::measure_verb {
namespace {

using compare::MeasuredCall;

/// What a row is about: op, dtype, sizes and note, as the table writes them.
std::optional<std::string> row_of(const MeasuredCall& call) {
  if (!call.format || call.dims.size() < 2) return std::nullopt;
  const auto &a = call.dims[0], &b = call.dims[1];
  if (call.kind == MeasuredCall::Kind::product) {
    if (b.size() != 2 || a.size() < 2) return std::nullopt;  // experts have tables of their own
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < a.size(); ++i) rows *= a[i];
    return fmt::format("gemm,{},{},{},{},,,|sustained", name(*call.format), rows, b[1], a.back());
  }
  if (call.attention.empty() || call.masked || a.size() != 4 || b.size() != 4) return std::nullopt;
  const bool decodes = a[2] == 1;
  if (!decodes && (!call.causal || a[2] != b[2])) return std::nullopt;
  if (decodes && call.kind != MeasuredCall::Kind::attention) return std::nullopt;
  return fmt::format("{},{},{},{},{},{},{},|{}",
                     decodes                                      ? "attn_decode"
                     : call.kind == MeasuredCall::Kind::attention ? "attn_fwd_causal"
                                                                  : "attn_bwd_causal",
                     name(*call.format), a[0], a[1], b[1], b[2], a[3], call.attention);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string table_of(const compare::MeasuredStep& step, const std::string& device, const std::string& date) {
  std::map<std::string, std::vector<double>> rows;
  for (const MeasuredCall& call : step.calls)
    if (const auto row = row_of(call)) rows[*row].push_back(trace::seconds(call.duration).in(1_us));
  std::string text = fmt::format("# fact date: {}\n# fact device: {}\nop,dtype,a,b,c,d,e,us_median,us_min,note\n", date,
                                 measure::plain_text(device));
  for (const auto& [row, times] : rows) {
    const std::size_t note = row.find('|');
    text += fmt::format("{}{:.3f},{:.3f},{}\n", row.substr(0, note), median_of(times),
                        *std::min_element(times.begin(), times.end()), row.substr(note + 1));
  }
  return text;
}

/// Rows of all tables, with the head of the first.
std::string joined(const std::vector<ProfiledRows>& profiles) {
  std::string out = profiles.front().table.text;
  for (std::size_t i = 1; i < profiles.size(); ++i)
    for (const std::string& line : split(profiles[i].table.text, '\n'))
      if (!line.empty() && line[0] != '#' && !line.starts_with("op,")) out += line + "\n";
  return out;
}

Result<std::string> chip_of(const Request& request, const std::vector<ProfiledRows>& profiles) {
  std::optional<std::string> id = request.value("chip");
  for (const ProfiledRows& one : profiles) {
    const std::string& file = one.table.file;
    if (!one.query.chip && !id)
      return fail("--chip", fmt::format("{} does not name a chip of the catalogue", file),
                  "name it, e.g. --chip h200-sxm", Error::Kind::usage);
    if (!one.query.chip) continue;
    if (id && *id != one.query.chip->id)
      return fail("--profile", fmt::format("{} is of {}, not of {}", file, one.query.chip->id, *id),
                  "a calibration is of one chip: give profiles of one");
    id = one.query.chip->id;
  }
  return *id;
}

report::Members errors(const std::vector<validate::ValidationCase>& before,
                       const std::vector<validate::ValidationCase>& after) {
  const auto of = [](const std::vector<validate::ValidationCase>& cases) {
    const validate::ValidationSummary all = validate::summarise("all", cases);
    Seconds predicted, measured;
    for (const validate::ValidationCase& one : cases) {
      predicted += Seconds(one.predicted.value);
      measured += Seconds(one.measured.value);
    }
    return report::Members{
        {"median_ape", all.median}, {"p90_ape", all.p90}, {"predicted_over_measured", predicted / measured}};
  };
  return {{"kernels", static_cast<std::int64_t>(after.size())}, {"before", of(before)}, {"after", of(after)}};
}

/// The step of a profile as its own request predicts it, before and after.
Result<report::Members> step_change(const ProfiledRows& rows, const Context& context, const Context& learned) {
  const compare::MeasuredStep measured = profile::measured_of(rows.query);
  ASSAY_TRY(recovered, profile::recover_request(rows.query, measured, context));
  ASSAY_TRY(request, profile::read_against(recovered.command, "--held-out"));
  ASSAY_TRY(before, profile::compare_with(rows.query, measured, request, context));
  ASSAY_TRY(after, profile::compare_with(rows.query, measured, request, learned));
  const auto class_error = [](const profile::Comparison& one) {
    Seconds off;  // of the classes that were learned, whatever their sign
    for (const compare::GapItem& item : one.waterfall.items)
      if (item.kind == compare::GapKind::kernels && (item.group == "products" || item.group == "attention"))
        off += item.difference() < Seconds(0) ? -item.difference() : item.difference();
    return off;
  };
  return report::Members{{"command", recovered.command},
                         {"measured", before.waterfall.measured},
                         {"predicted_before", before.waterfall.predicted},
                         {"predicted_after", after.waterfall.predicted},
                         {"products_and_attention_off_before", class_error(before)},
                         {"products_and_attention_off_after", class_error(after)}};
}

/// Whether a step is predicted worse although its products and attention are predicted better.
bool hid_each_other(const report::Members& step) {
  const report::Reader reader(step);
  const auto off = [&](const char* key) { return std::abs(reader.number(key) - reader.number("measured")); };
  return off("predicted_after") > off("predicted_before") &&
         reader.number("products_and_attention_off_after") < reader.number("products_and_attention_off_before");
}

report::Screen screen_of_profiles(const report::Response& response) {
  const report::Reader results(response.results);
  report::Screen screen;
  screen.headline = {{response.headline, report::Tone::strong}};
  report::ScreenTable table{"Kernels", {"", "median error", "90 % within", "predicted / measured"}, {}};
  for (const auto& [label, path] :
       {std::pair{"before", "learned.before"}, std::pair{"after", "learned.after"},
        std::pair{"held out, before", "held_out.before"}, std::pair{"held out, after", "held_out.after"}}) {
    if (!results.has(path)) continue;
    const auto number = [&, from = path](const char* key) { return results.number(fmt::format("{}.{}", from, key)); };
    table.rows.push_back({label, report::percent(number("median_ape")), report::percent(number("p90_ape")),
                          fmt::format("{:.2f}", number("predicted_over_measured"))});
  }
  add_table(screen, std::move(table));
  add_blocks(screen, results, R"(
Step: {held_out.step.measured} measured |
  {held_out.step.predicted_before} predicted before, {held_out.step.predicted_after} after |
  products and attention {held_out.step.products_and_attention_off_before} off before, {held_out.step.products_and_attention_off_after} after
Files: 10 rows of files:  = {file})");
  screen.notes = response.notes;
  return screen;
}

}  // namespace

Result<ProfiledRows> profiled_rows(const std::string& file, std::string_view where, const Context& context) {
  ASSAY_TRY(bytes, trace::file_bytes(file, where));
  const std::vector<std::string> words{"profile", file};
  ASSAY_TRY(request, parse_request(words));
  const std::size_t folder = file.rfind('/');
  const std::string name = folder == std::string::npos ? file : file.substr(folder + 1);
  profile::Sources sources;
  sources.profiles.push_back({name, std::move(bytes), std::nullopt});
  ASSAY_TRY(query, profile::read_query(request, context, std::move(sources)));
  const profile::Device& device = query.device();
  const compare::MeasuredStep step =
      compare::measured_step(query.traces[device.trace], *query.vocabulary, device.summary.device);
  MeasuredTable table{table_of(step, device.summary.name, context.surroundings.date), name, {}};
  if (table.text.ends_with("note\n"))
    return fail(name, "the profile has no product or attention with shapes",
                "record them: record_shapes=True of PyTorch's profiler");
  return ProfiledRows{std::move(query), std::move(table)};
}

Result<report::Response> answer_profiles(const Request& request, const Context& context, const std::string& directory) {
  std::vector<ProfiledRows> profiles;
  for (const std::string& file : request.values("profile")) {
    ASSAY_TRY(rows, profiled_rows(file, "--profile", context));
    profiles.push_back(std::move(rows));
  }
  ASSAY_TRY(id, chip_of(request, profiles));
  ASSAY_TRY(chip, context.catalogue.chip(id, "--chip"));
  ASSAY_TRY(start, hardware::calibration_of(chip, context.catalogue));
  if (!start)
    return fail("--profile", fmt::format("{} has no calibration to add to", id),
                "measure the chip first: docs/measure.md", Error::Kind::missing);
  ASSAY_TRY(ranges, validate::measured_ranges_of(context.catalogue));
  const std::string text = joined(profiles);
  ASSAY_TRY(table, validate::CsvTable::parse(text, profiles.front().table.file));
  const hardware::CalibrationSource source{
      "profile",
      fmt::format("kernels of {} profile{}", profiles.size(), profiles.size() == 1 ? "" : "s"),
      measure::plain_text(measure_command(request)),
      "",
      context.surroundings.date.empty() ? "1970-01-01" : context.surroundings.date,
      "",
      ""};
  const validate::LearnedFit learned = validate::learn_measured(table, chip, start->values, ranges, source);
  if (learned.after.empty())
    return fail("--profile", "no kernel of the profile can be predicted", "docs/measure.md lists what has a model");
  const std::string calibration = hardware::calibration_text(learned.calibration);
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("chip", id);
  out.emplace_back("name", chip.name);
  out.emplace_back("rows", static_cast<std::int64_t>(learned.after.size()));
  out.emplace_back("learned", errors(learned.before, learned.after));
  const auto median = [](const std::vector<validate::ValidationCase>& cases) {
    return 100.0 * validate::summarise("all", cases).median;
  };
  response.headline =
      fmt::format("{}: {} kernels of {}; their median error falls from {:.1f} % to {:.1f} %", id, learned.after.size(),
                  source.title.substr(source.title.find("of ") + 3), median(learned.before), median(learned.after));
  if (const auto file = request.value("held-out")) {
    ASSAY_TRY(other, profiled_rows(*file, "--held-out", context));
    ASSAY_TRY(other_table, validate::CsvTable::parse(other.table.text, other.table.file));
    const auto before = validate::check_learned(other_table, chip, start->values);
    const auto after = validate::check_learned(other_table, chip, learned.calibration);
    report::Members held = errors(before, after);
    hardware::Catalogue catalogue = context.catalogue;
    catalogue.put(fmt::format("calibration/{}.toml", id), calibration);
    const Context with{catalogue, context.surroundings, true};
    const Result<report::Members> step = step_change(other, context, with);
    if (step) held.emplace_back("step", *step);
    if (step && hid_each_other(*step))
      response.notes.emplace_back(
          "the whole step is predicted further off than before: errors of other kernels had hidden those of products "
          "and "
          "attention; `assay profile --against` shows them");
    out.emplace_back("held_out", std::move(held));
    response.headline +=
        fmt::format("; of {} from {:.1f} % to {:.1f} %", other.table.file, median(before), median(after));
  }
  report::Items files;
  for (const auto& [path, content] : {std::pair(fmt::format("calibration/{}.toml", id), calibration),
                                      std::pair(fmt::format("measured/{}-profile.csv", id), text)}) {
    files.emplace_back(report::Members{{"file", directory + "/" + path}});
    response.files.emplace_back(directory + "/" + path, content);
  }
  out.emplace_back("files", std::move(files));
  response.notes.push_back(written_note(request, directory, id));
  response.screen = screen_of_profiles(response);
  return response;
}

}  // namespace assay::verbs::measure_verb
