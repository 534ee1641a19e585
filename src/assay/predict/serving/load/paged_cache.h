// A cache in pages: every sequence has a table of the pages that hold its tokens, sequences with the same beginning
// share pages, and a shared page is copied before a sequence writes to it.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace assay::serving {

class PagedCache {
 public:
  struct Page {
    std::vector<int> tokens;
    std::vector<std::int64_t> owners;  ///< sequences, in order; none: the page is free
  };

  explicit PagedCache(std::int64_t tokens_of_a_page) : page_(tokens_of_a_page) {}

  /// Adds a sequence. Pages that another one fills with the same tokens up to there are shared.
  void add(std::int64_t sequence, const std::vector<int>& tokens);
  void append(std::int64_t sequence, int token);
  void remove(std::int64_t sequence);

  const std::vector<Page>& pages() const { return pages_; }
  /// Pages of each sequence, in the order of its tokens.
  const std::map<std::int64_t, std::vector<int>>& tables() const { return tables_; }
  std::int64_t in_use() const;
  std::int64_t shared() const;
  std::int64_t copies() const { return copies_; }
  /// Tokens that pages in use could still hold, over all that they can.
  double unused_share() const;

 private:
  /// The lowest free page.
  int taken(std::int64_t sequence, std::vector<int> tokens);
  /// A page that follows these and has these tokens.
  int found(const std::vector<int>& before, const std::vector<int>& tokens) const;

  std::int64_t page_;
  std::vector<Page> pages_;
  std::map<std::int64_t, std::vector<int>> tables_;
  std::int64_t copies_ = 0;
};

}  // namespace assay::serving
