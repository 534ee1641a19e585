#include "assay/ask/verbs/sweep/run.h"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

#include "assay/ask/report/render.h"
#include "assay/ask/sweep/runner.h"
#include "assay/ask/verbs/faults.h"
#include "assay/base/version.h"

namespace assay::verbs::sweep_verb {
namespace {

using sweep::Plan;
using sweep::Row;
using sweep::Store;

report::Value value_of(const Request& request) {
  return report::Members{{"verb", request.verb().name}, {"arguments", request.named_arguments()}};
}

std::string text_of(const report::Value& request) {
  std::string text = report::render_json(request, report::Layout::one_line);
  text.pop_back();
  return text;
}

/// Requests of a sweep are answered from the catalogue alone and give nothing but an answer.
Result<void> check_request(const Request& request) {
  if (request.verb().on_this_machine)
    return fail("", fmt::format("a sweep cannot ask {}, which works on this machine", request.verb().name),
                "its verb is what each combination asks: train, serve, roofline, ...");
  if (request.value("engine") == "mpi")
    return fail("", "requests of a sweep run in one process each", "leave --engine mpi out");
  for (const char* option : {"catalogue", "config"})
    if (request.has(option))
      return fail("", fmt::format("--{} holds for a whole sweep", option),
                  fmt::format("give it to the sweep itself: assay sweep FILE --{} ...", option));
  return {};
}

/// The same fault of many requests is said once.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  void add(Error error) {
    constexpr std::size_t most = 8;
    if (all_.size() >= most || !seen_.insert(error.where + error.what).second) return;
    all_.push_back(within(file_, std::move(error)).value());
  }
  Result<void> result() { return joined(std::move(all_)); }

 private:
  std::string file_;
  std::vector<Error> all_;
  std::set<std::string> seen_;
};

Row answered(const std::string& text, const Context& context) {
  report::Value request;
  const auto answer = without_exceptions([&]() -> Result<report::Response> {
    ASSAY_TRY(parsed, parse_json_request(text));
    request = value_of(parsed);
    return ask_within(parsed, context);
  });
  return sweep::make_row(request, answer);
}

}  // namespace

Result<std::vector<std::string>> requests_of(const Plan& plan, const std::string& file) {
  std::vector<std::string> out;
  std::unordered_set<std::string> known;
  Faults faults(file);
  const auto take = [&](const Result<Request>& request) {
    if (!request) return faults.add(request.error());
    if (const auto fit = check_request(*request); !fit) return faults.add(fit.error());
    std::string text = text_of(value_of(*request));
    if (known.insert(text).second) out.push_back(std::move(text));
  };
  for (std::size_t i = 0; i < plan.grid_size(); ++i) take(parse_json_request(text_of(plan.grid_request(i))));
  for (const std::string& command : plan.commands) take(parse_request_text(command));
  ASSAY_CHECK(faults.result());
  return out;
}

std::string answered_by(const Context& context) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto take = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const auto& [path, text] : context.catalogue.files("")) {
    take(path);
    take(text);
  }
  return fmt::format("assay {}{}{}, catalogue {:016x}\n", version, commit().empty() ? "" : " ", commit(), hash);
}

Result<std::size_t> ask_missing(const std::vector<std::string>& requests, Store& store, std::size_t threads,
                                const Context& context) {
  return sweep::run(
      requests, [&](const std::string& request) { return answered(request, context); }, store, threads,
      context.surroundings.ranks);
}

}  // namespace assay::verbs::sweep_verb
