#include "assay/predict/clock/lanes.h"

#include <algorithm>

#include "assay/base/index.h"

namespace assay::clock {
namespace {

class Lanes {
 public:
  explicit Lanes(const std::vector<Item>& items) : items_(items), spans_(items.size()), ended_(items.size(), 0) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::size_t lane = at(items[i].lane);
      if (lane >= lanes_.size()) lanes_.resize(lane + 1);
      lanes_[lane].queue.push_back(i);
    }
  }

  std::vector<ItemSpan> run() {
    while (start_items()) {
      pace_chip();
      now_ = next_end();
      for (Lane& lane : lanes_)
        if (lane.runs && spans_[lane.queue[lane.next]].end <= now_) {
          ended_[lane.queue[lane.next++]] = 1;
          lane.runs = false;
        }
    }
    return std::move(spans_);
  }

 private:
  struct Lane {
    std::vector<std::size_t> queue;
    std::size_t next = 0;
    bool runs = false;
  };

  /// Starts what can start; false once nothing runs.
  bool start_items() {
    bool any = false;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      Lane& lane = lanes_[l];
      if (!lane.runs && lane.next < lane.queue.size() && is_ready(lane.queue[lane.next])) {
        const std::size_t item = lane.queue[lane.next];
        lane.runs = true;
        spans_[item] = {now_, now_ + items_[item].time};
        if (l == at(chip_lane)) {
          left_ = items_[item].time;
          since_ = now_;
          pace_ = 1.0;
        }
      }
      any |= lane.runs;
    }
    return any;
  }

  bool is_ready(std::size_t item) const {
    return std::all_of(items_[item].after.begin(), items_[item].after.end(),
                       [&](std::int32_t before) { return ended_[at(before)] != 0; });
  }

  /// The end of what the chip runs, at the pace that the other lanes leave it.
  void pace_chip() {
    if (lanes_.empty() || !lanes_[at(chip_lane)].runs) return;
    double taken = 0.0;
    for (const Lane& lane : lanes_)
      if (lane.runs) taken += items_[lane.queue[lane.next]].share;
    const double pace = std::max(0.0, 1.0 - taken);
    if (pace == pace_) return;
    left_ -= pace_ * (now_ - since_);
    since_ = now_;
    pace_ = pace;
    constexpr Seconds never(1e300);
    const Lane& chip = lanes_[at(chip_lane)];
    spans_[chip.queue[chip.next]].end = pace > 0.0 ? now_ + left_ / pace : never;
  }

  Seconds next_end() const {
    Seconds first(-1);
    for (const Lane& lane : lanes_)
      if (lane.runs)
        if (const Seconds end = spans_[lane.queue[lane.next]].end; first < Seconds(0) || end < first) first = end;
    return first;
  }

  const std::vector<Item>& items_;
  std::vector<ItemSpan> spans_;
  std::vector<char> ended_;
  std::vector<Lane> lanes_;
  Seconds now_;
  Seconds left_, since_;  ///< work of the chip's item at the time of the last change of pace
  double pace_ = 1;
};

}  // namespace

std::vector<ItemSpan> run(const std::vector<Item>& items) { return Lanes(items).run(); }

Totals totals(const std::vector<Item>& items) {
  Totals out;
  Seconds chip_free;
  run(items, [&](std::size_t item, std::int32_t lane, Seconds start, Seconds end) {
    const Item& one = items[item];
    out.whole = std::max(out.whole, end);
    if (one.kind == Item::Kind::kernel) out.computation += one.time;
    if (one.kind == Item::Kind::collective) out.communication += one.time;
    if (lane != chip_lane) return;
    out.exposed += (start - chip_free) + (end - (start + one.time));  // exactly 0 where nothing is in the way
    chip_free = end;
  });
  out.exposed += out.whole - chip_free;
  return out;
}

}  // namespace assay::clock
