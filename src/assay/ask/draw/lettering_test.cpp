#include "assay/ask/draw/lettering.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(TextWidth, IsTheSumOfItsLetters) {
  EXPECT_DOUBLE_EQ(text_width("", 12), 0.0);
  EXPECT_DOUBLE_EQ(text_width("100", 10), 3 * 6.36);
  EXPECT_GT(text_width("WWW", 12), text_width("iii", 12));
  EXPECT_GT(text_width("bold", 12, true), text_width("bold", 12));
}

TEST(TextWidth, CountsCharactersAndNotBytes) {
  EXPECT_LT(text_width("\u00b5", 12), 12.0);
  EXPECT_DOUBLE_EQ(text_width("e\u0301", 12), text_width("e", 12));
  EXPECT_DOUBLE_EQ(text_width("\u6f22", 12), 12.0);
}

TEST(Shortened, KeepsWhatFitsAndMarksWhatDoesNot) {
  EXPECT_EQ(shortened("short", 12, 100), "short");
  const std::string cut = shortened("a rather long name", 12, 60);
  EXPECT_EQ(cut.substr(cut.size() - 3), "\u2026");
  EXPECT_LE(text_width(cut, 12), 60.0);
  EXPECT_EQ(shortened("anything", 12, 0), "\u2026");
}

TEST(Shortened, NeverCutsACharacterInTwo) {
  EXPECT_EQ(shortened("\u6f22\u5b57\u6f22\u5b57", 10, 35), "\u6f22\u5b57\u2026");
}

TEST(Wrapped, BreaksAtSpacesAndStaysWithinTheWidth) {
  const auto lines = wrapped("  the quick brown fox  jumps over the lazy dog ", 12, 110, 9);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines.front(), "the quick brown");
  EXPECT_EQ(lines.back(), "the lazy dog");
  for (const std::string& line : lines) EXPECT_LE(text_width(line, 12), 110.0) << line;
}

TEST(Wrapped, PutsTheRestOfTheTextIntoTheLastLine) {
  const auto lines = wrapped("one two three four five six", 12, 70, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[1].find("\u2026"), std::string::npos);
}

TEST(Wrapped, ShortensAWordThatIsWiderThanTheLine) {
  const auto lines = wrapped("incomprehensibilities ok", 12, 60, 3);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("\u2026"), std::string::npos);
  EXPECT_EQ(lines[1], "ok");
}

TEST(Wrapped, NothingGivesNoLines) {
  EXPECT_TRUE(wrapped("", 12, 100, 3).empty());
  EXPECT_TRUE(wrapped("   ", 12, 100, 3).empty());
  EXPECT_TRUE(wrapped("text", 12, 100, 0).empty());
}

TEST(FirstCodePoint, ReadsBrokenBytesOneAtATime) {
  EXPECT_EQ(first_code_point("\u20ac").value, U'\u20ac');
  EXPECT_EQ(first_code_point("\u20ac").length, 3u);
  for (const char* broken : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(first_code_point(broken).value, U'\ufffd');
    EXPECT_EQ(first_code_point(broken).length, 1u);
  }
}

}  // namespace
}  // namespace assay::draw
