#include "assay/base/toml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace assay {
namespace {

const char document[] = R"(# a comment: ü
id = "h100"
count = 132
share = 0.5
fma = true
seen = 2026-11-01

[memory.hbm]
capacity = { value = "80 GiB", source = "datasheet" }

[network]
pod = [16, 20]

[[price]]
value = 1
[[price]]
value = 2
)";

Error refused(std::string_view text) {
  auto parsed = parse_toml(text, "f.toml");
  if (parsed) return {Error::Kind::internal, "", "it was accepted", "", {}};
  return parsed.error();
}

TEST(Toml, EveryKindIsRead) {
  const auto root = parse_toml(document, "f.toml");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("id")->text, "h100");
  EXPECT_EQ(root->find("count")->integer, 132);
  EXPECT_EQ(root->find("count")->number, 132.0);
  EXPECT_EQ(root->find("share")->kind, Toml::Kind::number);
  EXPECT_EQ(root->find("share")->number, 0.5);
  EXPECT_TRUE(root->find("fma")->boolean);
  EXPECT_EQ(root->find("seen")->kind, Toml::Kind::date);
  EXPECT_EQ(root->find("seen")->text, "2026-11-01");
  EXPECT_EQ(root->find("network")->find("pod")->items.at(1).integer, 20);
  EXPECT_EQ(root->find("price")->items.at(1).find("value")->integer, 2);
  EXPECT_EQ(root->find("nothing"), nullptr);
}

TEST(Toml, EveryValueKnowsItsPlace) {
  const auto root = parse_toml(document, "f.toml");
  ASSERT_TRUE(root);
  const auto place = [](const Toml* node) { return std::pair(node->line, node->column); };
  EXPECT_EQ(place(root->find("count")), std::pair(3, 1));   // the key of a scalar
  EXPECT_EQ(place(root->find("memory")), std::pair(8, 1));  // the header that brings it in
  EXPECT_EQ(place(root->find("memory")->find("hbm")->find("capacity")), std::pair(9, 12));  // the brace
  EXPECT_EQ(place(&root->find("price")->items.at(1)), std::pair(16, 1));
}

TEST(Toml, MembersKeepTheOrderOfTheFile) {
  const auto root = parse_toml("zebra = 1\napple = 2\n[m]\nb = 1\na = 2\n", "f.toml");
  ASSERT_TRUE(root);
  ASSERT_EQ(root->members.size(), 3u);
  EXPECT_EQ(root->members[0].first, "zebra");
  EXPECT_EQ(root->members[1].first, "apple");
  EXPECT_EQ(root->find("m")->members[0].first, "b");
}

TEST(Toml, AnEmptyDocumentIsAnEmptyTable) {
  const auto root = parse_toml("", "f.toml");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->kind, Toml::Kind::table);
  EXPECT_TRUE(root->members.empty());
}

TEST(Toml, AFaultIsPlacedByLineAndColumn) {
  EXPECT_EQ(refused("a = 1\nb = \n").where, "f.toml:2:5");
  EXPECT_EQ(refused("a = 1\na = 2\n").where, "f.toml:2:5");  // the second one
  EXPECT_EQ(refused("[m]\n[n]\n[m]\n").where, "f.toml:3:1");
  EXPECT_EQ(refused("size = 80 GiB\n").where, "f.toml:1:11");
  EXPECT_EQ(refused("a = \"cut short").where, "f.toml:1:15");
  EXPECT_EQ(refused("big = 99999999999999999999\n").where.substr(0, 9), "f.toml:1:");
}

TEST(Toml, BytesThatAreNoTextAreRefusedWhereTheyStand) {
  EXPECT_EQ(refused("a = 1\nb = \"\xff\"\n").where, "f.toml:2:6");
  EXPECT_EQ(refused("a = 1\nb = \"\xff\"\n").what, "the text is not UTF-8");
  EXPECT_EQ(refused(std::string_view("a = \"\0\"", 7)).what, "control byte 0x00");
  EXPECT_EQ(refused("a = 1\n\x1b[31m").where, "f.toml:2:1");
  EXPECT_EQ(refused("a = \"\x7f\"").what, "control byte 0x7f");
  EXPECT_EQ(refused("PK\x03\x04").what, "control byte 0x03");  // a zip file
}

TEST(Toml, EscapesDoNotBringControlCharactersIn) {
  EXPECT_EQ(refused("a = 1\nb = \"\\u001b[31m\"").where, "f.toml:2:6");
  EXPECT_EQ(refused("\"\\u0007\" = 1").what, "the text contains a control character");
  EXPECT_TRUE(parse_toml("a = \"\\t\\n\"", "f.toml"));
}

TEST(Toml, LettersBeyondAsciiStandInTextAndCommentsOnly) {
  EXPECT_TRUE(parse_toml("a = \"\xc3\xbc\" # \xc3\xbc", "f.toml"));
  EXPECT_EQ(refused("gr\xc3\xb6sse = 1").where, "f.toml:1:3");
  EXPECT_EQ(refused("a\xc2\xa0= 1").where, "f.toml:1:2");     // a no-break space
  EXPECT_EQ(refused("\xef\xbb\xbf# x").where, "f.toml:1:1");  // a byte order mark
}

TEST(Toml, AQuoteBehindTheStartOfAValueOpensNoText) {
  for (const char* text : {"a = 3\"\uFDFF=o", "a = 3.\"\uFDFF\"", "a = [1, 2\"\uFDFF\"]", "a = \"x\" \"\uFDFF\"",
                           "[t]\"\uFDFF\"", "a = { b = 3 \"\uFDFF\" }", "a = [{ b = 1 }\"\uFDFF\"]"})
    EXPECT_FALSE(parse_toml(text, "f")) << text;
  for (const char* text :
       {"\"\uFDFF\" = 1", "a.\"\uFDFF\" = 1", "[\"\uFDFF\".b]", "[[\"\uFDFF\"]]",
        "a = [\n'\uFDFF', \"\uFDFF\" # \uFDFF\n]", "a = { \"\uFDFF\" = \"\uFDFF\", 'c' = [\"\uFDFF\"] }\n'b' = 1",
        "a = [{ b = \"x\" }, { 'c' = 'y' }]"})
    EXPECT_TRUE(parse_toml(text, "f")) << text;
}

TEST(Toml, LineEndsOfEitherKindAreAccepted) {
  const auto root = parse_toml("a = 1\r\nb = 2\r\n", "f.toml");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("b")->integer, 2);
}

TEST(Toml, ADocumentHasAtMostOneMebibyte) {
  EXPECT_TRUE(parse_toml(std::string(1 << 20, '\n'), "f.toml"));
  EXPECT_EQ(refused(std::string((1 << 20) + 1, '\n')).what, "the file has 1048577 bytes, the limit is 1048576");
}

TEST(Toml, DeepNestingIsRefusedAndDoesNotExhaustTheStack) {
  std::string keys = "a";
  for (int i = 0; i < 400'000; ++i) keys += ".a";
  std::string quoted = "\"=\"";
  for (int i = 0; i < 200'000; ++i) quoted += ".\"=\"";
  const std::string text = R"("""b"""")";  // three quotes, b and a quote of its own, three quotes
  for (const std::string& deep : {keys + " = 1", "[" + keys + "]", "[[" + keys + "]]", quoted + " = 1",
                                  "x = {" + keys + " = 1}", "x = {y = " + text + ", " + keys + " = 1}"})
    EXPECT_EQ(refused(deep).what, "a key has more than 64 parts") << deep.substr(0, 20);
  std::string both = "x = ";
  for (int i = 0; i < 5'000; ++i) both += "{" + keys.substr(0, 63) + " = ";
  EXPECT_EQ(refused(both).where.substr(0, 9), "f.toml:1:");
  EXPECT_EQ(refused("x = " + std::string(100'000, '[')).where.substr(0, 9), "f.toml:1:");
  std::string tables = "x = ";
  for (int i = 0; i < 50'000; ++i) tables += "{a = ";
  EXPECT_EQ(refused(tables).where.substr(0, 9), "f.toml:1:");
}

TEST(Toml, DotsInTextNumbersAndCommentsAreNoKeys) {
  const std::string dots(100, '.');
  std::string numbers = "n = [";
  for (int i = 0; i < 100; ++i) numbers += "0.5, ";
  const auto root =
      parse_toml("a = \"" + dots + "\\\"" + dots + "\" # " + dots + "\nb = '" + dots + "'\nc = \"\"\"" + dots + "\n\"" +
                     dots + "\"\"\"\nd = '''" + dots + "'" + dots + "'''\n" + numbers + "]\n",
                 "f.toml");
  ASSERT_TRUE(root) << root.error().where;
  EXPECT_EQ(root->find("n")->items.size(), 100u);
  EXPECT_EQ(root->find("d")->text.size(), 201u);
}

TEST(Toml, NumbersAreReadAsTheFormatHasThem) {
  const auto read = [](std::string text) { return parse_toml("n = " + text, "f.toml"); };
  const auto whole = [&](const char* text) { return read(text)->find("n")->integer; };
  EXPECT_EQ(whole("+1_000"), 1000);
  EXPECT_EQ(whole("-17"), -17);
  EXPECT_EQ(whole("0xdead_BEEF"), 0xdeadbeef);
  EXPECT_EQ(whole("0o755"), 0755);
  EXPECT_EQ(whole("0b101"), 5);
  EXPECT_EQ(whole("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(read("-0.5e-2")->find("n")->number, -0.005);
  EXPECT_EQ(read("5e+22")->find("n")->number, 5e22);
  EXPECT_EQ(read("-inf")->find("n")->number, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read("nan")->find("n")->number));
  for (const char* wrong : {"_1", "1_", "1__0", "01", "+", "1.", ".5", "1.e5", "1e", "0x", "-0x5", "0x-5", "--1",
                            "1e400", "9223372036854775808", "Inf", "truely", "80GiB"})
    EXPECT_FALSE(read(wrong)) << wrong;
}

TEST(Toml, DatesMayHaveATime) {
  for (const char* text : {"2026-11-15", "2026-11-15T10:30:00Z", "2026-11-15 10:30:00.5+01:00", "10:30:00"}) {
    const auto root = parse_toml(std::string("d = ") + text + " # then", "f.toml");
    ASSERT_TRUE(root) << text;
    EXPECT_EQ(root->find("d")->kind, Toml::Kind::date);
    EXPECT_EQ(root->find("d")->text, text);
  }
  for (const char* wrong : {"2026-13-01", "2026-02-30", "2026-11-15T10", "2026-1-5"})
    EXPECT_FALSE(parse_toml(std::string("d = ") + wrong, "f.toml")) << wrong;
}

TEST(Toml, TextIsReadAsTheFormatHasIt) {
  const auto read = [](std::string text) { return parse_toml("t = " + text, "f.toml")->find("t")->text; };
  EXPECT_EQ(read(R"("a\tb\\\"\u00fc\U0001F600")"), "a\tb\\\"\u00fc\U0001F600");
  EXPECT_EQ(read(R"('a\tb')"), "a\\tb");
  EXPECT_EQ(read("\"\"\"\nfirst\nsecond \\\n\n   third\"\"\""), "first\nsecond third");
  EXPECT_EQ(read("'''\n''a'''"), "''a");
  EXPECT_EQ(read(R"("""he said "no"""")"), "he said \"no\"");
  for (const char* wrong : {R"("\q")", R"("\u12")", R"("\ud800")", R"("\U00110000")", "\"a\nb\"", "'a", "\"\"\"a\"\""})
    EXPECT_FALSE(parse_toml(std::string("t = ") + wrong, "f.toml")) << wrong;
}

TEST(Toml, NothingIsGivenTwice) {
  for (const char* twice : {"a = 1\n'a' = 2", "[a]\n[b]\n[a]", "a.b = 1\n[a]", "[a.b]\n[a]\nb.c = 1", "a = {}\na.b = 1",
                            "a = []\n[[a]]", "[[a]]\n[a]", "[a]\n[[a]]", "a = {b = 1}\n[a.c]", "a = 1\n[a.b]",
                            "a = { b = 1, b = 2 }", "[[a]]\nb = 1\nb = 2"})
    EXPECT_TRUE(refused(twice).what.ends_with("is given twice")) << twice;
  const auto root = parse_toml("[a.b]\nx = 1\n[a]\ny.z = 2\ny.w = 3\n[[a.c]]\n[a.c.d]\nv = 4\n[[a.c]]\n", "f.toml");
  ASSERT_TRUE(root) << root.error().what;
  const Toml& a = *root->find("a");
  EXPECT_EQ(a.find("b")->find("x")->integer, 1);
  EXPECT_EQ(a.find("y")->find("w")->integer, 3);
  ASSERT_EQ(a.find("c")->items.size(), 2u);
  EXPECT_EQ(a.find("c")->items[0].find("d")->find("v")->integer, 4);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "k" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(refused(many).where, "f.toml:4097:1");
}

TEST(Toml, AScalarIsReadAsTyped) {
  EXPECT_EQ(toml_scalar("16").kind, Toml::Kind::integer);
  EXPECT_EQ(toml_scalar("16").integer, 16);
  EXPECT_EQ(toml_scalar("0.5").kind, Toml::Kind::number);
  EXPECT_EQ(toml_scalar("1e300").kind, Toml::Kind::number);
  EXPECT_EQ(toml_scalar("true").kind, Toml::Kind::boolean);
  EXPECT_EQ(toml_scalar("1.23 TB/s").kind, Toml::Kind::text);
  EXPECT_EQ(toml_scalar("nan").kind, Toml::Kind::text);
  EXPECT_EQ(describe(toml_scalar("1.23 TB/s").kind), "text");
}

// What is written is read as it was.
TEST(Toml, ADocumentIsWrittenAndReadBack) {
  const std::string text =
      "a = 1\nb = 0.5\nc = \"x \\\"y\\\" \u00e9\"\nd = [1, [2.0, true], 2026-11-15]\n\"e f\" = 1e+300\n\n"
      "[t]\nu = { v = 1 }\n\n[t.w]\nx = 2\n\n[[l]]\nm = 1\n\n[[l]]\nn = []\n";
  const Toml first = *parse_toml(text, "f.toml");
  const std::string written = toml_text(first);
  EXPECT_EQ(toml_text(*parse_toml(written, "g.toml")), written);
  EXPECT_EQ(written,
            "a = 1\nb = 0.5\nc = \"x \\\"y\\\" \u00e9\"\nd = [1, [2.0, true], 2026-11-15]\n\"e f\" = 1e+300\n\n"
            "[t]\n\n[t.u]\nv = 1\n\n[t.w]\nx = 2\n\n[[l]]\nm = 1\n\n[[l]]\nn = []\n");
}

TEST(Toml, AValueIsFoundByItsPath) {
  Toml root = *parse_toml("a = { b = 1 }\n[[l]]\nc = 2\n", "f.toml");
  EXPECT_EQ(toml_at(root, "a.b")->integer, 1);
  EXPECT_EQ(toml_at(root, "l.0.c")->integer, 2);
  *toml_at(root, "a.new") = toml_scalar("3");
  EXPECT_EQ(root.find("a")->find("new")->integer, 3);
  EXPECT_EQ(toml_at(root, "l.1.c"), nullptr);
  EXPECT_EQ(toml_at(root, "a.b.c"), nullptr);
}

RC_GTEST_PROP(Toml, ADamagedDocumentIsReadOrRefusedWithItsPlace, ()) {
  std::string text = document;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    if (*rc::gen::arbitrary<bool>())
      text[at] = *rc::gen::arbitrary<char>();
    else
      text.resize(at + 1);
  }
  const auto parsed = parse_toml(text, "f.toml");
  RC_ASSERT((parsed.has_value() || parsed.error().where.starts_with("f.toml:")));
}

}  // namespace
}  // namespace assay
