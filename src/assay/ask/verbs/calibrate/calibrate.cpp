// assay calibrate: the files of benchmarks beside what is predicted for them, and the numbers of the deployment that
// they determine.
#include "assay/ask/verbs/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/serve/serve.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/ask/verbs/validate/validate.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/assign.h"
#include "assay/base/parallel.h"
#include "assay/base/text.h"
#include "assay/lab/benchmark/deployment_fit.h"
#include "assay/predict/numbers/deployment.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::calibrate {
namespace {

using benchmark::BenchmarkFile, benchmark::DeploymentFit, benchmark::DeploymentNumber, benchmark::Misfits;

constexpr double other_unit = 100;  ///< measured over predicted, or under it: no deployment is so far off

Result<std::string> file_text(const std::string& path, const Context& context) {
  const auto attached = context.surroundings.attached.find(path);
  ASSAY_TRY(bytes, attached != context.surroundings.attached.end() ? Result<std::string>(attached->second)
                                                                   : trace::file_bytes(path, "FILE"));
  return trace::is_gzip(bytes) ? trace::inflated(bytes, path) : Result<std::string>(std::move(bytes));
}

Result<std::vector<BenchmarkFile>> read_files(const Request& request, const Context& context) {
  ASSAY_TRY(writers, benchmark::writers_of(context.catalogue));
  std::vector<BenchmarkFile> files;
  for (const std::string& path : request.arguments()) {
    ASSAY_TRY(text, file_text(path, context));
    ASSAY_TRY(file, benchmark::read_benchmark(text, path.substr(path.rfind('/') + 1), writers));
    files.push_back(std::move(file));
  }
  return files;
}

/// A number of the deployment as it is assumed for the first row.
struct Assumed {
  DeploymentNumber number;
  std::string_view meaning;
  AnyQuantity value{0.0, Dim{}};
};

/// Those of the fit that the request's predictions have at all.
Result<std::vector<Assumed>> assumed_numbers(const AskedRow& row, const Context& context) {
  const bool trains = row.request.verb().name == "train";
  ASSAY_TRY(known, benchmark::deployment_numbers(context.catalogue, trains ? "training" : "serving"));
  std::vector<Assumed> out;
  const auto add = [&](std::string_view key, const auto& given, std::string_view meaning) {
    for (const DeploymentNumber& one : known)
      if (one.key == key && given.value > decltype(given.value){}) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(given.value)>, double>)
          out.push_back({one, meaning, AnyQuantity(given.value, Dim{})});
        else
          out.push_back({one, meaning, given.value});
      }
  };
  if (trains) {
    ASSAY_TRY(cluster, cluster_of(row.request, context));
    ASSAY_TRY(query, train::read_train_query(row.request, context, cluster));
    numbers::visit_deployment(query.question.setup.effects, add);
  } else {
    ASSAY_TRY(query, serve::read_serve_query(row.request, context));
    numbers::visit_deployment(query.question.setup.effects, query.question.path, add);
  }
  return out;
}

/// "389.9 us", so that it reads back.
std::string value_text(AnyQuantity value, bool exact) {
  if (value.dim == Dim{}) return exact ? exact_number(value.value) : human_number(value.value);
  return fmt::format("\"{}\"", exact ? exact_number(value.value) + " " + base_unit(value.dim) : human(value));
}

/// What was fitted, as a table of steps/deployment.toml. `fit`: with uncertainties, and only what is determined.
std::string table_text(std::string_view verb, const std::vector<Assumed>& numbers, const std::vector<double>& factors,
                       const DeploymentFit* fit) {
  std::string out = fmt::format("\n[{}]\nsource = \"calibration\"\n", verb == "train" ? "training" : "serving");
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (fit && !fit->numbers[k].determined) continue;
    const AnyQuantity value(numbers[k].value.value * factors[k], numbers[k].value.dim);
    if (fit)
      out += fmt::format("# {}: four in five are within a factor of {:.3f}; {} was assumed\n", numbers[k].meaning,
                         fit->numbers[k].spread, human(numbers[k].value));
    out += fmt::format("{} = {}\n", numbers[k].number.key, value_text(value, !fit));
  }
  return out;
}

/// The figures of all rows as they are predicted with a catalogue.
class Predictions {
 public:
  Predictions(std::vector<AskedRow>& rows, const Context& context) : rows_(rows), context_(context) {}

  /// By row and figure, in base units; nothing where the answer has no such number.
  using Values = std::vector<std::vector<std::optional<double>>>;
  Result<Values> values(const hardware::Catalogue& catalogue) const {
    Values out(rows_.size());
    std::vector<Error> faults(rows_.size());
    std::vector<char> failed(rows_.size(), 0);
    parallel_for(rows_.size(), 1, [&](std::size_t i) {
      const Context with{catalogue, context_.surroundings, true};
      auto answer = ask_within(rows_[i].request, with);
      if (!answer) {
        faults[i] = within(rows_[i].place, std::move(answer).error()).value();
        failed[i] = 1;
        return;
      }
      const report::Value results(answer->results);
      for (const ComparedFigure& figure : rows_[i].figures) {
        const auto value = report::find_path(results, figure.path);
        out[i].push_back(value ? report::numeric(*value) : std::nullopt);
      }
    });
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (failed[i]) return tl::unexpected<Error>(std::move(faults[i]));
    return out;
  }

  /// Leaves out figures that no answer has, and refuses those that are in another unit.
  Result<void> keep_predicted() {
    ASSAY_TRY(predicted, values(context_.catalogue));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::vector<ComparedFigure> kept;
      for (std::size_t f = 0; f < rows_[i].figures.size(); ++f) {
        ComparedFigure& figure = rows_[i].figures[f];
        if (!predicted[i][f]) {
          rows_[i].left_out = figure.part + ": " + why_not(rows_[i]);
          continue;
        }
        const double ratio = figure.measured.value / *predicted[i][f];
        if (ratio > other_unit || ratio < 1.0 / other_unit)
          return fail(rows_[i].place,
                      fmt::format("{}: measured {}, predicted {}", figure.part, human(figure.measured),
                                  human(AnyQuantity(*predicted[i][f], figure.measured.dim))),
                      "no deployment is a hundred times as fast or slow: is it another unit (s, ms), or another model "
                      "or cluster?");
        kept.push_back(std::move(figure));
      }
      rows_[i].figures = std::move(kept);
    }
    return {};
  }

  Result<Misfits> misfits(const hardware::Catalogue& catalogue) const {
    ASSAY_TRY(predicted, values(catalogue));
    Misfits out(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i)
      for (std::size_t f = 0; f < rows_[i].figures.size(); ++f)
        // Where other numbers overload the server, the figure says nothing about them.
        out[i].push_back(predicted[i][f] ? std::log(rows_[i].figures[f].measured.value / *predicted[i][f]) : 0.0);
    return out;
  }

 private:
  static std::string why_not(const AskedRow& row) {
    return row.request.has("rate") ? "more requests come than such a server is predicted to serve"
                                   : "the request does not fit, or is not feasible";
  }

  std::vector<AskedRow>& rows_;
  const Context& context_;
};

/// The median of how far off figures are, of one part or of all.
std::optional<double> median_off(const std::vector<AskedRow>& rows, const Misfits& misfits, std::string_view part) {
  std::vector<double> off;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t f = 0; f < rows[i].figures.size(); ++f)
      if (part.empty() || rows[i].figures[f].part == part) off.push_back(std::abs(std::expm1(-misfits[i][f])));
  if (off.empty()) return std::nullopt;
  std::sort(off.begin(), off.end());
  const std::size_t half = off.size() / 2;
  return off.size() % 2 == 1 ? off[half] : (off[half - 1] + off[half]) / 2.0;
}

struct Calibration {
  std::vector<AskedRow> rows;
  std::vector<Assumed> numbers;
  DeploymentFit fit;

  std::size_t figures() const {
    std::size_t n = 0;
    for (const AskedRow& row : rows) n += row.figures.size();
    return n;
  }
  std::int64_t determined() const {
    return std::count_if(fit.numbers.begin(), fit.numbers.end(), [](const auto& one) { return one.determined; });
  }
  double before() const { return median_off(rows, fit.before, "").value_or(0.0); }
  double held_out() const { return median_off(rows, fit.of_held_out.value_or(fit.after), "").value_or(0.0); }
  /// Whether the numbers may be used: rows that they were not fitted to are nearer, or there is none to tell.
  bool helps() const { return determined() > 0 && (!fit.of_held_out || held_out() < before()); }
};

report::Items case_rows(const Calibration& of) {
  report::Items out;
  for (std::size_t i = 0; i < of.rows.size(); ++i)
    for (std::size_t f = 0; f < of.rows[i].figures.size(); ++f) {
      const ComparedFigure& figure = of.rows[i].figures[f];
      const auto predicted = [&](const Misfits& misfits) {
        return AnyQuantity(figure.measured.value * std::exp(-misfits[i][f]), figure.measured.dim);
      };
      const auto error = [&](const Misfits& misfits) { return std::expm1(-misfits[i][f]); };
      report::Members row{{"place", of.rows[i].place},
                          {"part", figure.part},
                          {"measured", figure.measured},
                          {"predicted", predicted(of.fit.before)},
                          {"error", error(of.fit.before)}};
      if (of.determined() > 0) {
        row.emplace_back("calibrated", predicted(of.fit.after));
        row.emplace_back("calibrated_error", error(of.fit.after));
        if (of.fit.of_held_out) row.emplace_back("held_out_error", error(*of.fit.of_held_out));
      }
      row.emplace_back("verb", of.rows[i].request.verb().name);
      row.emplace_back("arguments", of.rows[i].request.named_arguments());
      row.emplace_back("result", figure.path);
      out.emplace_back(std::move(row));
    }
  return out;
}

report::Items part_rows(const Calibration& of) {
  report::Items out;
  for (const std::string_view part : {"first token", "per token", "throughput", "step", ""}) {
    const auto before = median_off(of.rows, of.fit.before, part);
    if (!before) continue;
    report::Members row{{"part", part.empty() ? "all" : part}, {"error", *before}};
    if (of.determined() > 0) row.emplace_back("calibrated_error", median_off(of.rows, of.fit.after, part));
    if (of.determined() > 0 && of.fit.of_held_out)
      row.emplace_back("held_out_error", median_off(of.rows, *of.fit.of_held_out, part));
    out.emplace_back(std::move(row));
  }
  return out;
}

void add_numbers(const Calibration& of, report::Members& out) {
  report::Items fitted, open;
  for (std::size_t k = 0; k < of.numbers.size(); ++k) {
    const Assumed& assumed = of.numbers[k];
    const auto& found = of.fit.numbers[k];
    const auto times = [&](double factor) -> report::Value {
      const AnyQuantity value(assumed.value.value * factor, assumed.value.dim);
      return value.dim == Dim{} ? report::Value(value.value) : report::Value(value);
    };
    if (found.determined)
      fitted.emplace_back(report::Members{{"number", assumed.meaning},
                                          {"value", times(found.factor)},
                                          {"low", times(found.factor / found.spread)},
                                          {"high", times(found.factor * found.spread)},
                                          {"assumed", times(1.0)}});
    else
      open.emplace_back(report::Members{{"number", assumed.meaning}, {"assumed", times(1.0)}});
  }
  if (!fitted.empty()) out.emplace_back("fitted", std::move(fitted));
  if (!open.empty()) out.emplace_back("undetermined", std::move(open));
}

std::string overlay_text(const Calibration& of, const std::vector<BenchmarkFile>& files, std::string_view date) {
  std::vector<double> factors;
  for (const auto& number : of.fit.numbers) factors.push_back(number.factor);
  const Request& request = of.rows.front().request;
  const std::string held_out = of.fit.of_held_out ? fmt::format("held-out rows are {:.1f} % off, {:.1f} % before",
                                                                100.0 * of.held_out(), 100.0 * of.before())
                                                  : "one row, which nothing checks";
  return fmt::format(
             "# The numbers of one deployment, made by `assay calibrate`. --catalogue takes the directory around "
             "steps/.\n"
             "[source.calibration]\ntitle = \"assay calibrate: {} figures of {} rows of {}{}\"\ndate = {}\nerror = "
             "\"{}\"\n",
             of.figures(), of.rows.size(), files.front().writer.name,
             request.has("on") ? ", on " + request.value("on").value() : "", date, held_out) +
         table_text(request.verb().name, of.numbers, factors, &of.fit);
}

Result<Calibration> calibrated(std::vector<AskedRow> rows, const Context& context) {
  Calibration out{std::move(rows), {}, {}};
  Predictions predictions(out.rows, context);
  ASSAY_CHECK(predictions.keep_predicted());
  if (out.figures() == 0)
    return fail(out.rows.front().place, "none of its figures can be compared: " + out.rows.front().left_out,
                "check --model, --on and --request");
  ASSAY_SET(out.numbers, assumed_numbers(out.rows.front(), context));
  std::vector<DeploymentNumber> numbers;
  for (const Assumed& one : out.numbers) numbers.push_back(one.number);
  const std::string verb = out.rows.front().request.verb().name;
  const benchmark::PredictAt predict = [&](const std::vector<double>& factors) {
    hardware::Catalogue with = context.catalogue;
    with.put(std::string(numbers::deployment_file),
             "[source.calibration]\ntitle = \"a fit\"\n" + table_text(verb, out.numbers, factors, nullptr));
    return predictions.misfits(with);
  };
  ASSAY_SET(out.fit, benchmark::fit_deployment(numbers, predict));
  return out;
}

void add_notes(const Calibration& of, const Request& request, report::Response& response) {
  const auto say = [&](std::string text) {
    response.notes.push_back(text);
    response.important.push_back(std::move(text));
  };
  if (of.rows.size() == 1)
    say("one row: nothing is left to check the numbers with; add runs at other rates or numbers of clients");
  if (of.determined() == 0)
    say("these rows determine none of the deployment's numbers: runs that differ more in load tell them apart");
  else if (!of.helps())
    say("held-out rows are not nearer with these numbers: they are not written");
  else if (request.has("out"))
    say(fmt::format("--catalogue {} makes other commands use these numbers", *request.value("out")));
  else
    say("--out DIR writes them, for --catalogue DIR of other commands");
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(files, read_files(request, context));
  ASSAY_TRY(rows, asked_rows(request, context, files));
  ASSAY_TRY(found, calibrated(std::move(rows), context));
  report::Response response;
  const std::string held_out =
      found.determined() == 0 ? ""
      : found.fit.of_held_out
          ? fmt::format("; held-out rows {:.1f} % with {} fitted number{}", 100.0 * found.held_out(),
                        found.determined(), found.determined() == 1 ? "" : "s")
          : fmt::format("; {:.1f} % with {} fitted", 100.0 * found.held_out(), found.determined());
  const auto counted = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  response.headline = fmt::format("{} of {}: {:.1f} % off as assumed{}", counted(found.figures(), "figure"),
                                  counted(found.rows.size(), "run"), 100.0 * found.before(), held_out);
  report::Members& out = response.results;
  out.emplace_back("runs", static_cast<std::int64_t>(found.rows.size()));
  out.emplace_back("written_by", files.front().writer.name);
  out.emplace_back("parts", part_rows(found));
  add_numbers(found, out);
  out.emplace_back("cases", case_rows(found));
  report::Items left_out;
  for (const AskedRow& row : found.rows)
    if (!row.left_out.empty()) left_out.emplace_back(report::Members{{"place", row.place}, {"why", row.left_out}});
  if (!left_out.empty()) out.emplace_back("left_out", std::move(left_out));
  response.table_key = "cases";
  for (const BenchmarkFile& file : files)
    response.notes.insert(response.notes.end(), file.notes.begin(), file.notes.end());
  if (const auto directory = request.value("out"); directory && found.helps()) {
    const std::string date = context.surroundings.date.empty() ? "1970-01-01" : context.surroundings.date;
    const std::string path = fmt::format("{}/{}", *directory, numbers::deployment_file);
    out.emplace_back("files", report::Items{report::Members{{"file", path}}});
    response.files.emplace_back(path, overlay_text(found, files, date));
  }
  add_notes(found, request, response);
  return response;
}

}  // namespace assay::verbs::calibrate
