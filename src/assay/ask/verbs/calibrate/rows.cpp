// Rows of benchmarks as requests of `assay serve` and `assay train`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/calibrate/calibrate.h"
#include "assay/base/text.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::verbs::calibrate {
namespace {

using benchmark::BenchmarkFile, benchmark::BenchmarkRow, benchmark::Writer;

/// What no file and no option says, once each, and the options that would.
struct Missing {
  std::vector<std::string> what, options;
  bool of_load = false;  ///< it is for options of the request alone

  void add(std::string_view name, std::string_view option, bool load = false) {
    of_load = of_load || load;
    if (std::find(options.begin(), options.end(), option) != options.end()) return;
    what.emplace_back(name);
    options.emplace_back(option);
  }
  std::string hint(std::string_view verb) const {
    if (!of_load) return "add " + join(options, " ");
    std::string words;
    for (const std::string& option : options)
      if (!option.starts_with("--model")) words += " " + option;
    return fmt::format("add --request '{} MODEL{}'", verb, words);
  }
};

class RowReader {
 public:
  static Result<RowReader> make(const Request& request, const Context& context) {
    ASSAY_TRY(chips, validate::KnownChips::make(context.catalogue));
    ASSAY_TRY(software, kernel::software_of(context.catalogue));
    ASSAY_TRY(models, validate::KnownModels::make(context.catalogue));
    return RowReader{request, std::move(chips), std::move(models), std::move(software)};
  }

  Result<AskedRow> read(const BenchmarkRow& row, const Writer& writer, Missing& missing) {
    ASSAY_TRY(start, start_of(row, writer, missing));
    AskedRow out{row.place, std::move(start), {}, {}};
    const auto on = cluster_of(row);
    if (on) ASSAY_CHECK(out.request.fill("on", *on, row.place));
    if (!out.request.has("on")) missing.add("the cluster", "--on CLUSTER");
    const std::string software = software_of(row, writer);
    if (!software.empty()) ASSAY_CHECK(out.request.fill("software", software, row.place));
    for (const std::string_view ways : {"tp", "pp"})
      if (const auto number = row.number(ways); number && *number > 1.0)
        ASSAY_CHECK(out.request.fill(ways, fmt::format("{:.0f}", *number), row.place));
    ASSAY_CHECK(writer.verb == "train" ? add_training(row, out, missing) : add_serving(row, out, missing));
    return out;
  }

 private:
  RowReader(const Request& request, validate::KnownChips chips, validate::KnownModels models,
            kernel::SoftwareList software)
      : request_(request), chips_(std::move(chips)), models_(std::move(models)), software_(std::move(software)) {}

  /// The request that all rows share, with the model of this one.
  Result<Request> start_of(const BenchmarkRow& row, const Writer& writer, Missing& missing) {
    std::optional<Request> start;
    if (const auto text = request_.value("request")) {
      ASSAY_SET(start, parse_request_text(*text));
      if (start->verb().name != writer.verb)
        return fail("--request", fmt::format("{} measures what `assay {}` predicts", writer.name, writer.verb),
                    fmt::format("--request '{} MODEL ...'", writer.verb), Error::Kind::usage);
    } else {
      std::string model = request_.value("model").value_or(row.text("model"));
      if (const model::Transformer* known = request_.has("model") ? nullptr : models_.find(model)) {
        model = known->id;
      } else if (!request_.has("model") && !model.empty()) {
        missing.add(fmt::format("a model that the catalogue knows (it says {})", in_quotes(model)), "--model MODEL");
        model.clear();
      } else if (model.empty()) {
        missing.add("the model", "--model MODEL");
      }
      const std::vector<std::string> words{writer.verb, model.empty() ? "llama-3-8b" : model};
      ASSAY_SET(start, parse_request(words));
    }
    for (const std::string_view option : {"on", "software"})
      if (const auto value = request_.value(option); value && find_option(start->verb(), option))
        ASSAY_CHECK(start->fill(option, *value, "calibrate"));
    return *std::move(start);
  }

  /// "h100-sxm:8"; nothing where the file does not say the chip, or how many.
  std::optional<std::string> cluster_of(const BenchmarkRow& row) const {
    const auto chip = chips_.find(row.text("chip"));
    auto chips = row.number("chips");
    if (!chips && row.number("tp"))
      chips = *row.number("tp") * row.number("pp").value_or(1.0) * row.number("dp").value_or(1.0);
    return chip && chips && *chips >= 1.0 ? std::optional(fmt::format("{}:{:.0f}", *chip, *chips)) : std::nullopt;
  }

  /// NAME@RELEASE as the catalogue has it, from a name and the version that ran; empty where it does not know the name.
  std::string software_of(const BenchmarkRow& row, const Writer& writer) const {
    const std::string named = writer.software.empty() ? row.text("software") : writer.software;
    const std::string version = row.text("version");
    const kernel::Software* found = nullptr;
    for (const kernel::Software& one : software_)
      if (named.starts_with(one.id) && (!found || one.id.size() > found->id.size())) found = &one;
    if (!found) return {};
    std::string release;
    for (const kernel::SoftwareVersion& one : found->versions)
      if (version == one.id || version.starts_with(one.id + ".")) release = "@" + one.id;
    return found->id + release;
  }

  /// Adds an option of a whole number that the file says, or asks for it.
  static Result<void> fill_count(const BenchmarkRow& row, std::string_view figure, std::string_view option,
                                 std::string_view after, AskedRow& out, std::string_view name, std::string_view ask,
                                 Missing& missing) {
    if (const auto value = row.number(figure); value && *value >= 0.5)
      ASSAY_CHECK(out.request.fill(option, fmt::format("{:.0f}{}", *value, after), row.place));
    if (!out.request.has(option)) missing.add(name, ask, true);
    return {};
  }

  static Result<void> add_serving(const BenchmarkRow& row, AskedRow& out, Missing& missing) {
    if (!out.request.has("software")) missing.add("the engine", "--software NAME[@VERSION]");
    ASSAY_CHECK(fill_count(row, "prompt", "prompt", "", out, "tokens of a prompt", "--prompt N", missing));
    ASSAY_CHECK(fill_count(row, "output", "output", "", out, "tokens of an output", "--output N", missing));
    const auto rate = row.number("rate"), clients = row.number("clients"), in_flight = row.number("in_flight");
    bool queues = false;  // first tokens wait behind prompts that all came at once
    if (!out.request.has("rate") && !out.request.has("batch")) {
      if (rate && *rate > 0.0 && std::isfinite(*rate)) {
        ASSAY_CHECK(out.request.fill("rate", exact_number(*rate), row.place));
        if (clients) ASSAY_CHECK(out.request.fill("most-batch", fmt::format("{:.0f}", *clients), row.place));
      } else {
        queues = !clients;
        const auto batch = clients ? clients : in_flight;
        const auto requests = row.number("requests");
        if (batch && *batch >= 0.5)
          ASSAY_CHECK(out.request.fill("batch", fmt::format("{:.0f}", *batch), row.place));
        else if (rate && requests)  // all at once: the server takes as many as it can
          ASSAY_CHECK(out.request.fill("most-batch", fmt::format("{:.0f}", *requests), row.place));
        else
          missing.add("the load", "--batch CLIENTS (or --rate R)", true);
      }
    }
    const bool open = out.request.has("rate");
    const auto add = [&](std::string_view figure, std::string part, std::string path, Dim dim) {
      if (const auto value = row.number(figure))
        out.figures.push_back({std::move(part), std::move(path), AnyQuantity(*value, dim)});
    };
    if (!queues)
      add("first_token", "first token", open ? "load.time_to_first_token.mean" : "first_token.time", Seconds::dim);
    else if (row.number("first_token"))
      out.left_out = "first token: all requests came at once, and wait for each other";
    const std::string per_token = open ? "load.time_per_token.mean" : "served.time_per_token";
    add("per_token", "per token", per_token, Seconds::dim);
    // Counting events of a stream goes wrong where one carries several tokens, or none: whole requests do not.
    const auto latency = row.number("latency"), first = row.number("first_token");
    const auto output = parse_number(out.request.value("output").value_or(""));
    if (!row.number("per_token") && latency && first && output && *output > 1.0)
      out.figures.push_back({"per token", per_token, Seconds((*latency - *first) / (*output - 1.0))});
    if (!open) add("throughput", "throughput", "served.output_tokens_per_second", TokensPerSecond::dim);
    return {};
  }

  static Result<void> add_training(const BenchmarkRow& row, AskedRow& out, Missing& missing) {
    ASSAY_CHECK(fill_count(row, "sequences", "batch", "seq", out, "sequences of a step", "--batch Nseq", missing));
    ASSAY_CHECK(fill_count(row, "sequence", "seq", "", out, "tokens of a sequence", "--seq N", missing));
    if (const auto step = row.number("step"))
      out.figures.push_back({"step", "step_time.estimate", Seconds(*step)});
    else if (const auto rate = row.number("chip_throughput"))
      out.figures.push_back({"throughput", "tokens_per_second_per_chip", TokensPerSecond(*rate)});
    return {};
  }

  const Request& request_;
  validate::KnownChips chips_;
  validate::KnownModels models_;
  kernel::SoftwareList software_;
};

}  // namespace

Result<std::vector<AskedRow>> asked_rows(const Request& request, const Context& context,
                                         const std::vector<BenchmarkFile>& files) {
  ASSAY_TRY(reader, RowReader::make(request, context));
  std::vector<AskedRow> rows;
  Missing missing;
  for (const BenchmarkFile& file : files) {
    if (file.writer.verb != files.front().writer.verb)
      return fail("FILE",
                  fmt::format("one file is for `assay {}` and another for `assay {}`", files.front().writer.verb,
                              file.writer.verb),
                  "calibrate servers and training runs one after the other", Error::Kind::usage);
    for (const BenchmarkRow& row : file.rows) {
      ASSAY_TRY(asked, reader.read(row, file.writer, missing));
      rows.push_back(std::move(asked));
    }
  }
  if (!missing.what.empty())
    return fail(files.front().rows.front().place, "it does not say " + join(missing.what, ", "),
                missing.hint(files.front().writer.verb), Error::Kind::usage);
  return rows;
}

}  // namespace assay::verbs::calibrate
