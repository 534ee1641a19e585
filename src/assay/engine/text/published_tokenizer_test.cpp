#include "assay/engine/text/published_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "assay/hardware/cluster.h"

namespace assay::engine {
namespace {

const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue built_in = hardware::Catalogue::builtin();
  return built_in;
}

// Files of the tokenizers library with what it makes of texts.
TEST(PublishedTokenizer, ReadsAndWritesTextAsTheLibraryDoes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/tokenizers")) {
    const auto text = hardware::read_file(entry.path().string(), "file");
    ASSERT_TRUE(text);
    const auto tokenizer = PublishedTokenizer::parse(*text, entry.path().string(), catalogue());
    ASSERT_TRUE(tokenizer) << tokenizer.error().what;
    const auto json = model::parse_json(*text, "file");
    ASSERT_TRUE(json);
    for (const model::Json& known : json->find("expected")->items) {
      std::vector<int> ids;
      for (const model::Json& id : known.find("ids")->items) ids.push_back(static_cast<int>(id.integer));
      const std::string& said = known.find("text")->text;
      const auto made = tokenizer->encode(said);
      ASSERT_TRUE(made) << said << made.error().what;
      EXPECT_EQ(*made, ids) << entry.path() << said;
      EXPECT_EQ(tokenizer->decode(ids), known.find("decoded")->text) << entry.path();
    }
    ++files;
  }
  EXPECT_EQ(files, 8);
}

TEST(PublishedTokenizer, SaysWhatItDoesNotUnderstand) {
  const auto fault = [](std::string_view rest) {
    const std::string text =
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, )" + std::string(rest);
    const auto read = PublishedTokenizer::parse(text, "tokenizer.json", catalogue());
    return read ? std::string() : read.error().what;
  };
  EXPECT_EQ(fault(R"("normalizer": {"type": "NFKC"}})"), "the normalizer \"NFKC\" is not understood");
  EXPECT_EQ(fault(R"("pre_tokenizer": {"type": "Whitespace"}})"), "the pre_tokenizer \"Whitespace\" is not understood");
  EXPECT_EQ(fault(R"("post_processor": {"type": "BertProcessing"}})"),
            "the post_processor \"BertProcessing\" is not understood");
  EXPECT_NE(fault(R"("pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(?<=a)b"}}})"),
            "");
  const auto unigram =
      PublishedTokenizer::parse(R"({"model": {"type": "Unigram", "vocab": []}})", "tokenizer.json", catalogue());
  ASSERT_FALSE(unigram);
  EXPECT_EQ(unigram.error().what, "a tokenizer of type \"Unigram\" is not understood, only BPE");
}

// "e" and a combining accent would be one letter.
TEST(PublishedTokenizer, RefusesTextThatANormalFormWouldChange) {
  const auto text = hardware::read_file("tests/data/tokenizers/qwen2.json", "file");
  const auto tokenizer = PublishedTokenizer::parse(*text, "qwen2.json", catalogue());
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(tokenizer->encode("caf\u00e9"));
  EXPECT_FALSE(tokenizer->encode("cafe\u0301"));
  EXPECT_FALSE(tokenizer->encode("\xff"));
}

TEST(Pattern, TriesAlternativesInOrderAndGivesBackWhatItTook) {
  const Letters& letters = **Letters::of(catalogue());
  const auto length = [&](std::string_view pattern, std::string_view text) -> std::int64_t {
    const auto parsed = Pattern::parse(pattern, letters);
    if (!parsed) return -2;
    const auto found = parsed->match(code_points(text), 0);
    return found ? static_cast<std::int64_t>(*found) : -1;
  };
  EXPECT_EQ(length("a|ab", "ab"), 1);
  EXPECT_EQ(length("(?:a|ab)c", "abc"), 3);
  EXPECT_EQ(length("\\s+(?!\\S)", "   x"), 2);
  EXPECT_EQ(length("\\s++x", "  x"), 3);
  EXPECT_EQ(length("a++a", "aaa"), -1);
  EXPECT_EQ(length("\\p{N}{1,3}", "12345"), 3);
  EXPECT_EQ(length("(?i:'LL)", "'ll"), 3);
  EXPECT_EQ(length("[^\\s\\p{L}]+", "12 a"), 2);
  EXPECT_EQ(length("a+?", "aa"), -2);
}

}  // namespace
}  // namespace assay::engine
