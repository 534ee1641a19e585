
#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/run/run.h"

namespace assay::verbs::run {
namespace {

using report::Reader;

void add_shown(report::Screen& screen, const Reader& results) {
  for (const report::Value& row : results.rows("shown")) {
    const Reader one(*row.members());
    screen.blocks.emplace_back(report::Gap{});
    report::add_blocks(screen, one, R"(
[after = given] Given: {tensor}
[!after = given] After: {after}
: all rows of devices: = {device} | = {values[]})");
  }
}

}  // namespace

std::optional<report::Screen> screen_of(const Request&, const report::Response& answer) {
  const bool planned = Reader(answer.results).has("shardings");
  auto screen =
      report::described_screen(declared_text(planned ? "screens/run_planned.txt" : "screens/run.txt"), answer);
  add_shown(*screen, Reader(answer.results));
  return screen;
}

}  // namespace assay::verbs::run
