#include "assay/profile/compare/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "assay/base/text.h"
#include "assay/hardware/chip.h"

namespace assay::compare {
namespace {

/// What a change is assumed to leave where no engine prices it: most likely, with the least and with the most saved.
/// Chosen, not fitted: docs/profile.md.
struct Assumed {
  double likely, least, most;
};
constexpr Assumed of_longest_update{2.0, 3.0, 1.5};  ///< one kernel for all, over the longest operation
constexpr Assumed of_short_peak{0.5, 0.25, 0.75};    ///< rate of products in bf16, over its peak
constexpr Assumed of_others_price{1.0, 1.3, 0.8};    ///< padded products, over the price at the others' rate
constexpr Assumed of_between_heads{0.0, 0.3, 0.0};   ///< softmax and masks, once attention is one kernel
constexpr Assumed of_needless{0.0, 0.5, 0.0};        ///< kernels that a change takes away

using Kind = MeasuredCall::Kind;

class Savings {
 public:
  Savings(const MeasuredStep& measured, const trace::Vocabulary& vocabulary, const hardware::Chip* chip)
      : measured_(measured), vocabulary_(vocabulary), chip_(chip) {}

  std::vector<Saving> find() {
    add_host();
    add_attention();
    add_compilation();
    add_update();
    add_formats();
    add_padding();
    add_tuning();
    add_traffic();
    add_needless();
    return std::move(out_);
  }

 private:
  /// Adds what is more than nothing.
  void add(std::string id, Seconds saved, Seconds least, Seconds most, std::string reason,
           std::vector<std::pair<GapKind, std::string>> items) {
    most = std::min(most, trace::seconds(measured_.total));
    if (!(most > Seconds(0))) return;
    saved = std::clamp(saved, Seconds(0), most);
    out_.push_back(
        {std::move(id), saved, std::clamp(least, Seconds(0), saved), most, std::move(reason), std::move(items)});
  }
  static Seconds time_of(const MeasuredCall& call) { return trace::seconds(call.alone); }
  /// Whether the device waits for its host behind a call: if the call took less, the device would wait longer.
  bool host_follows(const MeasuredCall& call) const {
    const auto next = static_cast<std::size_t>(&call - measured_.calls.data()) + 1;
    return next < measured_.calls.size() && measured_.calls[next].late > 0;
  }
  const std::string& category(const MeasuredCall& call) const { return vocabulary_.categories[call.category].id; }
  bool updates(const MeasuredCall& call) const { return vocabulary_.categories[call.category].optimizer; }

  /// Idle time before kernels that the host launched late; while its profiler is on, a host takes longer.
  void add_host() {
    Seconds paused, longest;
    const MeasuredCall* after = nullptr;
    std::int64_t kernels = 0;
    bool launches = false, trains = false;
    trace::Ticks paused_ticks = 0;
    for (const MeasuredCall& call : measured_.calls) trains |= call.backward || updates(call);
    for (const MeasuredCall& call : measured_.calls) {
      constexpr std::int64_t few = 8;
      const bool first = kernels < few;
      kernels += call.kernels;
      launches |= call.launched.has_value();
      const Seconds late = trace::seconds(call.late);
      if (!(late > vocabulary_.host.pause)) continue;
      paused_ticks += call.late;
      if (first && !trains) continue;  // a server waits for requests between its steps
      paused += late;
      if (late > longest) longest = late, after = &call;
    }
    const Seconds idle = trace::seconds(measured_.host_gaps - paused_ticks);
    const std::string waits = fmt::format("the device waits {} for {} launches", human(idle), kernels);
    constexpr double replays = 0.5, profiler = 0.5;
    add(measured_.replayed_share > replays ? "ahead" : "capture", idle, profiler * idle, idle, waits,
        {{GapKind::host, ""}});
    // What comes between a profiler's start and the first whole step says nothing of the program.
    if (after && !measured_.name.empty())
      add("pause", paused, Seconds(0), paused,
          fmt::format("the host pauses, longest {} before {:.40}", human(longest), after->label),
          {{GapKind::pauses, ""}});
    if (launches || kernels == 0) return;
    const Seconds gaps = trace::seconds(measured_.other_gaps) - static_cast<double>(kernels) * vocabulary_.host.between;
    add("feed", 0.5 * gaps, Seconds(0), gaps, fmt::format("idle for {}; the profile lacks launches", human(gaps)),
        {{GapKind::gaps, ""}});
  }

  bool fuses(const MeasuredCall& call) const {
    constexpr std::string_view classes[] = {"element-wise", "reduction", "normalization", "fill"};
    return call.kind == Kind::other && !call.fused &&
           std::find(std::begin(classes), std::end(classes), category(call)) != std::end(classes);
  }

  /// Between the products of each head with a softmax: fused attention keeps all of it on the chip.
  void add_attention() {
    std::size_t first = 0;
    bool open = false, softmax = false;
    Seconds between, products, gap;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      const MeasuredCall& call = measured_.calls[i];
      softmax |= call.names.find("softmax") != std::string::npos;
      gap += time_of(call);
      if (call.kind == Kind::other) continue;
      const bool heads = call.kind == Kind::product && call.dims[0].size() == 3 && call.dims[1].size() == 3;
      if (heads) products += time_of(call);
      if (heads && open && softmax) {
        between += gap - time_of(call);
        ++count;
        in_attention_.resize(measured_.calls.size());
        std::fill(in_attention_.begin() + static_cast<std::ptrdiff_t>(first),
                  in_attention_.begin() + static_cast<std::ptrdiff_t>(i), true);
      }
      first = i, open = heads, softmax = false, gap = Seconds(0);
    }
    constexpr double part = 0.5;  // of products that move scores, too
    if (count > 0)
      add("fused-attention", between, (1.0 - of_between_heads.least) * between, between + part * products,
          fmt::format("softmax and masks between {} pairs of products: {}", count, human(between)),
          {{GapKind::kernels, "attention"}});
  }

  /// Kernels between two products: one fused kernel moves at least what the longest of those moves that it replaces.
  using Chain = std::vector<const MeasuredCall*>;
  Seconds longest_kernel(const MeasuredCall& call) const {
    return trace::seconds(call.alone) / static_cast<double>(std::max<std::int64_t>(1, call.kernels));
  }
  /// What is saved where each part of a chain becomes one kernel; a part ends where `ends` says so of the next call.
  template <class Ends>
  Seconds fused(const Chain& calls, const Ends& ends) const {
    Seconds saved, part, longest;
    bool reduced = false;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i > 0 && ends(i, reduced)) {
        saved += part - longest;
        part = longest = Seconds(0);
        reduced = false;
      }
      part += time_of(*calls[i]);
      longest = std::max(longest, longest_kernel(*calls[i]));
      reduced |= category(*calls[i]) == "reduction";
    }
    return saved + part - longest;
  }
  /// After how many calls a chain repeats itself, each time for other tensors; 0: it does not.
  static std::size_t period(const Chain& calls) {
    constexpr std::size_t longest = 64;
    for (std::size_t period = 1; period <= std::min(longest, calls.size() / 2); ++period)
      if (std::equal(calls.begin() + static_cast<std::ptrdiff_t>(period), calls.end(), calls.begin(),
                     [](const MeasuredCall* a, const MeasuredCall* b) { return a->label == b->label; }))
        return period;
    return 0;
  }
  void close(Chain& chain, Saving& all) const {
    const auto reduces = [&](std::size_t i) { return category(*chain[i]) == "reduction"; };
    const std::size_t every = period(chain);
    const auto repeats = [&](std::size_t i) { return every > 0 && i % every == 0; };
    all.saved += fused(chain, [&](std::size_t i, bool reduced) { return repeats(i) || (reduced && reduces(i)); });
    all.least += fused(chain, [&](std::size_t i, bool) {
      return repeats(i) || reduces(i - 1) || chain[i - 1]->elements != chain[i]->elements;
    });
    all.most += fused(chain, [](std::size_t, bool) { return false; });
    chain.clear();
  }

  void add_compilation() {
    Seconds compiled, open;
    double kernels = 0;
    Chain chain;
    Saving all;
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      const MeasuredCall& call = measured_.calls[i];
      if (call.fused) compiled += time_of(call);
      if (!fuses(call) || (!in_attention_.empty() && in_attention_[i])) {
        close(chain, all);
        continue;
      }
      open += time_of(call);
      kernels += static_cast<double>(call.kernels);
      chain.push_back(&call);
    }
    close(chain, all);
    if (compiled > open) return;  // a compiler has left them apart
    add("compile", all.saved, all.least, all.most + kernels * vocabulary_.host.between,
        fmt::format("{:.0f} kernels between products: {} -> {}", kernels, human(open), human(open - all.saved)), {});
  }

  /// An update by several operations: one kernel for all moves about twice what the longest of them moves.
  void add_update() {
    std::map<std::string_view, Seconds> by_operation;
    Seconds all, longest;
    std::int64_t kernels = 0;
    for (const MeasuredCall& call : measured_.calls)
      if (updates(call)) {
        all += time_of(call), kernels += call.kernels;
        longest = std::max(longest, by_operation[call.label] += time_of(call));
      }
    const auto left = [&](double share) { return all - share * longest; };
    add("update", left(of_longest_update.likely), left(of_longest_update.least), left(of_longest_update.most),
        fmt::format("{} kernels of {} operations: {} -> {}", kernels, by_operation.size(), human(all),
                    human(of_longest_update.likely * longest)),
        {{GapKind::kernels, "update"}});
  }

  std::optional<FlopsPerSecond> peak(Dtype format) const {
    if (!chip_) return std::nullopt;
    const auto found = hardware::peak_rate(*chip_, format, "");
    return found ? std::optional(found->value) : std::nullopt;
  }

  /// Products in fp32 that do not use units for shorter formats.
  bool is_wide(const MeasuredCall& call) const {
    const trace::RemedyText* formats = vocabulary_.remedy("formats");
    return call.kind != Kind::other && call.format == Dtype::fp32 && call.flops > Flops(0) &&
           !(formats && contains_any(lower_case(call.kernel), formats->without));
  }
  void add_formats() {
    const auto short_peak = peak(Dtype::bf16);
    if (!short_peak) return;
    constexpr Seconds shortest = 5_us;  // of a kernel that is not bound by its work
    constexpr double reached[] = {of_short_peak.likely, of_short_peak.least, of_short_peak.most};
    Seconds all, priced[3];
    std::int64_t count = 0;
    for (const MeasuredCall& call : measured_.calls) {
      if (!is_wide(call) || host_follows(call)) continue;
      all += time_of(call), ++count;
      for (std::size_t i = 0; i < 3; ++i)
        priced[i] += std::min(time_of(call), std::max(shortest, call.flops / (reached[i] * *short_peak)));
    }
    add("formats", all - priced[0], all - priced[1], all - priced[2],
        fmt::format("{} products in fp32: {} -> {} at half of bf16's peak", count, human(all), human(priced[0])),
        {{GapKind::kernels, "products"}});
  }

  static bool is_product(const MeasuredCall& call) {
    return call.kind == Kind::product && call.flops > Flops(0) && call.alone > 0 && call.dims[0].size() == 2;
  }
  /// Sizes of weights whose rows do not begin at whole loads of 16 bytes.
  std::set<std::int64_t> odd_sizes() const {
    constexpr std::int64_t least = 512;  // smaller ones are no large part of a step
    std::set<std::int64_t> out;
    for (const MeasuredCall& call : measured_.calls) {
      if (!is_product(call) || call.backward || !call.format || call.dims[1].size() != 2) continue;
      const auto per_load = static_cast<std::int64_t>(16_B / storage(*call.format, 1));
      for (const std::int64_t size : call.dims[1])
        if (size >= least && size % per_load != 0) out.insert(size);
    }
    return out;
  }
  static bool has_size(const MeasuredCall& call, const std::set<std::int64_t>& sizes) {
    for (const auto& dims : call.dims)
      for (const std::int64_t size : dims)
        if (sizes.contains(size)) return true;
    return false;
  }

  void add_padding() {
    odd_ = odd_sizes();
    if (odd_.empty()) return;
    Seconds padded_time, other_time;
    Flops padded, others;
    std::int64_t count = 0;
    for (const MeasuredCall& call : measured_.calls) {
      if (!is_product(call) || is_wide(call) || host_follows(call)) continue;
      const bool odd = has_size(call, odd_);
      (odd ? padded_time : other_time) += time_of(call);
      (odd ? padded : others) += call.flops;
      count += odd ? 1 : 0;
    }
    if (!(others > Flops(0)) || !(padded > Flops(0))) return;
    const Seconds price = padded / (others / other_time);
    add("pad", padded_time - price, padded_time - of_others_price.least * price,
        padded_time - of_others_price.most * price,
        fmt::format("{} products of size {}: {} -> {} at others' rate", count, *odd_.rbegin(), human(padded_time),
                    human(price)),
        {{GapKind::kernels, "products"}});
  }

  /// Large products that reach less than the best of the profile.
  void add_tuning() {
    constexpr double attainable = 0.8, notable = 0.01;  // of the peak; of the time of all products
    Seconds all;
    std::map<std::vector<std::int64_t>, std::pair<Seconds, Flops>> sizes;
    const auto tuned = [&](const MeasuredCall& call) {
      return is_product(call) && call.format && !is_wide(call) && !has_size(call, odd_) && !host_follows(call);
    };
    for (const MeasuredCall& call : measured_.calls) {
      if (!tuned(call)) continue;
      std::vector<std::int64_t> size = call.dims[0];
      size.push_back(call.dims[1].back());
      auto& [time, flops] = sizes[size];
      time += time_of(call), flops += call.flops;
      all += time_of(call);
    }
    FlopsPerSecond best;
    for (const auto& [size, of] : sizes)
      if (of.first > notable * all) best = std::max(best, of.second / of.first);
    Seconds time, price[2];
    for (const MeasuredCall& call : measured_.calls) {
      if (!tuned(call)) continue;
      const auto ceiling = peak(*call.format);
      if (!ceiling) return;
      const double m = static_cast<double>(call.dims[0][0]), k = static_cast<double>(call.dims[0][1]),
                   n = static_cast<double>(call.dims[1].back());
      const Seconds loads =
          storage(*call.format, 1) * (m * k + k * n + m * n) / (attainable * chip_->hbm().bandwidth->value);
      const FlopsPerSecond goals[] = {std::min(best, attainable * *ceiling), attainable * *ceiling};
      time += time_of(call);
      for (std::size_t i = 0; i < 2; ++i) price[i] += std::min(time_of(call), std::max(loads, call.flops / goals[i]));
    }
    add("tune", time - price[0], Seconds(0), time - price[1],
        fmt::format("products: {} -> {} at the best one's rate", human(time), human(price[0])),
        {{GapKind::kernels, "products"}});
  }

  /// What is copied or sent beside computation takes no time of its own, as far as there is computation.
  void add_traffic() {
    Seconds exposed, waited, copied, computed;
    for (const MeasuredCall& call : measured_.calls) {
      if (call.work == trace::WorkClass::computation) computed += time_of(call);
      if (call.work == trace::WorkClass::communication) {
        exposed += trace::seconds(call.alone - call.waited);
        waited += trace::seconds(call.waited);
      }
      if (call.work == trace::WorkClass::copy) copied += time_of(call);
    }
    constexpr double part = 0.5;  // what depends on a copy or a collective at once cannot run beside it
    const auto hidden = [&](Seconds time) { return std::min(time, computed); };
    add("overlap", hidden(part * exposed), Seconds(0), hidden(exposed),
        fmt::format("{} of collectives run alone", human(exposed)), {{GapKind::communication, ""}});
    add("balance", waited, part * waited, waited, fmt::format("collectives wait {} for the last rank", human(waited)),
        {{GapKind::waiting, ""}});
    add("copies", hidden(part * copied), Seconds(0), hidden(copied),
        fmt::format("{} of copies run alone", human(copied)), {{GapKind::copies, ""}});
    if (copied > computed)
      add("resident", part * copied, Seconds(0), copied,
          fmt::format("{} of copies, {} of computation", human(copied), human(computed)), {{GapKind::copies, ""}});
  }

  /// Kernels that are not needed at all after a change.
  void add_needless() {
    for (const trace::RemedyText& remedy : vocabulary_.remedies) {
      if (remedy.kernels.empty()) continue;
      Seconds all;
      std::int64_t count = 0;
      for (const MeasuredCall& call : measured_.calls)
        if (contains_any(lower_case(call.kernel), remedy.kernels)) all += time_of(call), count += call.kernels;
      add(remedy.id, all, of_needless.least * all, all, fmt::format("{} such kernels take {}", count, human(all)), {});
    }
  }

  const MeasuredStep& measured_;
  const trace::Vocabulary& vocabulary_;
  const hardware::Chip* chip_;
  std::set<std::int64_t> odd_;
  std::vector<bool> in_attention_;  ///< by call; empty: none is
  std::vector<Saving> out_;
};

}  // namespace

std::vector<Saving> savings_of(const MeasuredStep& measured, const trace::Vocabulary& vocabulary,
                               const hardware::Chip* chip) {
  return Savings(measured, vocabulary, chip).find();
}

}  // namespace assay::compare
