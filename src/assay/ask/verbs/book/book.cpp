// assay book: reproduces the textbook's worked answers through the same requests a user would make.
#include "assay/ask/verbs/book/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/ask/verbs/verbs.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::verbs::book {
namespace {

Result<double> parse_tolerance(const std::string& text) {
  if (text == "exact") return 1e-6;
  if (text.ends_with("%"))
    if (const auto percent = parse_number(std::string_view(text).substr(0, text.size() - 1)); percent && *percent > 0)
      return *percent / 100.0;
  if (text == "order") return HUGE_VAL;
  return fail("tolerance", fmt::format("unknown tolerance {}", in_quotes(text)), "exact, 1%, 5% or order");
}

bool close(double expected, double got, double tolerance) {
  if (std::isinf(tolerance))
    return got > 0 && expected > 0 && got <= 3.0 * expected && expected <= 3.0 * got;  // "order": within a factor of 3
  return std::abs(got - expected) <= tolerance * std::abs(expected) * (1.0 + 1e-9);
}

Result<void> load_file(const std::string& path, std::string_view text, Book& book) {
  ASSAY_TRY(root, parse_toml(text, path));
  const std::string chapter = path.substr(5, path.size() - 10);  // book/CHAPTER.toml
  RecordFile file{.name = path, .sourced_tables = false};
  RecordReader reader(file, root);
  reader.items("check", book.checks, [&](BookCheck& check, RecordReader& in) {
    check.chapter = chapter;
    in.text("id", check.id);
    in.text("request", check.request);
    in.text("path", check.path);
    in.text("expected", check.expected);
    in.text("tolerance", check.tolerance);
    if (in.has("note")) in.text("note", check.note);
    if (const auto known = parse_tolerance(check.tolerance); !known)
      in.fault("tolerance", known.error().what, known.error().hint);
  });
  reader.items("skip", book.skipped, [&](BookSkip& skip, RecordReader& in) {
    skip.chapter = chapter;
    in.text("id", skip.id);
    in.text("why", skip.why);
  });
  reader.items("figure", book.figures, [&](BookFigure& figure, RecordReader& in) {
    figure.chapter = chapter;
    in.text("title", figure.title);
    in.text("request", figure.request);
    if (in.has("picture")) in.text("picture", figure.picture);
    in.each_key("controls", [&](const std::string& name, RecordReader& controls) {
      controls.texts(name, figure.controls.emplace_back(BookFigure::Control{name, {}}).values);
    });
  });
  reader.finish();
  return joined(std::move(file.faults));
}

/// The figures of a chapter, or of all: requests that draw them, and what may be varied.
Result<report::Items> figure_rows(const Book& book, const std::string& chapter) {
  report::Items rows;
  for (const BookFigure& figure : book.figures) {
    if (!chapter.empty() && figure.chapter != chapter) continue;
    ASSAY_TRY(words, split_words(figure.request));
    ASSAY_TRY(request, parse_request(words));
    report::Items controls;
    for (const BookFigure::Control& control : figure.controls)
      controls.emplace_back(report::Members{{"argument", control.name},
                                            {"values", report::Items(control.values.begin(), control.values.end())}});
    report::Members row{{"chapter", figure.chapter},
                        {"title", figure.title},
                        {"request", "assay " + figure.request},
                        {"verb", request.verb().name},
                        {"arguments", request.named_arguments()},
                        {"controls", std::move(controls)}};
    if (!figure.picture.empty()) row.emplace_back("picture", figure.picture);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(book, load_book(context.catalogue));
  std::set<std::string> chapters;
  for (const BookCheck& check : book.checks) chapters.insert(check.chapter);
  const std::string wanted = request.arguments().empty() ? "" : request.arguments().front();
  const bool one_fact =
      std::any_of(book.checks.begin(), book.checks.end(), [&](const BookCheck& c) { return c.id == wanted; });
  if (!wanted.empty() && !one_fact && !chapters.contains(wanted)) {
    const std::vector<std::string> names(chapters.begin(), chapters.end());
    return fail("book", fmt::format("unknown chapter or fact {}", in_quotes(wanted)), suggestion(wanted, names));
  }
  report::Response response;
  if (request.has("figures")) {
    ASSAY_TRY(figures, figure_rows(book, wanted));
    response.headline = fmt::format("{} figures", figures.size());
    response.results.emplace_back("figures", std::move(figures));
    response.table_key = "figures";
    return response;
  }
  report::Items rows, skipped;
  std::int64_t passed = 0, failed = 0;
  std::set<std::string> checked, unchecked;  // a fact with several numbers has several checks
  for (const BookCheck& check : book.checks) {
    if (!wanted.empty() && check.chapter != wanted && check.id != wanted) continue;
    const CheckResult result = run_check(check, context);
    checked.insert(check.id);
    (result.ok ? passed : failed) += 1;
    report::Members row{{"id", check.id},
                        {"ok", result.ok},
                        {"expected", result.expected},
                        {"got", result.got},
                        {"tolerance", check.tolerance},
                        {"request", "assay " + check.request},
                        {"path", check.path}};
    if (!check.note.empty()) row.emplace_back("note", check.note);
    if (!result.ok) row.emplace_back("reason", result.reason);
    rows.emplace_back(std::move(row));
  }
  for (const BookSkip& skip : book.skipped)
    if (wanted.empty() || skip.chapter == wanted) {
      skipped.emplace_back(report::Members{{"id", skip.id}, {"why", skip.why}});
      if (!checked.contains(skip.id)) unchecked.insert(skip.id);
    }
  response.headline =
      fmt::format("{} of {} worked answers reproduced, {} left out", passed, passed + failed, skipped.size());
  if (!one_fact) response.headline += fmt::format("; {} facts covered", checked.size() + unchecked.size());
  response.results.emplace_back("passed", passed);
  response.results.emplace_back("failed", failed);
  response.results.emplace_back("left_out", static_cast<std::int64_t>(skipped.size()));
  const auto count = [](const std::set<std::string>& ids) { return static_cast<std::int64_t>(ids.size()); };
  response.results.emplace_back("facts", report::Members{{"checked", count(checked)},
                                                         {"left_out", count(unchecked)},
                                                         {"covered", count(checked) + count(unchecked)}});
  response.results.emplace_back("checks", std::move(rows));
  if (request.has("left-out")) response.results.emplace_back("skipped", std::move(skipped));
  if (!one_fact) ASSAY_CHECK(report::put(response.results, "figures", figure_rows(book, wanted)));
  response.table_key = "checks";
  if (failed > 0) response.outcome = report::Outcome::check_failed;
  return response;
}

Result<Book> load_book(const hardware::Catalogue& catalogue) {
  Book book;
  for (const auto& [path, text] : catalogue.files("book/")) ASSAY_CHECK(load_file(path, text, book));
  return book;
}

CheckResult run_check(const BookCheck& check, const Context& context) {
  CheckResult result;
  result.expected = check.expected;
  const auto failed = [&](std::string reason) {
    result.reason = std::move(reason);
    return result;
  };
  const auto words = split_words(check.request);
  if (!words) return failed(words.error().what);
  const auto request = parse_request(*words);
  if (!request) return failed(request.error().where + ": " + request.error().what);
  if (request->verb().name == "book") return failed("a check cannot run `assay book`");
  const auto response = ask_within(*request, context);
  if (!response) return failed(response.error().where + ": " + response.error().what);
  const report::Value results{response->results};
  const std::optional<report::Value> value = report::find_path(results, check.path);
  if (!value) return failed(fmt::format("the answer has no {}", check.path));
  result.got = *value;
  const auto number = report::numeric(*value);
  const auto expected = parse_quantity(check.expected, "expected");
  if (!number || !expected) {
    result.ok = report::scalar_text(*value) == check.expected;
    if (!result.ok) result.reason = fmt::format("expected {}, got {}", check.expected, report::scalar_text(*value));
    return result;
  }
  const auto* quantity = std::get_if<report::QuantityValue>(&value->data());
  const Dim dim = quantity ? quantity->quantity.dim : Dim{};
  result.expected = expected->dim == Dim{} ? report::Value(expected->value) : report::Value(*expected);
  result.got = quantity ? report::Value(quantity->quantity) : *value;
  if (dim != expected->dim) return failed(fmt::format("expected {}, got {}", base_unit(expected->dim), base_unit(dim)));
  result.ok = close(expected->value, *number, *parse_tolerance(check.tolerance));
  if (!result.ok) result.reason = fmt::format("off by {:.3g} %", 100.0 * (*number / expected->value - 1.0));
  return result;
}

}  // namespace assay::verbs::book
