#include "assay/engine/text/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/text.h"

namespace assay::engine {
namespace {

using Pair = std::pair<int, int>;

/// Words with the blank before them.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t start = 0;
  for (std::size_t i = 1; i <= text.size(); ++i) {
    const bool ends = i == text.size() || ((text[i] == ' ' || text[i] == '\n') && text[i - 1] != ' ');
    if (!ends) continue;
    words.push_back(text.substr(start, i - start));
    start = i;
  }
  return words;
}

std::vector<int> bytes_in(std::string_view text) {
  std::vector<int> out;
  for (char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

void merge(std::vector<int>& tokens, Pair pair, int merged) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < tokens.size(); ++to) {
    const bool joins = i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
    tokens[to] = joins ? merged : tokens[i];
    i += joins ? 2 : 1;
  }
  tokens.resize(to);
}

}  // namespace

Tokenizer Tokenizer::learned(std::string_view text, std::int64_t vocabulary) {
  std::map<std::string_view, std::int64_t> counts;
  for (std::string_view word : words_of(text)) ++counts[word];
  std::vector<std::pair<std::vector<int>, std::int64_t>> words;
  for (const auto& [word, count] : counts) words.emplace_back(bytes_in(word), count);
  Tokenizer out;
  while (out.vocabulary() < vocabulary) {
    std::map<Pair, std::int64_t> pairs;
    for (const auto& [tokens, count] : words)
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) pairs[{tokens[i], tokens[i + 1]}] += count;
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == pairs.end() || best->second < 2) break;
    const int made = static_cast<int>(out.vocabulary());
    out.merges_.push_back(best->first);
    for (auto& word : words) merge(word.first, best->first, made);
  }
  return out;
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
  std::vector<int> out;
  std::map<std::string_view, std::vector<int>> known;
  if (merges_.empty()) return bytes_in(text);
  for (std::string_view word : words_of(text)) {
    auto [found, is_new] = known.try_emplace(word);
    if (is_new) {
      found->second = bytes_in(word);
      for (std::size_t i = 0; i < merges_.size() && found->second.size() > 1; ++i)
        merge(found->second, merges_[i], static_cast<int>(bytes + static_cast<std::int64_t>(i)));
    }
    out.insert(out.end(), found->second.begin(), found->second.end());
  }
  return out;
}

void Tokenizer::append(int token, std::string& out) const {
  if (token >= bytes && token < vocabulary()) {
    const Pair& pair = merges_[static_cast<std::size_t>(token - bytes)];
    append(pair.first, out);
    append(pair.second, out);
    return;
  }
  const bool printable = (token >= 32 && token < 127) || token == '\n';
  out += printable ? static_cast<char>(token) : '?';
}

std::string Tokenizer::decode(std::span<const int> tokens) const {
  std::string out;
  for (int token : tokens) append(token, out);
  return out;
}

std::string Tokenizer::merges() const {
  std::string out;
  for (const Pair& pair : merges_) out += fmt::format("{}{} {}", out.empty() ? "" : ",", pair.first, pair.second);
  return out;
}

Result<Tokenizer> Tokenizer::from_merges(std::string_view text, std::string_view where) {
  Tokenizer out;
  if (text.empty()) return out;
  for (const std::string& pair : assay::split(std::string(text), ',')) {
    int sides[2] = {-1, -1};
    const std::vector<std::string> words = assay::split(pair, ' ');
    for (std::size_t i = 0; i < 2 && words.size() == 2; ++i)
      if (const auto number = parse_number(words[i])) sides[i] = static_cast<int>(*number);
    for (int side : sides)
      if (side < 0 || side >= out.vocabulary())
        return fail(std::string(where), fmt::format("{} is no pair of earlier tokens", in_quotes(pair)),
                    "`assay run train --save` writes such a file");
    out.merges_.emplace_back(sides[0], sides[1]);
  }
  return out;
}

TextBatch text_batch(std::span<const int> text, std::int64_t sequences, std::int64_t length, std::uint64_t seed,
                     std::int64_t step) {
  TextBatch out{zeros({sequences, length}), zeros({sequences, length})};
  const auto starts = static_cast<std::uint64_t>(std::ssize(text) - length);
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::uint64_t start = mixed(seed, static_cast<std::uint64_t>(step * sequences + s)) % starts;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto to = static_cast<std::size_t>(s * length + i);
      const auto from = static_cast<std::size_t>(start) + static_cast<std::size_t>(i);
      out.tokens.values[to] = text[from];
      out.targets.values[to] = text[from + 1];
    }
  }
  return out;
}

}  // namespace assay::engine
