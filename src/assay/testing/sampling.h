// Fewer cases where each takes long: the sanitizer build walks every line, the release build proves every case.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace assay::testing {

/// N of ASSAY_TEST_EVERY=N; 1 where the environment has none.
inline std::size_t sampled_every() {
  const char* text = std::getenv("ASSAY_TEST_EVERY");
  return text ? static_cast<std::size_t>(std::max(1, std::atoi(text))) : 1;
}
/// Why a test of numbers over whole tables is skipped where cases are sampled.
inline constexpr const char* left_to_release = "the release build proves numbers over all cases";
/// So many of `all` random cases.
inline int sampled_count(int all) { return std::max(1, all / static_cast<int>(sampled_every())); }

/// All of them or, where the environment has ASSAY_TEST_EVERY=N, every N-th and at least one, starting one later each
/// time: lists that are walked for many models are covered together.
template <class T>
std::vector<T> sampled(std::vector<T> all) {
  const std::size_t every = sampled_every();
  if (every <= 1 || all.size() <= 1) return all;
  static std::size_t calls = 0;
  std::vector<T> out;
  for (std::size_t i = calls++ % std::min(every, all.size()); i < all.size(); i += every)
    out.push_back(std::move(all[i]));
  return out;
}

/// One of every `every` cases, starting one later each time: of pairs of lists, each member meets many of the other
/// list where trying all pairs would take minutes.
template <class T>
std::vector<T> in_turn(const std::vector<T>& all, std::size_t every) {
  static std::size_t calls = 0;
  std::vector<T> out;
  for (std::size_t i = calls++ % std::min(every, all.size()); i < all.size(); i += every) out.push_back(all[i]);
  return out;
}

}  // namespace assay::testing
