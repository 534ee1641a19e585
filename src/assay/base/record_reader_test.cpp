#include "assay/base/record_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

using Faults = std::vector<std::string>;

/// All faults of a file as "where | what | hint".
template <class F>
Faults faults(std::string_view text, F read) {
  RecordFile file{.name = "f.toml", .keys_hint = "see the page"};
  const auto whole = read_record(text, file, read);
  Faults all;
  if (whole) return all;
  const auto add = [&](const Error& e) { all.push_back(e.where + " | " + e.what + " | " + e.hint); };
  add(whole.error());
  for (const Error& error : whole.error().also) add(error);
  return all;
}

TEST(RecordReader, EveryKindOfFieldIsRead) {
  std::string name, day;
  std::vector<std::string> list;
  std::optional<std::string> absent;
  bool flag = false;
  std::int64_t count = 0;
  double number = 0, low = 0, high = 0;
  Seconds time;
  std::optional<Bytes> size;
  FitRange<double> range;
  std::array<Seconds, 2> pair{};
  const constexpr std::string_view names[] = {"slow", "fast"};
  EXPECT_EQ(faults(R"(name = "x"
day = 2026-11-01
list = ["a", "b"]
flag = true
count = 3
number = 0.5
time = "2 us"
size = "3 MB"
seen = [1, 8]
[source.fit]
title = "t"
date = 2026-11-01
[range]
source = "fit"
start = 1
low = 0.5
high = 2
[more]
source = "fit"
pair = { slow = "2 us", fast = "1 us" }
)",
                   [&](RecordReader& reader) {
                     reader.sources();
                     reader.text("name", name);
                     reader.text("absent", absent);
                     reader.date("day", day);
                     reader.texts("list", list);
                     reader.flag("flag", flag);
                     reader.count("count", count);
                     reader.number("number", number);
                     reader.number("time", time);
                     reader.number("size", size);
                     reader.span("seen", low, high);
                     reader.range("range", range);
                     reader.table("more", [&](RecordReader& inner) { inner.numbers("pair", names, pair); });
                   }),
            Faults{});
  EXPECT_EQ(name, "x");
  EXPECT_EQ(day, "2026-11-01");
  EXPECT_EQ(list, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(absent);
  EXPECT_TRUE(flag);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(number, 0.5);
  EXPECT_DOUBLE_EQ(time.in(1_us), 2.0);
  EXPECT_DOUBLE_EQ(size->in(1_MB), 3.0);
  EXPECT_EQ(high, 8.0);
  EXPECT_TRUE(range.is_fitted());
  EXPECT_DOUBLE_EQ(pair[1].in(1_us), 1.0);
}

TEST(RecordReader, EveryFaultIsReportedWithItsPlaceAndARemedy) {
  double share = 0, number = 0;
  Seconds time;
  std::string name;
  EXPECT_EQ(
      faults("[source.fit]\ntitle = \"t\"\n[a]\nsource = \"fits\"\nshare = 2\ntime = 3\nnumbr = 1\n[b]\n",
             [&](RecordReader& reader) {
               reader.sources();
               reader.text("name", name);
               reader.table("a", [&](RecordReader& a) {
                 a.share("share", share);
                 a.number("number", number);
                 a.number("time", time);
               });
             }),
      (Faults{"f.toml:1:1: name | this key is required | see the page",
              "f.toml:4:1: a.source | unknown source \"fits\" | did you mean fit?",
              "f.toml:5:1: a.share | 2 is not a share from 0.0001 to 1.25 | ",
              "f.toml:3:1: a.number | this key is required | see the page",
              "f.toml:6:1: a.time | this number has no unit; expected s | write the unit in the text: \"6.25 us\"",
              "f.toml:7:1: a.numbr | unknown key \"numbr\" | did you mean number?",
              "f.toml:8:1: b | unknown key \"b\" | did you mean a?"}));
  EXPECT_EQ(share, 0.0);
}

TEST(RecordReader, ATableOfNumbersNamesItsSource) {
  const auto read = [](RecordReader& reader) {
    reader.sources();
    reader.each_table("kinds", [](const std::string&, RecordReader& kind) {
      double number = 0;
      kind.number("number", number);
    });
  };
  const std::string source = "[source.fit]\ntitle = \"t\"\n";
  EXPECT_EQ(faults(source + "[kinds.a]\nsource = \"fit\"\nnumber = 1\n[kinds.b]\nnumber = 1\n", read),
            (Faults{"f.toml:6:1: kinds.b.source | these numbers have no source | source = \"KEY\" of a [source.KEY] "
                    "table"}));
  EXPECT_TRUE(faults(source, read).empty());
}

TEST(RecordReader, NumbersBelongToNamesThatExist) {
  const std::vector<std::string_view> names = {"hopper", "tpu"};
  std::vector<char> stated(2);
  std::vector<double> a(2);
  const auto read = [&](RecordReader& reader) { reader.numbers_of("a", "family", names, stated, a); };
  EXPECT_TRUE(faults("a = { tpu = 2 }\n", read).empty());
  EXPECT_EQ(stated, (std::vector<char>{0, 1}));
  EXPECT_EQ(a[1], 2.0);
  EXPECT_EQ(faults("a = { hoper = 3, tpu = 1 }\n", read),
            (Faults{"f.toml:1:7: a.hoper | there is no family \"hoper\" | did you mean hopper?"}));
}

TEST(RecordReader, AGivenNumberKnowsWhereItWasRead) {
  Given<double> one;
  Given<std::array<double, 2>> two;
  const auto read = [&](RecordReader& reader) {
    reader.sources();
    reader.table("kinds", [&](RecordReader& inner) {
      static constexpr std::string_view names[] = {"x", "y"};
      inner.number("one", one);
      inner.numbers("two", names, two);
    });
  };
  EXPECT_TRUE(faults("[source.fit]\ntitle = \"t\"\n[kinds]\nsource = \"fit\"\none = 3\ntwo = { x = 1, y = 2 }\n", read)
                  .empty());
  EXPECT_EQ(one.value, 3.0);
  EXPECT_EQ(one.source, "f.toml:5 (fit)");
  EXPECT_EQ(two.value[1], 2.0);
  EXPECT_EQ(two.source, "f.toml:6 (fit)");
  EXPECT_EQ((one * one).source, "f.toml:5 (fit) * f.toml:5 (fit)");
}

}  // namespace
}  // namespace assay
