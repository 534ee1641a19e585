#include "assay/validate/rows/csv_schema.h"

#include <gtest/gtest.h>

namespace assay::validate {
namespace {

TEST(Fields, WhatIsStatedAndNotUnderstoodIsNamedAndEmptyIsNotStated) {
  using enum Field::Kind;
  constexpr Field fields[] = {
      {"tp", count}, {"ep", whole}, {"time", amount}, {"vpp", count, "max*"}, {"on", words, "y|n"}};
  const auto read = [&](std::string_view row) {
    const auto table = CsvTable::parse("tp,ep,time,vpp,on\n" + std::string(row) + "\n", "t.csv");
    return unread(*table, 0, fields).value_or("");
  };
  for (const char* fine : {",,,,", "8,0,0.125,2,y", " 8 ,1e3,1e-3,max (1 layer/chunk),n"}) EXPECT_EQ(read(fine), "");
  EXPECT_EQ(read("abc,,,,"), "tp \"abc\" is no whole number from 1 to 9e15");
  for (const char* wrong : {"0", "-2048", "1.5", "nan", "1e300", "2 x"})
    EXPECT_EQ(read(std::string(wrong) + ",,,,"), "tp \"" + std::string(wrong) + "\" is no whole number from 1 to 9e15");
  EXPECT_EQ(read(",on,,,"), "ep \"on\" is no whole number from 0 to 9e15");
  EXPECT_EQ(read(",,0,,"), "time \"0\" is no number above 0, up to 9e15");
  EXPECT_EQ(read(",,,most,"), "vpp \"most\" is no whole number from 1 to 9e15");
  EXPECT_EQ(read(",,,,banana"), "on \"banana\" is not understood");
}

}  // namespace
}  // namespace assay::validate
