#include <fmt/format.h>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs::book {
std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer) {
  using report::Reader, report::Tone;
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

}  // namespace assay::verbs::book
