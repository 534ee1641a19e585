#include "assay/base/json_scanner.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(JsonScanner, VisitsWhatIsAskedForAndSkipsTheRest) {
  JsonScanner scanner(R"({"a": [1, {"b": "]}"}], "n": -2.5e3, "s": "x\"y", "t": true})");
  std::string_view number, text;
  scanner.object([&](std::string_view key) {
    if (key == "n") number = scanner.number();
    if (key == "s") text = scanner.string();
  });
  scanner.finish();
  EXPECT_FALSE(scanner.failed());
  EXPECT_EQ(number, "-2.5e3");
  EXPECT_EQ(unescaped(text), "x\"y");
}

TEST(JsonScanner, SaysWhereATextIsCutOff) {
  JsonScanner scanner("{\"a\": [1,\n  {\"b\": \"never en");
  scanner.object([](std::string_view) {});
  EXPECT_TRUE(scanner.failed());
  const Error fault = scanner.fault("x.json");
  EXPECT_EQ(fault.where.substr(0, 9), "x.json:2:");
  EXPECT_NE(fault.hint.find("cut off"), std::string::npos);
}

TEST(JsonScanner, RefusesDeepNestingWhereItIsVisited) {
  std::string deep(100000, '[');
  JsonScanner scanner(deep);
  const auto visit = [&](auto& self) -> void { scanner.array([&] { self(self); }); };
  visit(visit);
  EXPECT_TRUE(scanner.failed());
  JsonScanner skipping(deep);  // skipping needs no stack
  skipping.skip();
  EXPECT_TRUE(skipping.failed());
}

TEST(JsonScanner, DecodesEscapesAndPairsOfSurrogates) {
  EXPECT_EQ(unescaped(R"(a\n\u00e9\ud83d\ude00\q)"), "a\n\u00e9\U0001F600q");
  EXPECT_EQ(unescaped(R"(\ud83d)"), "\uFFFD");
  EXPECT_EQ(unescaped(R"(\u12)"), "\\u12");
}

TEST(JsonScanner, ReportsTextBehindTheEnd) {
  JsonScanner scanner("[] x");
  scanner.array([] {});
  scanner.finish();
  EXPECT_TRUE(scanner.failed());
}

}  // namespace
}  // namespace assay
