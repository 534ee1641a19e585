#include "assay/lab/validate/rows/csv_schema.h"

#include <fmt/format.h>
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

TEST(Fields, AreReadAsPeopleWriteThem) {
  using enum Field::Kind;
  constexpr Field fields[] = {
      {"batch", amount, "max", "seqs|sequences"}, {"vpp", ways}, {"on", yes_no}, {"how", words, "full|none"}};
  const auto read = [&](std::string_view row) {
    auto table = *CsvTable::parse("batch,vpp,on,how\n" + std::string(row) + "\n", "t.csv");
    tidy(table, fields);
    std::string out(unread(table, 0, fields).value_or(""));
    for (const char* column : {"batch", "vpp", "on", "how"}) out += "|" + std::string(table.text(0, column));
    return out;
  };
  EXPECT_EQ(read("\"1,024\",none,Yes,FULL"), "|1024|1|y|full");
  EXPECT_EQ(read("128 Seqs,0,off,N/A"), "|128|1|n|");
  EXPECT_EQ(read("MAX,2,true,-"), "|max|2|y|");
  EXPECT_EQ(read("\"1,02\",,,"), "batch \"1,02\" is no number above 0, up to 9e15|1,02|||");
  EXPECT_EQ(read("~128,,,"), "batch \"~128\" is no number above 0, up to 9e15|~128|||");
  EXPECT_EQ(read("128 tokens,,,"), "batch \"128 tokens\" is no number above 0, up to 9e15|128 tokens|||");
}

TEST(Fields, PartsOfAPlanMayStandInOneField) {
  constexpr NamedWays known[] = {{"tp", "tp"}, {"pp", "pp"}, {"ep", "ep"}};
  const auto read = [&](std::string_view row) {
    auto table = *CsvTable::parse("tp,pp,ep\n" + std::string(row) + "\n", "t.csv");
    spread_ways(table, "tp", known);
    return fmt::format("{}|{}|{}", table.text(0, "tp"), table.text(0, "pp"), table.text(0, "ep"));
  };
  EXPECT_EQ(read("TP8 PP4,,"), "8|4|");
  EXPECT_EQ(read("\"tp=8,pp=4,ep=2\",4,"), "8|4|2");
  EXPECT_EQ(read("TP8,,"), "8||");
  EXPECT_EQ(read("8,4,2"), "8|4|2");
  EXPECT_EQ(read("TP8 PP4,2,"), "TP8 PP4|2|") << "a contradiction";
  EXPECT_EQ(read("moe_tp=8,,"), "moe_tp=8||") << "not one of the parts";
}

}  // namespace
}  // namespace assay::validate
