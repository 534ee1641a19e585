#include "assay/predict/search/serving/slices.h"

#include <algorithm>
#include <cmath>

#include "assay/model/accounting.h"
#include "assay/predict/serving/bounds.h"

namespace assay::search {
namespace {

ServingChoices any_sharding(ServingChoices choices) {
  choices.tensor.reset();
  choices.pipeline.reset();
  choices.data.reset();
  choices.expert.reset();
  choices.second.reset();
  return choices;
}

/// Calls `look` with the search for a goal on every slice, from `fewest` chips on, until it says that this is enough.
template <class F>
void each_slice(const SliceQuestion& of, std::int64_t fewest, const ServingChoices& choices, ServingGoal goal, F look) {
  serving::KnownProfiles known(of.question);
  for (const SliceSize& slice : slice_sizes(of.chip)) {
    if (slice.chips < fewest || slice.chips > most_slice_chips) continue;
    const auto cluster = of.cluster_of(slice);
    if (!cluster) continue;
    const auto found = search_serving(of.question, *cluster, choices, goal, &known);
    if (found && look(slice, *cluster, *found)) return;
  }
}

}  // namespace

std::optional<SliceFound> first_slice(const SliceQuestion& of, std::int64_t fewest, ServingGoal goal) {
  std::optional<SliceFound> out;
  const ServingChoices choices = any_sharding(of.choices);
  each_slice(of, fewest, choices, goal,
             [&](const SliceSize& slice, const hardware::Cluster& cluster, const ServingSearch& some) {
               if (goal == ServingGoal::fits ? !some.fits : !some.best) return false;
               const auto found = search_serving(of.question, cluster, choices);
               out = SliceFound{slice, found->best ? *found->best : *found->closest};
               return true;
             });
  return out;
}

std::optional<SliceFound> fastest_slice(const SliceQuestion& of, bool first_token) {
  std::optional<SliceFound> out;
  ServingChoices choices = any_sharding(of.choices);
  choices.first_token.reset();
  choices.per_token.reset();
  const auto seconds = [&](const serving::ServingPoint& p) {
    return first_token ? p.prefill.estimate : p.decode.estimate;
  };
  each_slice(of, 1, choices, first_token ? ServingGoal::first_token : ServingGoal::next_token,
             [&](const SliceSize& slice, const hardware::Cluster&, const ServingSearch& found) {
               const auto& point = first_token ? found.fastest_prompt : found.fastest_token;
               if (point && (!out || seconds(*point) < seconds(out->point))) out = SliceFound{slice, *point};
               return false;
             });
  return out;
}

Dtype narrow_format(const hardware::Chip& chip, int bits) {
  const Dtype floating = bits == 8 ? Dtype::fp8 : Dtype::fp4;
  return chip.peak[static_cast<std::size_t>(floating)] ? floating : bits == 8 ? Dtype::int8 : Dtype::int4;
}

std::optional<NarrowerWeights> narrower_weights(const serving::ServingQuestion& question,
                                                const hardware::Cluster& cluster, const ServingChoices& choices) {
  for (int bits : {8, 4}) {
    if (question.setup.formats.most().bits() <= bits) continue;
    serving::ServingQuestion narrower = question;
    const Dtype weights = narrow_format(cluster.chip, bits);
    narrower.setup.formats.set_weights(weights);
    const auto found = search_serving(narrower, cluster, choices);
    if (found && found->fits && found->best) return NarrowerWeights{weights, *found->best};
  }
  return std::nullopt;
}

std::optional<MeetingSlice> first_meeting_slice(const SliceQuestion& of, std::int64_t chips) {
  const lower::Formats& formats = of.question.setup.formats;
  if (const auto found = first_slice(of, chips + 1, ServingGoal::meets)) return MeetingSlice{*found, formats};
  serving::ServingQuestion narrower = of.question;
  for (int bits : {8, 4}) {
    if (formats.most().bits() <= bits) continue;
    narrower.setup.formats.set_weights(narrow_format(of.chip, bits));
    narrower.setup.formats.kv_cache = narrow_format(of.chip, 8);
    const SliceQuestion there{narrower, of.chip, of.choices, of.cluster_of};
    if (const auto found = first_slice(there, chips, ServingGoal::meets))
      return MeetingSlice{*found, narrower.setup.formats};
  }
  return std::nullopt;
}

std::vector<FormatFit> format_fits(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                   double parameters, double batch) {
  const hardware::Chip& chip = cluster.chip;
  const numbers::RuntimeMemory& runtime = question.setup.effects.memory;
  const auto left_of = [&](std::int64_t chips) {
    return static_cast<double>(chips) * left_on_chip(runtime, question.capacity, chips > 1);
  };
  const std::int64_t context = question.prompt + question.output;
  std::vector<FormatFit> out;
  for (Dtype dtype : {Dtype::bf16, narrow_format(chip, 8), narrow_format(chip, 4)}) {
    const Bytes weights = storage(dtype, parameters);
    const Bytes sequence = storage(dtype, serving::cache_values(question, context));
    FormatFit row;
    row.format = dtype;
    row.weights = weights;
    row.token_cache = storage(dtype, static_cast<double>(model::kv_values_per_token(*question.setup.model)));
    row.sequence_cache = sequence;
    row.chips_for_weights = weights / left_of(1);
    if (weights > left_of(1)) row.least_chips = static_cast<std::int64_t>(std::ceil(2.0 * weights / left_of(2)));
    if (const auto slice = smallest_slice(runtime, chip, question.capacity, weights)) {
      row.smallest = FormatFit::Slice{*slice, left_of(slice->chips) - weights, {}};
      if (sequence > Bytes())
        row.smallest->caches = static_cast<std::int64_t>(std::floor(row.smallest->left / sequence));
    }
    row.for_batch = smallest_slice(runtime, chip, question.capacity, weights + batch * sequence);
    if (sequence > Bytes()) row.max_batch = std::max(0.0, std::floor((left_of(cluster.chips()) - weights) / sequence));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace assay::search
