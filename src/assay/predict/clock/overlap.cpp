#include "assay/predict/clock/overlap.h"

#include <algorithm>
#include <utility>

#include "assay/base/index.h"
#include "assay/predict/clock/lanes.h"

namespace assay::clock {
namespace {

/// Hidden seconds below this share of a collective are rounding.
constexpr double negligible = 1e-12;

/// Places the steps of one pass.
class PassLayout {
 public:
  PassLayout(const program::Program& program, const program::Block& block, const StepTimes& times)
      : program_(program), times_(times), share_(times.chip_share) {
    for (std::size_t b = 0; b < times.host_waits.size(); ++b)
      if (program.blocks[b].first == block.first) host_wait_ = times.host_waits[b].value();
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[at(i)];
      const StepTime& time = times.steps[at(i)];
      if (step.once) continue;
      if (!program::is_collective(step.op)) {
        add_work(i, time.time.value());
        continue;
      }
      // What is gathered is copied out of its buffer, what is reduced into it.
      const bool copies_first = !program::gathers(step.collective);
      if (copies_first) add_work(i, time.copies.value());
      if (time.is_background) {
        background_.push_back(i);
      } else if (time.time > Seconds()) {
        parts_.push_back({i, true, time.time.value(), {}, {}});
      }
      if (!copies_first) add_work(i, time.copies.value());
    }
    for (const Part& part : parts_)
      if (part.is_wait)
        host_wait_ -= (times_.steps[at(part.step)].waited - times_.steps[at(part.step)].exposed).value();
    host_wait_ = std::max(0.0, host_wait_);
    hide();
  }

  /// Adds the bars of the pass from `start` on; returns when it ends.
  double place(double start, OverlapSchedule& schedule) {
    items_.clear();
    steps_.clear();
    bars_.clear();
    add(Item::Kind::block, nobody, start);
    for (const Part& part : parts_) {
      if (part.is_wait) {
        add(Item::Kind::collective, part.step, part.seconds);
        continue;
      }
      for (const Piece& piece : part.first) add_beside(part.step, piece);
      add(Item::Kind::kernel, part.step, part.seconds);
      for (auto piece = part.last.rbegin(); piece != part.last.rend(); ++piece) add_beside(part.step, *piece);
    }
    add(Item::Kind::launch, nobody, host_wait_);  // what it did not spend waiting for collectives
    for (const std::int32_t i : background_) add(Item::Kind::block, nobody, times_.steps[at(i)].exposed.value());
    const double end = draw(schedule);
    place_background(start, end);
    for (const Bar& bar : bars_)
      schedule.steps.push_back({bar.step, lane_of(bar.step, schedule.lanes), Seconds(bar.start), Seconds(bar.end),
                                times_.steps[at(bar.step)].time});
    return end;
  }

 private:
  struct Piece {
    double seconds = 0;  ///< of the kernel, if nothing slows it
    std::int32_t collective = 0;
  };
  static constexpr std::int32_t nobody = -1;
  /// A kernel, copies of a collective, or the part of a collective that is waited for.
  struct Part {
    std::int32_t step = 0;
    bool is_wait = false;
    double seconds = 0;              ///< of a kernel: that hide nothing
    std::vector<Piece> first, last;  ///< at its start, and from its end on
  };
  struct Bar {
    std::int32_t step = 0;
    double start = 0, end = 0;
  };

  void add_work(std::int32_t step, double seconds) {
    if (seconds > 0.0) parts_.push_back({step, false, seconds, {}, {}});
  }

  /// An item that follows all others; collectives are on the network.
  void add(Item::Kind kind, std::int32_t step, double seconds) {
    if (seconds <= 0.0) return;
    const bool moves = kind == Item::Kind::collective;
    items_.push_back({kind, moves ? network_lane : chip_lane, Seconds(seconds), last_});
    steps_.push_back(step);
    last_ = {static_cast<std::int32_t>(items_.size()) - 1};
  }
  /// A piece of a kernel, and the part of a collective that runs beside it.
  void add_beside(std::int32_t kernel, const Piece& piece) {
    const std::vector<std::int32_t> before = last_;
    add(Item::Kind::kernel, kernel, piece.seconds);
    items_.push_back({Item::Kind::collective, network_lane, Seconds(slowed(piece.seconds)), before, share_});
    steps_.push_back(piece.collective);
    last_.push_back(static_cast<std::int32_t>(items_.size()) - 1);
  }
  /// Runs the items on the clock: kernels become bars of the chip, collectives bars for the network. Returns the end.
  double draw(OverlapSchedule& schedule) {
    double end = 0.0;
    std::int32_t on_chip = nobody;
    const std::vector<ItemSpan> spans = run(items_);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const auto& [from, to] = spans[i];
      end = std::max(end, to.value());
      if (items_[i].kind == Item::Kind::collective) add_bar(steps_[i], from.value(), to.value());
      if (items_[i].lane != chip_lane) continue;
      const std::int32_t step = std::exchange(on_chip, steps_[i]);
      if (items_[i].kind != Item::Kind::kernel) continue;
      if (step == on_chip) {
        schedule.steps.back().end = to;
        continue;
      }
      const bool is_copy = program::is_collective(program_.steps[at(on_chip)].op);
      const StepTime& time = times_.steps[at(on_chip)];
      schedule.steps.push_back({on_chip, 0, from, to, is_copy ? time.copies : time.time});
    }
    last_.clear();
    return end;
  }
  double slowed(double seconds) const { return seconds / (1.0 - share_); }

  /// Assigns to each collective the kernels that hide it: those that it names, then the ones closest to it.
  void hide() {
    std::vector<double> left(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].is_wait) continue;
      const StepTime& time = times_.steps[at(parts_[i].step)];
      left[i] = (time.time - time.waited).value();
      for (const std::int32_t kernel : time.hidden_by)
        for (std::size_t k = 0; k < parts_.size(); ++k)
          if (parts_[k].step == kernel) take(i, k, left[i]);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].is_wait) continue;
      const bool is_ahead = program::gathers(program_.steps[at(parts_[i].step)].collective);
      for (const bool after : {is_ahead, !is_ahead})
        for (std::size_t k = i; after ? ++k < parts_.size() : k-- > 0;) take(i, k, left[i]);
      const StepTime& time = times_.steps[at(parts_[i].step)];
      const double hidden = (time.time - time.waited).value() - left[i];
      parts_[i].seconds = std::max(0.0, time.time.value() - slowed(hidden));
    }
  }

  /// Lets kernel `k` hide up to `left` seconds of collective `i`, at its end that is closer to the collective.
  void take(std::size_t i, std::size_t k, double& left) {
    Part& kernel = parts_[k];
    if (kernel.is_wait || left <= negligible * times_.steps[at(parts_[i].step)].time.value()) return;
    const double taken = std::min(left, kernel.seconds);
    if (taken <= 0.0) return;
    (k > i ? kernel.first : kernel.last).push_back({taken, parts_[i].step});
    kernel.seconds -= taken;
    left -= taken;
  }

  /// A part of a collective, joined to the one before it.
  void add_bar(std::int32_t step, double start, double end) {
    if (end <= start) return;
    if (!bars_.empty() && bars_.back().step == step && bars_.back().end == start)
      bars_.back().end = end;
    else
      bars_.push_back({step, start, end});
  }

  /// Fills the time from `start` to `end` in which no collective uses the same links.
  void place_background(double start, double end) {
    std::uint32_t links = 0;
    for (const std::int32_t i : background_) links |= times_.steps[at(i)].links;
    const std::vector<Bar> others = bars_;
    auto other = others.begin();
    double now = start;
    for (const std::int32_t i : background_) {
      double left = times_.steps[at(i)].time.value();
      const double least = negligible * left;
      while (left > least && now < end) {
        while (other != others.end() && !(times_.steps[at(other->step)].links & links)) ++other;
        const double until = other == others.end() ? end : other->start;
        const double seconds = std::min(left, std::max(0.0, until - now));
        add_bar(i, now, now + seconds);
        now += seconds;
        left -= seconds;
        if (left > least && other != others.end()) now = (other++)->end;
      }
    }
  }

  std::int32_t lane_of(std::int32_t step, std::vector<program::AxisSet>& lanes) const {
    const program::AxisSet axes = program_.steps[at(step)].axes;
    const auto known = std::find(lanes.begin(), lanes.end(), axes);
    const auto lane = static_cast<std::int32_t>(known - lanes.begin()) + 1;
    if (known == lanes.end()) lanes.push_back(axes);
    return lane;
  }

  const program::Program& program_;
  const StepTimes& times_;
  double share_;
  double host_wait_ = 0;  ///< placed at the end of the pass
  std::vector<Part> parts_;
  std::vector<Item> items_;          ///< of the clock
  std::vector<std::int32_t> steps_;  ///< of the items
  std::vector<std::int32_t> last_;   ///< the items that the next one follows
  std::vector<std::int32_t> background_;
  std::vector<Bar> bars_;  ///< of collectives
};

}  // namespace

OverlapSchedule schedule_blocks(const program::Program& program, const std::vector<program::Block>& blocks,
                                const StepTimes& times, const HostCopies& copies) {
  OverlapSchedule schedule;
  Seconds now, out_free, in_free, before_last, last_start;
  for (const program::Block& block : blocks) {
    if (copies.in > Seconds() && block.phase == program::Phase::backward) {
      const Seconds start = std::max(in_free, last_start);
      in_free = start + copies.in;
      schedule.copies.push_back({true, start, in_free});
      now = std::max(now, in_free);
    } else if (block.phase == program::Phase::forward) {
      now = std::max(now, before_last);
    }
    before_last = out_free;
    last_start = now;
    now = Seconds(PassLayout(program, block, times).place(now.value(), schedule));
    schedule.passes.push_back(now);
    if (copies.out > Seconds() && block.phase == program::Phase::forward) {
      const Seconds start = std::max(out_free, now);
      out_free = start + copies.out;
      schedule.copies.push_back({false, start, out_free});
    }
  }
  schedule.end = now;
  return schedule;
}

}  // namespace assay::clock
