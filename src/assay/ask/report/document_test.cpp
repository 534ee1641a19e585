#include "assay/ask/report/document.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay::report {
namespace {

const Value& sample_value() {
  static const Value root(Members{
      {"chips", 16},
      {"share", 0.5},
      {"fits", true},
      {"name", "tpu-v5e"},
      {"price", Value()},
      {"memory",
       Members{
           {"hbm",
            Members{{"bandwidth",
                     Value(Sourced<BytesPerSecond>{
                         820_GB_per_s, "book", "a note", {{819_GB_per_s, "gcloud"}, {810_GB_per_s, "book-2025"}}})}}}}},
      {"levels", Items{Members{{"degree", 8}}, Members{{"degree", 32}}}},
      {"grid", Items{Items{1, 2}, Items{3, 4}}}});
  return root;
}

std::optional<double> number(std::string_view path) {
  const auto value = find_path(sample_value(), path);
  return value ? numeric(*value) : std::nullopt;
}

TEST(Document, APathLeadsThroughObjectsAndLists) {
  EXPECT_EQ(number("chips"), 16);
  EXPECT_EQ(number("share"), 0.5);
  EXPECT_EQ(number("memory.hbm.bandwidth"), 820e9);
  EXPECT_EQ(number("levels[1].degree"), 32);
  EXPECT_EQ(number("grid[1][0]"), 3);
  EXPECT_EQ(find_path(sample_value(), "levels")->items()->size(), 2U);
}

TEST(Document, WhatOtherSourcesSayIsFoundByNameOrPlace) {
  EXPECT_EQ(number("memory.hbm.bandwidth.also[gcloud]"), 819e9);
  EXPECT_EQ(number("memory.hbm.bandwidth.also[book-2025]"), 810e9);
  EXPECT_EQ(number("memory.hbm.bandwidth.also[1]"), 810e9);
  EXPECT_FALSE(find_path(sample_value(), "memory.hbm.bandwidth.also[2]"));
  EXPECT_FALSE(find_path(sample_value(), "memory.hbm.bandwidth.also[nobody]"));
  EXPECT_FALSE(find_path(sample_value(), "chips.also[0]"));
}

TEST(Document, APathToNothingFindsNothing) {
  for (const char* path : {"", ".", "chip", "chips.x", "levels[2]", "levels[-1]", "levels[0.5]", "levels[1e0]",
                           "levels[]", "levels[0", "levels[0]x", "levels[0].", "levels[99999999999999999999999]",
                           "levels.degree", "name[0]", "[0]", "memory..hbm"})
    EXPECT_FALSE(find_path(sample_value(), path)) << path;
}

TEST(Document, OnlyNumbersAreNumeric) {
  EXPECT_EQ(numeric(Value(3)), 3);
  EXPECT_EQ(numeric(Value(2.5)), 2.5);
  EXPECT_EQ(numeric(Value(1_ms)), 1e-3);
  for (const Value& value : {Value(), Value(true), Value("3"), Value(Items{}), Value(Members{})})
    EXPECT_FALSE(numeric(value));
}

TEST(Document, ScalarsReadAsPeopleWriteThem) {
  EXPECT_EQ(scalar_text(Value(true)), "yes");
  EXPECT_EQ(scalar_text(Value(2097152)), "2,097,152");
  EXPECT_EQ(scalar_text(Value(0.05)), "0.05");
  EXPECT_EQ(scalar_text(Value(3.35_TB_per_s)), "3.35 TB/s");
  EXPECT_EQ(scalar_text(Value()), "-");
  EXPECT_EQ(scalar_text(Value(Items{1})), "");
  EXPECT_EQ(scalar_text(Value(std::numeric_limits<double>::infinity())), "infinite");
}

TEST(Document, ARangeHasThreeMembers) {
  const Value value(range(1_s, 2_s, 3_s));
  EXPECT_EQ(numeric(*value.find("lower")), 1);
  EXPECT_EQ(numeric(*value.find("estimate")), 2);
  EXPECT_EQ(numeric(*value.find("upper")), 3);
}

TEST(Document, ASourcedNumberKeepsItsSourceAndItsRivals) {
  const std::optional<Value> value = find_path(sample_value(), "memory.hbm.bandwidth");
  const auto& quantity = std::get<QuantityValue>(value->data());
  EXPECT_EQ(quantity.source, "book");
  EXPECT_EQ(quantity.note, "a note");
  EXPECT_EQ(quantity.also.size(), 2U);
  const Value count(Sourced<std::int64_t>{8, "book", "", {}});
  EXPECT_EQ(std::get<QuantityValue>(count.data()).quantity, AnyQuantity(8, Dim{}));
}

}  // namespace
}  // namespace assay::report
