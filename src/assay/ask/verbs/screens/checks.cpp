#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/screens/screens.h"

namespace assay::verbs::screens {
namespace {

using report::Reader;
using report::Tone;

}  // namespace

std::optional<report::Screen> validate(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, Tone::strong}};
  if (results.has("without_each")) {
    add_blocks(screen, results, R"(
: all rows of without_each: number = {number} | value = {value} | without it = {without} |
  mean of groups = {mean_of_groups%} | change = {change%})");
    screen.notes = answer.notes;
    return screen;
  }
  if (!results.has("summary")) return std::nullopt;
  add_blocks(screen, results, R"(
: all rows of summary: group = {group} | rows = {n} | median = {median_ape%} | 90 % within = {p90_ape%} |
  bias = {bias%} | within 10 % = {within_10%} | in interval = {covered%})");
  screen.notes = answer.notes;
  screen.notes.emplace_back("--all lists every measurement next to its prediction");
  return screen;
}

std::optional<report::Screen> book(const Request& request, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::good : Tone::bad}};
  if (!results.has("checks")) {
    add_blocks(screen, results, R"(
: all rows of figures: chapter = {chapter} | figure = {title} | request = {request})");
    return screen;
  }
  report::ScreenTable chapters{"", {"chapter", "worked answers", "reproduced"}, {}};
  report::ScreenTable checks{"", {"fact", "ok", "expected", "got", "request"}, {}};
  std::string chapter;
  std::int64_t all = 0, passed = 0;
  const auto end_chapter = [&] {
    if (all > 0) chapters.rows.push_back({chapter, fmt::format("{}", all), fmt::format("{}", passed)});
    all = passed = 0;
  };
  const bool every = request.arguments().empty();
  for (const report::Value& row : results.rows("checks")) {
    const Reader check(*row.members());
    const std::string id = check.text("id");
    if (id.substr(0, id.find('.')) != chapter) {
      end_chapter();
      chapter = id.substr(0, id.find('.'));
    }
    ++all;
    passed += check.truth("ok") ? 1 : 0;
    if (!every || !check.truth("ok"))
      checks.rows.push_back({id, check.text("ok"), check.text("expected"), check.text("got"), check.text("request")});
  }
  end_chapter();
  if (every) add_table(screen, std::move(chapters));
  add_table(screen, std::move(checks));
  screen.notes = answer.notes;
  if (request.has("left-out")) return std::nullopt;
  return screen;
}

}  // namespace assay::verbs::screens
