// Attention over a prompt and over a cache: tiles of scores with a softmax in between.
#include <cmath>

#include "assay/predict/kernel/chip_numbers.h"
#include "assay/predict/kernel/kernel_models.h"

namespace assay::kernel {
namespace {

double up_to(double size, double step) { return std::ceil(size / step) * step; }

/// Elements of a head as matrix units work on them: scores contract them, weighted sums yield them. A systolic array is
/// filled up in both; GPU kernels are made for some widths.
double padded_head(const AttentionRates& rates, const AttentionWork& work) {
  const CoreRates& chip = rates.chip;
  if (chip.systolic) return (up_to(work.head_dim, chip.pad_k) + up_to(work.head_dim, chip.pad_n)) / 2.0;
  const double lead = work.key_lead / 2.0;
  return (kernel_head(work.head_dim + lead, rates.head_step) + kernel_head(work.head_dim - lead, rates.head_step)) /
         2.0;
}

constexpr double score_tile = 128;  ///< side of a tile of scores

/// A fitted number of a pass of attention, by its key.
template <class N, class Q>
NumberOf<N, Q> pass_number(const N& num, const AttentionRates& rates, bool backward, std::string_view key, Q value) {
  if constexpr (N::traced)
    return num.given(key, value, rates.sources,
                     (backward ? "attention.backward." : "attention.forward.") + std::string(key));
  else
    return value;
}

template <class N>
auto attention_share(const N& num, const AttentionRates& rates, const AttentionWork& work, bool backward) {
  const auto share = pass_number(num, rates, backward, "share", rates.fit.share);
  return padded_head(rates, work) > hardware::wide_head
             ? share * pass_number(num, rates, backward, "wide", rates.fit.wide)
             : share;
}

/// Elements of a head that a tile of scores is worth, its softmax included.
template <class N>
auto head_elements(const N& num, const AttentionRates& rates, const AttentionWork& work, bool backward) {
  const double padded = padded_head(rates, work);
  const auto head = num.given("padded head", padded, "elements");
  const auto softmax = pass_number(num, rates, backward, "softmax", rates.fit.softmax);
  if (rates.chip.systolic) return head + softmax;
  // While one half of a core's threads multiplies, the other has its softmax.
  const auto in_turn = num.given("not hidden", 0.5, "of the shorter: two halves of a core's threads take turns");
  auto elements = max(head, softmax) + in_turn * min(head, softmax);
  if (rates.fit.uneven && padded > work.head_dim)
    elements = elements * pass_number(num, rates, backward, "uneven", *rates.fit.uneven);
  if (rates.fit.part_row && std::fmod(padded, hardware::whole_row) != 0.0)
    elements = elements * pass_number(num, rates, backward, "part_row", *rates.fit.part_row);
  return elements;
}

/// Of a query, a key and an element of a head: two products.
template <class N>
auto flops_of_score(const N& num) {
  return num.named("FLOP of scores",
                   num.given("products of attention", 2.0, "scores, and sums of values") * multiply_and_add(num));
}

}  // namespace

double kernel_head(double size, double step) {
  constexpr double usual_heads = 128, wide_step = 64;  // beyond, kernels exist for 192 and 256 only
  return up_to(size, size > usual_heads ? wide_step : step);
}

template <class N>
NumberOf<N, Seconds> attention_time(const N& num, const AttentionRates& rates, const AttentionWork& work,
                                    bool backward) {
  const double row_count = work.queries <= score_tile / 2.0 ? score_tile / 2.0 : score_tile;
  const auto rows = num.given("tile rows", row_count, "queries"), side = num.given("tile columns", score_tile, "keys");
  const auto cores = core_count(num, rates.chip, rates.sources);
  const auto products = num.given("products", backward ? program::backward_passes : 1.0,
                                  backward ? "recomputed scores, and four gradients" : "of a pass");
  const auto scores = flops_of_score(num) * rows * side;
  const auto tile = num.named("tile", scores * head_elements(num, rates, work, backward) * products);
  const auto each = tile / (attention_share(num, rates, work, backward) / cores * peak_of(num, rates));
  // Tiles on the diagonal are computed in full.
  const auto across = num.named(
      "tiles across", ceil(num.given("keys", static_cast<double>(work.shape.keys), "of one sequence") / side));
  const auto met = num.given("keys per query", work.shape.mean_keys(), "on average") / side;
  const auto visited = num.named("tiles visited", min(across, work.shape.causal ? met + 0.5 : met));
  const auto window = static_cast<double>(work.shape.window > 0 ? work.shape.window : work.shape.chunk);
  const auto most = window > 0.0 ? min(across, ceil(num.given("window", window, "keys") / side) + 1.0) : across;
  const auto heads = num.given("heads", work.heads, "of all sequences"),
             queries = num.given("queries", work.queries, "of a sequence");
  const auto tail = pass_number(num, rates, backward, "tail", rates.fit.tail.value_or(1.0));
  const auto of_a_core = num.named("rows of a core", heads * ceil(queries / rows) / cores);
  // A core takes the next row of tiles when it is done with one. At the end some still work on long ones.
  auto busy = num.named("arithmetic", each * (of_a_core * visited + tail * most));
  if (rates.fit.start)
    busy = num.named("with starts", busy + of_a_core * pass_number(num, rates, backward, "start", *rates.fit.start));
  const auto read = num.given("bytes", work.bytes, "queries, keys, values and results");
  const auto moved = backward
                         ? program::backward_passes *
                               (read + num.given("shared bytes", work.shared, "keys and values of every query head"))
                         : read;
  const auto passes = pass_number(num, rates, backward, "passes", rates.fit.passes);
  return busy + passes * (moved / main_memory(num, rates.chip, rates.sources));
}

template <class N>
NumberOf<N, Seconds> decode_time(const N& num, const DecodeRates& rates, double items, double head_dim, Bytes bytes) {
  const hardware::DecodeCalibration& fit = rates.fit;
  const CoreRates& chip = rates.chip;
  const SourceTable* sources = rates.sources;
  // FlashAttention's rule: two blocks fit on a core, and nothing is split where there are 0.8 times as many.
  constexpr double parts = 0.8 * 2.0;
  const auto share = [&] {
    if (head_dim > hardware::wide_head)
      return num.given("share of wide heads", fit.wide, sources, "attention.decode.wide");
    const auto split = num.given("share", fit.share, sources, "attention.decode.share");
    if (!(items >= parts * chip.cores)) return split;
    return split * num.given("crowded", fit.crowded, sources, "attention.decode.crowded");
  }();
  const auto reading = num.given("bytes", bytes, "keys and values") / (share * main_memory(num, chip, sources));
  const auto each = num.given("item", fit.item, sources, "attention.decode.item");
  return num.named("reading the cache", reading) +
         num.given("items", items, "sequences x key-value heads") / core_count(num, chip, sources) * each;
}

template <class N>
NumberOf<N, Seconds> split_attention_time(const N& num, const AttentionRates& rates, const AttentionWork& work,
                                          double items) {
  const auto rows = num.given("tile rows", score_tile / 2.0, "queries"),
             side = num.given("tile columns", score_tile, "keys");
  const auto caches = num.given("items", items, "sequences x key-value heads");
  const auto queries = num.given("queries", work.queries, "of a sequence"),
             heads = num.given("heads", work.heads, "of all sequences");
  const auto met = num.given("keys per query", work.shape.mean_keys(), "on average");
  const auto tiles = num.named("tiles", caches * ceil(queries * heads / caches / rows) * met / side);
  const auto work_of_tiles = tiles * flops_of_score(num) * rows * side * head_elements(num, rates, work, false);
  return work_of_tiles / (attention_share(num, rates, work, false) * peak_of(num, rates));
}

template NumberOf<Plain, Seconds> attention_time(const Plain&, const AttentionRates&, const AttentionWork&, bool);
template NumberOf<Traced, Seconds> attention_time(const Traced&, const AttentionRates&, const AttentionWork&, bool);
template NumberOf<Plain, Seconds> decode_time(const Plain&, const DecodeRates&, double, double, Bytes);
template NumberOf<Traced, Seconds> decode_time(const Traced&, const DecodeRates&, double, double, Bytes);
template NumberOf<Plain, Seconds> split_attention_time(const Plain&, const AttentionRates&, const AttentionWork&,
                                                       double);
template NumberOf<Traced, Seconds> split_attention_time(const Traced&, const AttentionRates&, const AttentionWork&,
                                                        double);

const hardware::AttentionKernelCalibration* attention_kernel(const hardware::AttentionCalibration& fit,
                                                             hardware::AttentionKernel choice) {
  const auto* flash2 = fit.flash2 ? &*fit.flash2 : nullptr;
  const auto* cudnn = fit.cudnn ? &*fit.cudnn : nullptr;
  if (choice == hardware::AttentionKernel::flash2) return flash2 ? flash2 : cudnn;
  return cudnn ? cudnn : flash2;
}

}  // namespace assay::kernel
