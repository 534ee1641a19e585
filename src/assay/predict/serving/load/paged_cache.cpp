#include "assay/predict/serving/load/paged_cache.h"

#include <algorithm>

#include "assay/base/index.h"

namespace assay::serving {

int PagedCache::taken(std::int64_t sequence, std::vector<int> tokens) {
  auto free = std::find_if(pages_.begin(), pages_.end(), [](const Page& page) { return page.owners.empty(); });
  if (free == pages_.end()) free = pages_.insert(free, Page{});
  *free = {std::move(tokens), {sequence}};
  return static_cast<int>(free - pages_.begin());
}

int PagedCache::found(const std::vector<int>& before, const std::vector<int>& tokens) const {
  for (const auto& [sequence, table] : tables_)
    if (table.size() > before.size() && std::equal(before.begin(), before.end(), table.begin()) &&
        pages_[at(table[before.size()])].tokens == tokens)
      return table[before.size()];
  return -1;
}

void PagedCache::add(std::int64_t sequence, const std::vector<int>& tokens) {
  std::vector<int> table;
  for (auto from = tokens.begin(); from != tokens.end();) {
    const auto to = tokens.end() - from > page_ ? from + page_ : tokens.end();
    std::vector<int> some(from, to);
    int page = found(table, some);
    if (page < 0)
      page = taken(sequence, std::move(some));
    else
      pages_[at(page)].owners.push_back(sequence);
    table.push_back(page);
    from = to;
  }
  tables_[sequence] = std::move(table);
}

void PagedCache::append(std::int64_t sequence, int token) {
  std::vector<int>& table = tables_.at(sequence);
  if (table.empty() || static_cast<std::int64_t>(pages_[at(table.back())].tokens.size()) == page_) {
    table.push_back(taken(sequence, {token}));
    return;
  }
  if (pages_[at(table.back())].owners.size() > 1) {
    std::erase(pages_[at(table.back())].owners, sequence);
    table.back() = taken(sequence, pages_[at(table.back())].tokens);
    ++copies_;
  }
  pages_[at(table.back())].tokens.push_back(token);
}

void PagedCache::remove(std::int64_t sequence) {
  for (const int page : tables_.at(sequence)) std::erase(pages_[at(page)].owners, sequence);
  tables_.erase(sequence);
}

std::int64_t PagedCache::in_use() const {
  return std::count_if(pages_.begin(), pages_.end(), [](const Page& page) { return !page.owners.empty(); });
}

std::int64_t PagedCache::shared() const {
  return std::count_if(pages_.begin(), pages_.end(), [](const Page& page) { return page.owners.size() > 1; });
}

double PagedCache::unused_share() const {
  std::int64_t held = 0;
  for (const Page& page : pages_)
    if (!page.owners.empty()) held += static_cast<std::int64_t>(page.tokens.size());
  const std::int64_t room = in_use() * page_;
  return room == 0 ? 0.0 : 1.0 - static_cast<double>(held) / static_cast<double>(room);
}

}  // namespace assay::serving
