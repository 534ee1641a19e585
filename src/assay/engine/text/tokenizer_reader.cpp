// Reads tokenizer.json.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/index.h"
#include "assay/base/text.h"
#include "assay/engine/text/published_tokenizer.h"

namespace assay::engine {

using model::Json;

namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;
/// What GPT-2 cuts text by (Radford et al. 2019).
constexpr std::string_view usual_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string text_at(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found && found->kind == Json::Kind::text ? found->text : "";
}
bool flag_at(const Json& json, std::string_view key, bool usual = false) {
  const Json* found = json.find(key);
  return found && found->kind == Json::Kind::boolean ? found->boolean : usual;
}
/// Nothing where a key is absent or null.
const Json* given(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found && found->kind != Json::Kind::null ? found : nullptr;
}
/// The members of a sequence, or the one thing itself.
std::vector<const Json*> parts_of(const Json* json, std::string_view key) {
  if (!json) return {};
  const Json* list = text_at(*json, "type") == "Sequence" ? json->find(key) : nullptr;
  std::vector<const Json*> out;
  if (!list) return {json};
  for (const Json& item : list->items) out.push_back(&item);
  return out;
}

}  // namespace

class TokenizerReader {
 public:
  TokenizerReader(const std::string& file, const Letters& letters) : file_(file), letters_(letters) {
    out.file_ = file;
    out.digits_ = letters.ranges("N");
    out.joining_ = letters.ranges("joined");
  }

  PublishedTokenizer out;

  Result<void> read(const Json& root) {
    const Json* model = given(root, "model");
    if (!model) return refuse("has no model");
    ASSAY_CHECK(read_model(*model));
    const Json* added = given(root, "added_tokens");
    for (std::size_t i = 0; added && i < added->items.size(); ++i) ASSAY_CHECK(read_added(added->items[i]));
    std::stable_sort(out.added_.begin(), out.added_.end(),
                     [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
    for (const Json* change : parts_of(given(root, "normalizer"), "normalizers")) ASSAY_CHECK(read_change(*change));
    for (const Json* cut : parts_of(given(root, "pre_tokenizer"), "pretokenizers")) ASSAY_CHECK(read_cut(*cut));
    for (const Json* ends : parts_of(given(root, "post_processor"), "processors")) ASSAY_CHECK(read_ends(*ends));
    return {};
  }

 private:
  tl::unexpected<Error> refuse(const std::string& what) const {
    return fail(file_, what, "give prompts as numbers: --tokens 1,15043,3186");
  }

  Result<void> read_model(const Json& model) {
    if (const std::string type = text_at(model, "type"); type != "BPE" && !(type.empty() && given(model, "merges")))
      return refuse(fmt::format("a tokenizer of type {} is not understood, only BPE", in_quotes(type)));
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json* value = given(model, key); value && !(value->kind == Json::Kind::text && value->text.empty()))
        return refuse(fmt::format("{} is not understood", key));
    const Json *vocabulary = given(model, "vocab"), *merges = given(model, "merges");
    if (!vocabulary || !merges) return refuse("model has no vocab or no merges");
    for (const auto& [text, number] : vocabulary->members) ASSAY_CHECK(add_token(text, number.integer));
    int rank = 0;
    for (const Json& merge : merges->items) {
      const std::size_t blank = merge.text.find(' ');
      const bool listed = merge.items.size() == 2;
      const std::string left = listed ? merge.items[0].text : merge.text.substr(0, blank);
      const std::string right = listed ? merge.items[1].text : merge.text.substr(std::min(blank, merge.text.size()));
      const auto a = out.tokens_.find(left), b = out.tokens_.find(listed ? right : std::string(trim(right)));
      const auto made =
          a == out.tokens_.end() || b == out.tokens_.end() ? out.tokens_.end() : out.tokens_.find(a->first + b->first);
      if (made == out.tokens_.end())
        return refuse(fmt::format("merge {} joins what is no token", in_quotes(left + " " + right)));
      out.merges_.try_emplace({a->second, b->second}, PublishedTokenizer::Merge{rank++, made->second});
    }
    out.falls_back_ = flag_at(model, "byte_fallback");
    out.joins_unknown_ = flag_at(model, "fuse_unk");
    out.takes_words_ = flag_at(model, "ignore_merges");
    if (const auto unknown = out.tokens_.find(text_at(model, "unk_token")); unknown != out.tokens_.end())
      out.unknown_ = unknown->second;
    return {};
  }

  Result<void> add_token(const std::string& text, std::int64_t number) {
    constexpr std::int64_t most = 4'000'000;
    if (number < 0 || number >= most) return refuse(fmt::format("token {} has number {}", in_quotes(text), number));
    out.tokens_[text] = static_cast<int>(number);
    if (std::ssize(out.texts_) <= number) out.texts_.resize(at(number + 1));
    out.texts_[at(number)] = text;
    return {};
  }

  Result<void> read_added(const Json& token) {
    const std::string text = text_at(token, "content");
    const Json* number = token.find("id");
    if (text.empty() || !number) return refuse("an added token has no content or no id");
    if (flag_at(token, "single_word"))
      return refuse(fmt::format("the added token {} is a single_word, which is not understood", in_quotes(text)));
    ASSAY_CHECK(add_token(text, number->integer));
    out.added_.push_back({text, static_cast<int>(number->integer), flag_at(token, "lstrip"), flag_at(token, "rstrip")});
    return {};
  }

  Result<void> read_change(const Json& change) {
    using Kind = PublishedTokenizer::Change::Kind;
    const std::string type = text_at(change, "type");
    const Json* pattern = change.find("pattern");
    const std::string from = pattern ? text_at(*pattern, "String") : "";
    if (type == "NFC")
      out.changes_.push_back({Kind::composed, {}, {}});
    else if (type == "Prepend")
      out.changes_.push_back({Kind::prepend, {}, text_at(change, "prepend")});
    else if (type == "Replace" && !from.empty())
      out.changes_.push_back({Kind::replace, from, text_at(change, "content")});
    else
      return refuse(fmt::format("the normalizer {} is not understood", in_quotes(type)));
    return {};
  }

  Result<void> read_cut(const Json& from) {
    PublishedTokenizer::Cut cut;
    using Kind = PublishedTokenizer::Cut::Kind;
    const std::string type = text_at(from, "type");
    if (type == "ByteLevel") {
      cut.adds_blank = flag_at(from, "add_prefix_space", true);
      cut.kind = Kind::bytes;
      cut.splits = flag_at(from, "use_regex", true);
      ASSAY_CHECK(set_pattern(cut, std::string(usual_pattern)));
      out.has_bytes_ = true;
    } else if (type == "Split") {
      ASSAY_CHECK(read_split(from, cut));
    } else if (type == "Digits") {
      cut.kind = Kind::digits;
      cut.each = flag_at(from, "individual_digits");
    } else if (type == "Metaspace") {
      cut.kind = Kind::words;
      cut.literal = text_at(from, "replacement");
      const std::string scheme = text_at(from, "prepend_scheme");
      cut.adds_blank = scheme.empty() ? flag_at(from, "add_prefix_space", true) : scheme != "never";
      cut.first_alone = scheme == "first";
      cut.splits = flag_at(from, "split", true);
    } else {
      return refuse(fmt::format("the pre_tokenizer {} is not understood", in_quotes(type)));
    }
    out.cuts_.push_back(std::move(cut));
    return {};
  }

  Result<void> read_split(const Json& from, PublishedTokenizer::Cut& cut) {
    using Matches = PublishedTokenizer::Cut::Matches;
    const Json* pattern = from.find("pattern");
    const std::string behavior = text_at(from, "behavior");
    cut.inverted = flag_at(from, "invert");
    if (behavior == "MergedWithPrevious")
      cut.matches = Matches::with_previous;
    else if (behavior == "Removed")
      cut.matches = Matches::dropped;
    else if (behavior != "Isolated")
      return refuse(fmt::format("a Split with the behavior {} is not understood", in_quotes(behavior)));
    if (!pattern) return refuse("a Split has no pattern");
    cut.literal = text_at(*pattern, "String");
    if (!cut.literal.empty()) {
      cut.kind = PublishedTokenizer::Cut::Kind::literal;
      return {};
    }
    return set_pattern(cut, text_at(*pattern, "Regex"));
  }

  Result<void> set_pattern(PublishedTokenizer::Cut& cut, const std::string& text) {
    auto pattern = Pattern::parse(text, letters_);
    if (!pattern) return refuse(fmt::format("the pattern {}: {}", in_quotes(text), pattern.error().what));
    cut.pattern = std::move(*pattern);
    return {};
  }

  Result<void> read_ends(const Json& ends) {
    const std::string type = text_at(ends, "type");
    if (type == "ByteLevel") return {};  // changes positions alone
    if (type != "TemplateProcessing")
      return refuse(fmt::format("the post_processor {} is not understood", in_quotes(type)));
    const Json *single = ends.find("single"), *special = ends.find("special_tokens");
    bool is_after = false;
    for (std::size_t i = 0; single && i < single->items.size(); ++i) {
      const Json* token = single->items[i].find("SpecialToken");
      if (!token) {
        is_after = true;
        continue;
      }
      const Json* known = special ? special->find(text_at(*token, "id")) : nullptr;
      const Json* ids = known ? known->find("ids") : nullptr;
      if (!ids)
        return refuse(fmt::format("the post_processor's token {} is not listed", in_quotes(text_at(*token, "id"))));
      for (const Json& id : ids->items) (is_after ? out.last_ : out.first_).push_back(static_cast<int>(id.integer));
    }
    return {};
  }

  const std::string& file_;
  const Letters& letters_;
};

Result<PublishedTokenizer> PublishedTokenizer::parse(std::string_view json, const std::string& file,
                                                     const hardware::Catalogue& catalogue) {
  ASSAY_TRY(root, model::parse_json(json, file, most_bytes));
  ASSAY_TRY(letters, Letters::of(catalogue));
  TokenizerReader reader(file, *letters);
  ASSAY_CHECK(reader.read(root));
  return std::move(reader.out);
}

}  // namespace assay::engine
