#include "assay/ask/launch/document.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::launch {
namespace {

constexpr Style file_styles[] = {Style::toml, Style::yaml, Style::json};

RC_GTEST_PROP(LaunchDocument, WhatIsWrittenIsReadBack, (const std::vector<std::string>& texts, int number)) {
  std::vector<Line> lines{
      {"a.b.number", std::to_string(number), "why"}, {"a.flag", "true", "a flag"}, {"top", "1.5", ""}};
  for (std::size_t i = 0; i < texts.size() && i < 8; ++i) {
    std::string text;
    for (const char c : texts[i])
      if (c >= 0x20 && c < 0x7f) text += c;
    lines.push_back({"a.text" + std::to_string(i), text, "", true});
  }
  for (const Style style : file_styles) {
    const auto given = read_document(style, write_document(style, lines), "test");
    RC_ASSERT(given.has_value());
    RC_ASSERT(given->size() == lines.size());
    for (const Line& line : lines)
      RC_ASSERT(std::any_of(given->begin(), given->end(),
                            [&](const Given& one) { return one.name == line.name && one.value == line.value; }));
  }
}

TEST(LaunchDocument, YamlOfPeopleIsFlat) {
  const auto given = read_document(
      Style::yaml, "a: True  # comment\nb:\n  c: [1, two, 3.0]\n  d: \"x: y\"\ne:\n  - 1\n  - 2\nf:\n", "test");
  ASSERT_TRUE(given);
  const std::pair<std::string, std::string> wanted[] = {
      {"a", "true"}, {"b.c", "1,two,3.0"}, {"b.d", "x: y"}, {"e", "1,2"}, {"f", "null"}};
  ASSERT_EQ(given->size(), std::size(wanted));
  for (std::size_t i = 0; i < given->size(); ++i) {
    EXPECT_EQ((*given)[i].name, wanted[i].first);
    EXPECT_EQ((*given)[i].value, wanted[i].second);
  }
}

TEST(LaunchDocument, BrokenFilesNameThePlace) {
  const auto yaml = read_document(Style::yaml, "a: [1, 2\nb: 3", "job.yml");
  ASSERT_FALSE(yaml);
  EXPECT_NE(yaml.error().where.find("job.yml:"), std::string::npos);
  EXPECT_FALSE(read_document(Style::json, "{", "job.json"));
  EXPECT_FALSE(read_document(Style::toml, "a = ", "job.toml"));
  EXPECT_TRUE(read_document(Style::yaml, "a: &x [*x]\n", "job.yml"));  // an alias of itself ends
}

}  // namespace
}  // namespace assay::launch
