#include "assay/ask/report/screen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/ask/report/layout.h"
#include "assay/ask/report/patterns.h"
#include "assay/base/text.h"

namespace assay::report {
namespace {

TEST(Layout, CountsCodePointsAndWrapsAtBlanks) {
  EXPECT_EQ(columns("\u2588\u2588 5 \u00b5s"), 7u);
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
  EXPECT_EQ(wrapped("", 3), (std::vector<std::string>{""}));
  EXPECT_EQ(in_ascii("A \u00b7J B\u2026 \u03b1"), "A *J B... ?");
}

TEST(Figures, AreShortAndHaveNoExponents) {
  EXPECT_EQ(short_number(27060.0), "27,060");
  EXPECT_EQ(short_number(3.533e6), "3.53 M");
  EXPECT_EQ(short_number(70.56e9), "70.6 B");
  EXPECT_EQ(short_number(0.00621), "0.00621");
  EXPECT_EQ(short_number(0.0), "0");
  EXPECT_EQ(short_quantity(Seconds(6.947)), "6.95 s");
  EXPECT_EQ(short_quantity(Seconds(0.9999)), "1 s");
  EXPECT_EQ(short_quantity(143.8_day), "144 days");
  EXPECT_EQ(short_quantity(Bytes(27303456789.0)), "25.4 GiB");
  EXPECT_EQ(short_quantity(16_GB), "16 GB");
  EXPECT_EQ(short_quantity(80_GiB), "80 GiB");
  EXPECT_EQ(short_quantity(Dollars(24310324.0)), "24.3 M USD");
  EXPECT_EQ(short_quantity(TokensPerSecond(1.207e6)), "1.21 M tokens/s");
  EXPECT_EQ(percent(0.5354), "53.5 %");
  EXPECT_EQ(signed_percent(0.0004), "+0.04 %");
}

TEST(Figures, OfOneColumnShareTheirUnit) {
  const SharedUnit unit = shared_unit(Seconds(6.947));
  EXPECT_EQ(unit.text(6.947), "6.95 s");
  EXPECT_EQ(unit.number(0.0768), "0.08");
  EXPECT_TRUE(unit.shows(0.0768));
  EXPECT_FALSE(unit.shows(0.004));
}

TEST(LargestParts, PutTheRestTogether) {
  const auto parts = largest_parts({{"a", 1.0}, {"b", 5.0}, {"none", 0.0}, {"c", 3.0}, {"d", 2.0}}, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "b");
  EXPECT_EQ(parts[2].name, "other");
  EXPECT_EQ(parts[2].size, 3.0);
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

Screen example() {
  Screen screen;
  screen.headline = {{"fits", Tone::good}, {"8 s per step", Tone::strong}};
  screen.beneath = {"80 % of such predictions lie within 7 .. 9 s"};
  screen.blocks = {
      PhraseLine{"Plan", {{"dp 64"}, {"tp 4"}}},
      FillBar{"Memory", 50.0, 75.0, 100.0, {{"weights", 50.0}}, shared_unit(Seconds(8.0)), {{"50 of 100"}}},
      StackedBar{"Time", {{"products", 6.0}, {"bubble", 2.0}}, shared_unit(Seconds(8.0)), "8 s"},
      ScreenTable{"Others", {}, {{"tp 8", "9 s", "+12 %"}, {"pp 2 and something longer", "10 s", "+25 %"}}}};
  screen.notes = {"More: --all"};
  return screen;
}

TEST(Screen, DrawsBarsWithBlocksOrWithSigns) {
  EXPECT_EQ(render(example(), {100, false, true, false}),
            "  fits   8 s per step\n"
            "  80 % of such predictions lie within 7 .. 9 s\n\n"
            "  Plan    dp 64 \u00b7 tp 4\n"
            "  Memory  " +
                repeated("\u2588", 22) + repeated("\u2592", 11) + repeated("\u2591", 11) +
                "  50 of 100\n"
                "          weights 50.00\n"
                "  Time    " +
                repeated("\u2588", 33) + repeated("\u2593", 11) +
                "  8 s\n"
                "          \u2588 products 6.00  \u2593 bubble 2.00\n"
                "  Others  tp 8                        9 s  +12 %\n"
                "          pp 2 and something longer  10 s  +25 %\n\n"
                "  More: --all\n");
  const std::string plain = render(example(), {60, false, false, true});
  EXPECT_NE(plain.find("  Plan    dp 64; tp 4\n"), std::string::npos) << plain;
  EXPECT_NE(plain.find("  Time    ####"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("fits"), std::string::npos) << plain;
  for (const char c : plain) EXPECT_TRUE(static_cast<unsigned char>(c) < 0x80);
}

TEST(Screen, FitsIntoEveryWidth) {
  for (std::size_t width = 40; width <= 100; ++width)
    for (const std::string& line : split(render(example(), {width, false, true, false}), '\n'))
      EXPECT_LE(columns(line), width) << line;
}

TEST(Screen, ATableThatMayGivesUpRowsInItsMiddle) {
  Screen screen = example();
  auto& table = std::get<ScreenTable>(screen.blocks.back());
  table.rows.clear();
  for (int i = 0; i < 20; ++i) table.rows.push_back({fmt::format("row {}", i), "1 s", "2 s"});
  const auto lines = [&] { return split(render(screen, {}), '\n').size() - 1; };
  EXPECT_GT(lines(), 25u);
  table.least_rows = 2;
  EXPECT_EQ(lines(), 25u);
  EXPECT_NE(render(screen, {}).find("row 0 "), std::string::npos);
  EXPECT_NE(render(screen, {}).find("row 19"), std::string::npos);
}

TEST(Screen, LeavesOutWhatItCanDoWithoutWhereItIsTooLong) {
  Screen screen = example();
  for (int i = 0; i < 16; ++i) screen.blocks.emplace_back(PhraseLine{fmt::format("Line {}", i), {{"text"}}});
  screen.spare = {"absent", "Line 3", "Line 7", "Line 1"};
  const std::size_t whole = split(render(screen, {100, false, true, false, 1000}), '\n').size() - 1;
  ASSERT_GT(whole, 25u);
  const std::string text = render(screen, {});
  EXPECT_EQ(split(text, '\n').size() - 1, std::max<std::size_t>(25, whole - 3));
  EXPECT_EQ(text.find("Line 3"), std::string::npos);
  EXPECT_NE(text.find("Line 2"), std::string::npos);
}

TEST(Screen, ColourAddsNothingButColour) {
  std::string painted = render(example(), {100, true, true, false});
  EXPECT_NE(painted.find("\x1b[1;32mfits\x1b[0m"), std::string::npos);
  for (std::size_t at = 0; (at = painted.find('\x1b', at)) != std::string::npos;)
    painted.erase(at, painted.find('m', at) + 1 - at);
  EXPECT_EQ(painted, render(example(), {100, false, true, false}));
}

TEST(Blocks, AreDescribedByTheirText) {
  const Members results{{"peak", Members{{"bf16", 989_TFLOP_per_s}, {"fp8", 1979_TFLOP_per_s}}},
                        {"share", 0.25},
                        {"levels", Items{Members{{"name", "node"}, {"chips", 8}}, Members{{"name", "pod"}}}}};
  Screen screen;
  add_blocks(screen, Reader(results), R"(
Peak: each peak
Busy!: {share%} busy |
  {missing} is left out
Levels: 1 rows of levels: level = {name} | chips = {chips}
Nothing: {missing})");
  ASSERT_EQ(screen.blocks.size(), 3u);
  EXPECT_EQ(std::get<PhraseLine>(screen.blocks[0]).phrases.size(), 2u);
  const auto& busy = std::get<PhraseLine>(screen.blocks[1]);
  EXPECT_EQ(busy.label, "Busy");
  ASSERT_EQ(busy.phrases.size(), 1u);
  EXPECT_EQ(busy.phrases.front().text, "25 % busy");
  EXPECT_EQ(busy.phrases.front().tone, Tone::strong);
  const auto& table = std::get<ScreenTable>(screen.blocks[2]);
  EXPECT_EQ(table.head, (std::vector<std::string>{"level", "chips"}));
  EXPECT_EQ(table.rows, (std::vector<std::vector<std::string>>{{"node", "8"}}));
  EXPECT_EQ(table.more, "and 1 more: --all");
}

TEST(Patterns, HaveFormsConditionsAndOptionalParts) {
  const Members row{{"share", 0.25},
                    {"loss", 3.14159},
                    {"text", "first; second"},
                    {"step", "dQ[B, S] = product(dO[B, S])"},
                    {"answer", "two\nlines"},
                    {"used", 0.5_s},
                    {"whole", 2_s},
                    {"fits", false},
                    {"values", Items{Items{0.0, 1.0}, Items{2.0, 3.0}}}};
  const Members asked{{"list", true}};
  const Reader reader(row, &asked);
  const auto text = [&](std::string_view pattern) { return filled(reader, pattern).value_or("nothing"); };
  EXPECT_EQ(text("{share%} or {share+%}"), "25 % or +25 %");
  EXPECT_EQ(text("{loss:.2f}"), "3.14");
  EXPECT_EQ(text("{text;} of {values#}"), "first of 2");
  EXPECT_EQ(text("{step-}"), "dQ = product(dO)");
  EXPECT_EQ(text("{answer\\n}"), "two lines");
  EXPECT_EQ(text("{used of whole}"), "0.50 of 2.00 s");
  EXPECT_EQ(text("{values[]}"), "[[0, 1], [2, 3]]");
  EXPECT_EQ(text("a< at {missing}><[share > 0.1] part><[fits] whole>"), "a part");
  EXPECT_EQ(text("{missing}"), "nothing");
  const auto shown = phrases(reader, {"[--list] list", "[--all] all", "[values# > 2] many", "[!fits bad] too large"});
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].text, "list");
  EXPECT_EQ(shown[1].tone, Tone::bad);
}

TEST(Blocks, SampleSortAndSumTheirRows) {
  Items steps;
  for (const double time : {1.0, 5.0, 3.0, 4.0})
    steps.emplace_back(Members{{"kind", time > 3.0 ? "slow" : "fast"}, {"time", Seconds(time)}});
  const Members results{{"steps", std::move(steps)}, {"all", 13_s}, {"rest", 0_s}};
  Screen screen;
  add_blocks(screen, Reader(results), R"(
Some: 2 sampled rows of steps: time = <{time}>
Longest: 2 largest by time rows of steps: time = <{time}>
Kinds: 3 parts of steps: {kind} = {time}
Time: bar of all: steps = {all} | rest = {rest}
Line: {all} in all
Line: and more)");
  ASSERT_EQ(screen.blocks.size(), 5u);
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(std::get<ScreenTable>(screen.blocks[0]).rows, (Rows{{"1 s"}, {"3 s"}, {"4 s"}}));
  EXPECT_EQ(std::get<ScreenTable>(screen.blocks[1]).rows, (Rows{{"5 s"}, {"4 s"}}));
  const auto& kinds = std::get<StackedBar>(screen.blocks[2]);
  ASSERT_EQ(kinds.parts.size(), 2u);
  EXPECT_EQ(kinds.parts.front().name, "slow");
  EXPECT_EQ(kinds.parts.front().size, 9.0);
  EXPECT_EQ(std::get<StackedBar>(screen.blocks[3]).parts.size(), 1u);
  EXPECT_EQ(std::get<PhraseLine>(screen.blocks[4]).phrases.size(), 2u);
}

TEST(DescribedScreen, HasItsOwnHeadlineAndNotesOrThoseOfTheAnswer) {
  Response answer;
  answer.headline = "it fits";
  answer.notes = {"a note"};
  answer.results = {{"name", "pod"}, {"steps", Items{}}};
  const auto usual = described_screen("Name: {name}\nNote: another\n", answer);
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->headline.front().text, "it fits");
  EXPECT_EQ(usual->notes, (std::vector<std::string>{"a note", "another"}));
  const auto own = described_screen("[missing] Headline: never\nHeadline: {name}\nNotes: none\n", answer);
  EXPECT_EQ(own->headline.front().text, "pod");
  EXPECT_TRUE(own->notes.empty());
  EXPECT_FALSE(described_screen("[name] All: results\n", answer));
}

}  // namespace
}  // namespace assay::report
