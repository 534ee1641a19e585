#include "assay/model/import/expression.h"

#include <gtest/gtest.h>

#include <map>

namespace assay::model {
namespace {

class Known : public Names {
 public:
  Value value(std::string_view name) override {
    const auto found = values.find(name);
    return found == values.end() ? Value{} : found->second;
  }
  const Json* given(std::string_view key) override { return config.find(key); }

  std::map<std::string, Value, std::less<>> values{
      {"i", {std::int64_t{2}}},
      {"heads", {std::int64_t{32}}},
      {"ratio", {3.5}},
      {"kind", {std::string("gelu")}},
      {"none", Value::of({})},
      {"types", Value::of({{std::string("full")}, {std::string("window")}, {std::string("full")}})}};
  Json config = *parse_json(R"({"a": null, "b": -1, "c": "x", "d": [1], "e": false})", "config.json");
};

Value value(std::string_view text) {
  Known known;
  const auto parsed = Expression::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().what);
  return parsed ? parsed->value(known) : Value{};
}

TEST(Expression, OperatorsBindAsInC) {
  EXPECT_EQ(value("1 + 2 * 3").whole(), 7);
  EXPECT_EQ(value("(1 + 2) * 3 % 5").whole(), 4);
  EXPECT_EQ(value("-heads + 8 / 3").whole(), -30);
  EXPECT_EQ(value("7 - 2 - 1").whole(), 4);
  EXPECT_TRUE(value("1 < 2 && !(3 <= 2) || false").truth());
  EXPECT_EQ(value("false ? 1 : true ? 2 : 3").whole(), 2);
  EXPECT_TRUE(value("i % 2 == 0 && heads != 31").truth());
}

TEST(Expression, WholeNumbersStayWholeAndOthersAreNot) {
  EXPECT_TRUE(value("heads / 3").is_whole());
  EXPECT_DOUBLE_EQ(value("ratio * heads / 3.0").number(), 112.0 / 3.0);
  EXPECT_EQ(value("floor(ratio) + round(ratio)").whole(), 7);
  EXPECT_EQ(value("max(heads, 40) - min(heads, 40)").whole(), 8);
  EXPECT_DOUBLE_EQ(value("sqrt(16)").number(), 4.0);
}

TEST(Expression, ListsAndTexts) {
  EXPECT_EQ(value("types[1]").text(), "window");
  EXPECT_EQ(value("count(types) + count(types, 'full')").whole(), 5);
  EXPECT_TRUE(value("listed(types, 'full', false) && !listed(types, 'window', true)").truth());
  EXPECT_TRUE(value("listed(none, 'full', i == 2)").truth());
  EXPECT_TRUE(value("contains(types, 'window') && one_of(kind, 'relu', 'gelu')").truth());
  EXPECT_EQ(value("other(types, 'full')").text(), "window");
  EXPECT_EQ(value("count(letters('M|*-', '|'))").whole(), 3);
  EXPECT_TRUE(value("starts_with(kind, 'ge') && ends_with(kind, 'lu')").truth());
  EXPECT_EQ(value("largest(none)").whole(), -1);
}

TEST(Expression, WhatAConfigurationSays) {
  EXPECT_TRUE(value("!has(a) && has(b) && is_negative(b) && is_text(c) && is_list(d) && is_false(e)").truth());
  EXPECT_FALSE(value("has(z) || is_text(b)").truth());
}

TEST(Expression, NoValueIsAnError) {
  EXPECT_EQ(value("heads / 0 + heads % 0 + types[9] + unknown + kind").whole(), 0);
  EXPECT_GT(value("1000000000 * 1000000000 * 1000000000 + 1000000000 * 1000000000 * 1000000000").whole(), 0);
}

TEST(Expression, FaultsSayWhatIsWrong) {
  for (const auto& [text, part] :
       {std::pair{"", "expected a name"}, std::pair{"1 +", "expected a name"}, std::pair{"(1", "expected )"},
        std::pair{"1 2", "left over"}, std::pair{"'open", "no end"}, std::pair{"half(2)", "unknown function"},
        std::pair{"max(2)", "has 1 arguments"}, std::pair{"has(1)", "name of a key"}, std::pair{"a ? b", "expected :"},
        std::pair{"1x", "not a number"}}) {
    const auto parsed = Expression::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find(part), std::string::npos) << text << ": " << parsed.error().what;
  }
  EXPECT_FALSE(Expression::parse(std::string(1000, '(')));
  EXPECT_FALSE(Expression::parse(std::string(100'000, '!')));
}

TEST(MessageText, FillsInValues) {
  Known known;
  EXPECT_EQ(MessageText::parse("{heads} heads, {ratio} x {quoted(kind)}")->text(known), "32 heads, 3.5 x \"gelu\"");
  EXPECT_FALSE(MessageText::parse("{heads"));
  EXPECT_FALSE(MessageText::parse("{1 +}"));
}

}  // namespace
}  // namespace assay::model
