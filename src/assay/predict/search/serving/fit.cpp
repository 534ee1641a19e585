#include "assay/predict/search/serving/fit.h"

#include <algorithm>

namespace assay::search {
namespace {

constexpr std::int64_t most_chips = 4096;

}  // namespace

std::vector<SliceSize> slice_sizes(const hardware::Chip& chip) {
  std::vector<SliceSize> out;
  const bool torus = chip.network.scale_up && chip.network.scale_up->kind == "torus";
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 1; n <= most_chips; n *= 2) counts.push_back(n);
  if (!torus && chip.network.scale_up && chip.network.scale_up->domain)
    counts.push_back(chip.network.scale_up->domain->value);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (std::int64_t n : counts) {
    if (!torus) {
      out.push_back({std::to_string(n), n});
      continue;
    }
    if (n == chip.host.chips.value && chip.host.shape) {  // one host, as it is built
      out.push_back({hardware::shape_text(chip.host.shape->value), n});
      continue;
    }
    const Result<hardware::Shape> shape = hardware::default_shape(chip, n, "slice");
    if (shape && hardware::make_torus(chip, *shape, false, "slice")) out.push_back({hardware::shape_text(*shape), n});
  }
  return out;
}

Bytes left_on_chip(const numbers::RuntimeMemory& runtime, Bytes capacity, bool together) {
  serving::ServingMemoryOf<Plain> memory;
  serving::add_runtime(Plain{}, runtime, {capacity, together}, memory);
  return capacity - memory.runtime();
}

std::optional<SliceSize> smallest_slice(const numbers::RuntimeMemory& runtime, const hardware::Chip& chip,
                                        Bytes capacity, Bytes bytes) {
  for (SliceSize& slice : slice_sizes(chip))
    if (static_cast<double>(slice.chips) * left_on_chip(runtime, capacity, slice.chips > 1) >= bytes)
      return std::move(slice);
  return std::nullopt;
}

std::optional<std::int64_t> longest_context(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                            const serving::ServingStrategy& strategy, double batch,
                                            std::int64_t limit) {
  const Result<training::StageLinks> links = serving::serving_links(question.setup, strategy, cluster);
  if (!links) return std::nullopt;
  const auto fits = [&](std::int64_t prompt) {
    serving::ServingQuestion longer = question;
    longer.prompt = prompt;
    const serving::ServingProfiles profiles = serving::serving_profiles(longer, strategy, *links);
    return serving::serving_memory(longer, profiles, batch).total() <= question.capacity;
  };
  std::int64_t good = 1, bad = std::max<std::int64_t>(2, limit - question.output + 1);
  if (!fits(good)) return std::nullopt;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good + question.output;
}

}  // namespace assay::search
