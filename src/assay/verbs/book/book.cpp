// assay book: reproduces the textbook's worked answers through the same requests a user would make.
#include "assay/verbs/book/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/base/text.h"
#include "assay/base/toml.h"
#include "assay/verbs/screens/screens.h"
#include "assay/verbs/verbs.h"

namespace assay::verbs::book {
namespace {

Result<double> parse_tolerance(const std::string& text, const std::string& where) {
  if (text == "exact") return 1e-6;
  if (text.ends_with("%"))
    if (const auto percent = parse_number(std::string_view(text).substr(0, text.size() - 1)); percent && *percent > 0)
      return *percent / 100.0;
  if (text == "order") return HUGE_VAL;
  return fail(where, fmt::format("unknown tolerance {}", in_quotes(text)), "exact, 1%, 5% or order");
}

bool close(double expected, double got, double tolerance) {
  if (std::isinf(tolerance))
    return got > 0 && expected > 0 && got <= 3.0 * expected && expected <= 3.0 * got;  // "order": within a factor of 3
  return std::abs(got - expected) <= tolerance * std::abs(expected) * (1.0 + 1e-9);
}

Result<std::string> text_of(const Toml& table, std::string_view key, const std::string& file) {
  const Toml* node = table.find(key);
  if (!node || node->kind != Toml::Kind::text)
    return fail(fmt::format("{}:{}:{}: {}", file, table.line, table.column, key), "text is missing", "");
  return node->text;
}

Result<BookFigure> read_figure(const Toml& item, const std::string& chapter, const std::string& file) {
  ASSAY_TRY(title, text_of(item, "title", file));
  ASSAY_TRY(request, text_of(item, "request", file));
  BookFigure figure{chapter, title, request, {}};
  const Toml* controls = item.find("controls");
  if (!controls) return figure;
  for (const auto& [name, values] : controls->members) {
    BookFigure::Control& control = figure.controls.emplace_back();
    control.name = name;
    for (const Toml& value : values.items) control.values.push_back(value.text);
    if (control.values.empty())
      return fail(fmt::format("{}:{}: {}", file, values.line, name), "a control is a list of texts", "");
  }
  return figure;
}

Result<void> load_file(const std::string& path, std::string_view text, Book& book) {
  ASSAY_TRY(root, parse_toml(text, path));
  const std::string chapter = path.substr(5, path.size() - 10);  // book/CHAPTER.toml
  for (const auto& [key, list] : root.members) {
    if ((key != "check" && key != "skip" && key != "figure") || list.kind != Toml::Kind::array)
      return fail(fmt::format("{}:{}: {}", path, list.line, key),
                  "only [[check]], [[skip]] and [[figure]] are allowed here", "");
    for (const Toml& item : list.items) {
      if (key == "figure") {
        ASSAY_TRY(figure, read_figure(item, chapter, path));
        book.figures.push_back(std::move(figure));
        continue;
      }
      ASSAY_TRY(id, text_of(item, "id", path));
      if (key == "skip") {
        ASSAY_TRY(why, text_of(item, "why", path));
        book.skipped.push_back({id, chapter, why});
        continue;
      }
      ASSAY_TRY(request, text_of(item, "request", path));
      ASSAY_TRY(value_path, text_of(item, "path", path));
      ASSAY_TRY(expected, text_of(item, "expected", path));
      ASSAY_TRY(tolerance, text_of(item, "tolerance", path));
      ASSAY_TRY(known, parse_tolerance(tolerance, path + ": " + id));
      static_cast<void>(known);
      const Toml* note = item.find("note");
      book.checks.push_back({id, chapter, request, value_path, expected, tolerance, note ? note->text : ""});
    }
  }
  return {};
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
    rows.emplace_back(report::Members{{"chapter", figure.chapter},
                                      {"title", figure.title},
                                      {"request", "assay " + figure.request},
                                      {"verb", request.verb().name},
                                      {"arguments", request.named_arguments()},
                                      {"controls", std::move(controls)}});
  }
  return rows;
}

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
  report::Items rows, skipped;
  std::int64_t passed = 0, failed = 0;
  for (const BookCheck& check : book.checks) {
    if (!wanted.empty() && check.chapter != wanted && check.id != wanted) continue;
    const CheckResult result = run_check(check, context);
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
    if (wanted.empty() || skip.chapter == wanted)
      skipped.emplace_back(report::Members{{"id", skip.id}, {"why", skip.why}});
  response.headline =
      fmt::format("{} of {} worked answers reproduced, {} left out", passed, passed + failed, skipped.size());
  response.results.emplace_back("passed", passed);
  response.results.emplace_back("failed", failed);
  response.results.emplace_back("left_out", static_cast<std::int64_t>(skipped.size()));
  response.results.emplace_back("checks", std::move(rows));
  if (request.has("left-out")) response.results.emplace_back("skipped", std::move(skipped));
  if (!one_fact) {
    ASSAY_TRY(figures, figure_rows(book, wanted));
    response.results.emplace_back("figures", std::move(figures));
  }
  response.table_key = "checks";
  if (failed > 0) response.outcome = report::Outcome::check_failed;
  return response;
}

}  // namespace

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
  result.ok = close(expected->value, *number, *parse_tolerance(check.tolerance, check.id));
  if (!result.ok) result.reason = fmt::format("off by {:.3g} %", 100.0 * (*number / expected->value - 1.0));
  return result;
}

VerbSpec verb() {
  return {"book",
          "reproduce the textbook's worked answers",
          "Each check is a fact of \"How to Scale Your Model\", a request that a user could make, the path of the "
          "number in its answer, and the expected value. Exit code 4 if one fails.",
          {{"chapter", "a chapter, or the id of one fact", false}},
          {{"left-out", "", "also list what is not checked, and why"}},
          {{"assay book", "all chapters"},
           {"assay book tpus --format csv", "one chapter as a table"},
           {"assay book roofline.network.4", "one fact with its request"}},
          &answer,
          false,
          false,
          &screens::book};
}

}  // namespace assay::verbs::book
