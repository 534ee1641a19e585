#include "assay/base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <clocale>
#include <cmath>
#include <string>

namespace assay {
namespace {

/// Any finite double, from its bits, so that tiny, huge and negative ones are as likely as others.
double any_finite() {
  const double value = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  RC_PRE(std::isfinite(value));
  return value;
}

constexpr Dim named_dims[] = {Flops::dim,
                              Bytes::dim,
                              Seconds::dim,
                              Dollars::dim,
                              Joules::dim,
                              Tokens::dim,
                              Hertz::dim,
                              FlopsPerSecond::dim,
                              BytesPerSecond::dim,
                              FlopsPerByte::dim,
                              DollarsPerSecond::dim,
                              FlopsPerDollar::dim,
                              Watts::dim,
                              TokensPerSecond::dim,
                              Dim{}};

Dim any_dim() { return named_dims[*rc::gen::inRange<std::size_t>(0, std::size(named_dims))]; }

TEST(Text, ControlCharactersAreShownAndDoNothing) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\n\tc"), "a\\x1b[31mb\\x07\n\tc");
  EXPECT_EQ(printable("x\u009b1m \u202e y \u00e9 \u2588"), "x\\xc2\\x9b1m \\xe2\\x80\\xae y \u00e9 \u2588");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
}

TEST(Number, OnlyAWholeFiniteDecimalIsOne) {
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  EXPECT_EQ(parse_number("-.5"), -0.5);
  EXPECT_EQ(parse_number("+2."), 2.0);
  for (const char* text : {"", " 1", "1 ", "0x10", "nan", "inf", "1e400", "1e", "--1", ".", "1,5", "1_000"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(Number, TheLocaleOfTheProcessDoesNotMatter) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  if (!std::setlocale(LC_NUMERIC, "de_DE.UTF-8") && !std::setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
    GTEST_SKIP() << "no locale with a decimal comma is installed";
  const auto parsed = parse_number("3.35");
  const std::string printed = exact_number(3.35);
  std::setlocale(LC_NUMERIC, before.c_str());
  EXPECT_EQ(parsed, 3.35);
  EXPECT_EQ(printed, "3.35");
}

RC_GTEST_PROP(Number, ExactTextReadsBackAsTheSameBits, ()) {
  const double value = any_finite();
  const auto parsed = parse_number(exact_number(value));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(std::bit_cast<std::uint64_t>(*parsed) == std::bit_cast<std::uint64_t>(value));
}

TEST(Count, SuffixesAreDecimalOrBinary) {
  EXPECT_EQ(*parse_count("128k", ""), 128'000);
  EXPECT_EQ(*parse_count("4Mi", ""), 4'194'304);  // 4 x 1024 x 1024
  EXPECT_EQ(*parse_count("1.5B", ""), 1'500'000'000);
  EXPECT_EQ(*parse_count(" 1e6 ", ""), 1'000'000);
  EXPECT_EQ(*parse_count("1.5 Ki", ""), 1536);
}

TEST(Count, WhatIsNoCountIsRefusedWithTheRule) {
  EXPECT_EQ(parse_count("0", "--tp").error().what, "a count must be at least 1, got \"0\"");
  EXPECT_FALSE(parse_count("0", "--tp").error().hint.empty());
  EXPECT_EQ(parse_count("2.5", "--tp").error().hint, "nearest is 3");
  EXPECT_EQ(parse_count("-4", "--tp").error().where, "--tp");
  EXPECT_EQ(parse_count("1.5", "").error().what, "a count must be whole, got \"1.5\"");
  EXPECT_EQ(parse_count("1e18", "").error().what, "\"1e18\" is too large for a count");
  for (const char* text : {"", "k", "4 Mi B", "4ki", "4m", "0x4", "nan", "1e999"})
    EXPECT_FALSE(parse_count(text, "")) << text;
}

RC_GTEST_PROP(Count, ThousandthsOfAThousandAreWhole, ()) {
  // 1.001k is 1001, although 1.001 x 1000 is 1000.9999999999999 in doubles.
  const auto count = *rc::gen::inRange<std::int64_t>(1, 10'000'000);
  const auto parsed = parse_count(exact_number(static_cast<double>(count) / 1000.0) + "k", "");
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == count);
}

TEST(ParseQuantity, UnitsAreReadWithTheirPrefixes) {
  EXPECT_EQ(*parse_quantity("3.35 TB/s", ""), AnyQuantity(3.35_TB_per_s));
  EXPECT_EQ(*parse_quantity("80GiB", ""), AnyQuantity(80_GiB));
  EXPECT_EQ(*parse_quantity("400 Gbit/s", ""), AnyQuantity(50_GB_per_s));  // 400 / 8
  EXPECT_EQ(parse_quantity("1.2 USD/h", "")->value, 1.2 / 3600.0);
  EXPECT_EQ(*parse_quantity("1024 FLOP/cycle", ""), AnyQuantity(1024_FLOP));
  EXPECT_EQ(*parse_quantity("2 days", ""), AnyQuantity(48_h));
  EXPECT_EQ(*parse_quantity("2 \u00b5s", ""), AnyQuantity(2_us));
  EXPECT_EQ(*parse_quantity("2 \u03bcs", ""), AnyQuantity(2_us));
  EXPECT_EQ(*parse_as<Seconds>("30d", ""), 30_day);
  EXPECT_EQ(*parse_as<Seconds>("1.5 week", ""), 252_h);
  EXPECT_FALSE(parse_as<Seconds>("2h30m", ""));
  EXPECT_FALSE(parse_as<Bytes>("2 d", ""));
  EXPECT_FALSE(parse_quantity("1 FLOP/d", ""));
  EXPECT_EQ(*parse_quantity("1e3 B", ""), AnyQuantity(1_kB));
  EXPECT_EQ(parse_quantity("1 EB", "")->value, 1e18);  // not an exponent
}

TEST(ParseQuantity, AWrongUnitSaysWhatToWrite) {
  EXPECT_EQ(parse_quantity("5 Gbps", "x").error().hint, "write Gbit/s or GB/s");
  EXPECT_EQ(parse_quantity("5 TFLOPS", "x").error().hint, "write FLOP for a count, TFLOP/s for a rate");
  EXPECT_EQ(parse_quantity("5 gib", "x").error().what, "unknown unit \"gib\" in \"5 gib\"");
  EXPECT_TRUE(parse_quantity("5 gib", "x").error().hint.starts_with("did you mean GiB")) << "hint";
  EXPECT_EQ(parse_quantity("five GB", "x").error().what, "\"five GB\" does not start with a number");
}

TEST(ParseQuantity, ASuggestionNamesNoUnitTwice) {
  EXPECT_EQ(parse_quantity("5 flop", "").error().hint, "did you mean FLOP?");
}

TEST(ParseQuantity, AUnitMissingBesideASlashIsSaid) {
  for (const char* text : {"5 /s", "5 GB/", "5 GB//s", "5 /"})
    EXPECT_EQ(parse_quantity(text, "").error().what, "a unit is missing next to / in " + in_quotes(text));
}

TEST(ParseQuantity, ExponentsOfTheDimensionDoNotWrapAround) {
  // 256 seconds below the line would be none in eight bits.
  std::string text = "1 B";
  for (int i = 0; i < 256; ++i) text += "/s";
  EXPECT_FALSE(parse_quantity(text, ""));
}

TEST(ParseQuantity, TheDimensionMustBeTheOneWanted) {
  EXPECT_EQ(*parse_as<Bytes>("16 GB", ""), 16_GB);
  EXPECT_EQ(parse_as<Bytes>("16", "--m").error().what, "\"16\" has no unit; expected B");
  EXPECT_EQ(parse_as<Bytes>("16 GB/s", "--m").error().what, "\"16 GB/s\" is in B/s; expected B");
  EXPECT_EQ(parse_quantity("0.5", Dim{}, "")->value, 0.5);
  EXPECT_EQ(parse_quantity("5 s", Dim{}, "").error().what, "\"5 s\" is in s; expected a plain number");
}

RC_GTEST_PROP(ParseQuantity, TheExactTextInTheBaseUnitReadsBack, ()) {
  const AnyQuantity quantity(any_finite(), any_dim());
  const auto parsed = parse_quantity(exact_number(quantity.value) + " " + base_unit(quantity.dim), quantity.dim, "");
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == quantity);
}

RC_GTEST_PROP(ParseQuantity, WhatPeopleReadIsRightToFourDigits, ()) {
  const double exponent = *rc::gen::inRange(-12'000, 20'000) / 1000.0;
  const double sign = *rc::gen::element(-1.0, 1.0);
  const AnyQuantity quantity(sign * std::pow(10.0, exponent), any_dim());
  RC_PRE(quantity.dim.usd != 1);  // money is rounded to cents
  const std::string text = human(quantity);
  const auto parsed = parse_quantity(text, quantity.dim, "");
  RC_LOG() << text;
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(std::abs(parsed->value / quantity.value - 1.0) < 5.001e-4);
}

RC_GTEST_PROP(ParseQuantity, AnyTextIsReadOrRefusedWithItsPlace, (const std::string& noise)) {
  const std::string text = *rc::gen::element<std::string>("", "1", "1 G", "1e") + noise;
  const auto parsed = parse_quantity(text, "here");
  RC_ASSERT((parsed ? std::isfinite(parsed->value) : parsed.error().where == "here"));
}

TEST(Human, FourDigitsAndAPrefixThatFits) {
  EXPECT_EQ(human(40.2244_us), "40.22 \u00b5s");
  EXPECT_EQ(human(3.35_TB_per_s), "3.35 TB/s");
  EXPECT_EQ(human(999.96_us), "1 ms");  // rounding carries into the next prefix
  EXPECT_EQ(human(5_h), "5 h");
  EXPECT_EQ(human(3_day), "3 days");
  EXPECT_EQ(human(0_s), "0 s");
  EXPECT_EQ(human(1_GB / 0_s), "infinite B/s");
  EXPECT_EQ(human(AnyQuantity(0.5, Dim{})), "0.5");
}

TEST(Human, EnergyIsInWattHoursFromAThousandOn) {
  EXPECT_EQ(human(Joules(1.7e13)), "4.722 GWh");
  EXPECT_EQ(human(Joules(3.6e6)), "1 kWh");
  EXPECT_EQ(human(Joules(2e6)), "2 MJ");
}

TEST(Human, MoneyIsInCentsAboveTenOfThem) {
  EXPECT_EQ(human(2.5_USD_per_h), "2.50 USD/h");
  EXPECT_EQ(human(1234567.8_USD), "1,234,568 USD");
  EXPECT_EQ(human(0.0042_USD), "0.0042 USD");
  EXPECT_EQ(human(AnyQuantity(-1e30, Dollars::dim)), "-9,000,000,000,000,000,000 USD");
}

TEST(Human, ABinaryPrefixIsExact) {
  EXPECT_EQ(human(80_GiB), "80 GiB");
  EXPECT_EQ(human(80_GB), "80 GB");
  EXPECT_EQ(human(3.125_GiB), "3.125 GiB");
  EXPECT_EQ(human(100.25_GiB), "107.6 GB");  // 100.2 GiB would be less: 100.25 x 1.0737 = 107.64
}

RC_GTEST_PROP(Human, ABinaryPrefixReadsBackAsTheSameBytes, ()) {
  const Bytes bytes =
      static_cast<double>(*rc::gen::inRange(1, 500'000)) * *rc::gen::element(256_B, 1_KiB, 256_KiB, 1_GiB);
  const std::string text = human(bytes);
  RC_LOG() << text;
  if (text.ends_with("iB")) RC_ASSERT(parse_as<Bytes>(text, "").value() == bytes);
}

RC_GTEST_PROP(Human, CountsAreGroupedByThree, (std::int64_t value)) {
  std::string text = human_count(value);
  const std::string digits = text.substr(text.front() == '-' ? 1 : 0);
  for (std::size_t i = 0; i < digits.size(); ++i) RC_ASSERT((digits[i] == ',') == ((digits.size() - i) % 4 == 0));
  std::erase(text, ',');
  RC_ASSERT(text == std::to_string(value));
}

TEST(Names, SplittingTrimsAndKeepsEmptyParts) {
  EXPECT_EQ(split(" a, b ,,c", ','), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(join(split("16x20x28", 'x'), " * "), "16 * 20 * 28");
}

TEST(Names, TheNearestOnesComeFirst) {
  const std::vector<std::string> chips{"tpu-v5e", "tpu-v5p", "h100-sxm", "h100-pcie", "mi300x"};
  EXPECT_EQ(nearest("h100", chips), (std::vector<std::string>{"h100-sxm", "h100-pcie"}));
  EXPECT_EQ(nearest("TPU-v5P", chips).front(), "tpu-v5p");
  EXPECT_EQ(nearest("h100-sxn", chips).front(), "h100-sxm");
  EXPECT_EQ(nearest("h010-sxm", chips).front(), "h100-sxm");  // two letters swapped are one mistake
  EXPECT_TRUE(nearest("quokka", chips).empty());
  EXPECT_TRUE(nearest("h100", {}).empty());
}

RC_GTEST_PROP(Names, NearestGivesAtMostThreeOfTheCandidates,
              (const std::string& name, const std::vector<std::string>& candidates)) {
  const auto found = nearest(name, candidates);
  RC_ASSERT(found.size() <= 3u);
  for (const std::string& one : found) RC_ASSERT(std::count(candidates.begin(), candidates.end(), one) > 0);
}

RC_GTEST_PROP(Names, OneMistakeIsForgiven, ()) {
  const std::vector<std::string> verbs{"roofline", "collective", "completion", "validate", "measure", "systolic"};
  const std::string wanted = *rc::gen::elementOf(verbs);
  std::string typed = wanted;
  const auto at = *rc::gen::inRange<std::size_t>(0, wanted.size());
  const char letter = *rc::gen::inRange('a', 'z');
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      typed.erase(at, 1);
      break;
    case 1:
      typed.insert(at, 1, letter);
      break;
    default:
      typed[at] = letter;
  }
  const auto found = nearest(typed, verbs);
  RC_ASSERT(!found.empty());
  RC_ASSERT(found.front() == wanted);
}

TEST(Names, ASuggestionAsksOrListsWhatIsKnown) {
  const std::vector<std::string> names{"torus", "switched", "direct"};
  EXPECT_EQ(suggestion("tours", names), "did you mean torus?");
  EXPECT_EQ(suggestion("zzzzzzzz", names), "known: torus, switched, direct");
  EXPECT_EQ(suggestion("x", {}), "");
  EXPECT_EQ(suggestion("aaaaaaaaaa", std::vector<std::string>(20, "zz")),
            "known: zz, zz, zz, zz, zz, zz, zz, zz, zz, zz, zz, zz, ...");
}

TEST(Names, QuotedTextIsSafeToPrint) {
  EXPECT_EQ(in_quotes("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(in_quotes("\x1b[31m\n"), R"("\x1b[31m\x0a")");
  EXPECT_EQ(in_quotes("\xc3\xbc"), R"("\xc3\xbc")");
  EXPECT_EQ(in_quotes(std::string(61, 'a')), "\"" + std::string(60, 'a') + "...\"");
}

RC_GTEST_PROP(Names, QuotedTextIsShortPrintableAscii, (const std::string& text)) {
  const std::string quoted = in_quotes(text);
  RC_ASSERT(quoted.size() <= 60u * 4u + 5u);
  for (char c : quoted) RC_ASSERT(c >= ' ' && c <= '~');
}

TEST(Utf8, WhatIsMalformedIsFound) {
  EXPECT_EQ(invalid_utf8("plain \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80"), std::nullopt);
  EXPECT_EQ(invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(invalid_utf8("a\xc3"), 1u);             // cut short
  EXPECT_EQ(invalid_utf8("\xc0\xaf"), 0u);          // overlong '/'
  EXPECT_EQ(invalid_utf8("\xe0\x80\xaf"), 0u);      // overlong '/' in three bytes
  EXPECT_EQ(invalid_utf8("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(invalid_utf8("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(invalid_utf8("\x80"), 0u);              // a continuation alone
}

RC_GTEST_PROP(Utf8, EveryCodePointIsAcceptedAndEveryCutIsFound, ()) {
  const auto point = *rc::gen::suchThat(rc::gen::inRange<unsigned>(0x80, 0x110000),
                                        [](unsigned p) { return p < 0xd800 || p > 0xdfff; });
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  std::string text = "ab";
  if (point < 0x800)
    text += {static_cast<char>(0xc0 | (point >> 6)), tail(0)};
  else if (point < 0x10000)
    text += {static_cast<char>(0xe0 | (point >> 12)), tail(6), tail(0)};
  else
    text += {static_cast<char>(0xf0 | (point >> 18)), tail(12), tail(6), tail(0)};
  RC_ASSERT(!invalid_utf8(text));
  text.pop_back();
  RC_ASSERT(invalid_utf8(text) == std::optional<std::size_t>(2));
}

}  // namespace
}  // namespace assay
