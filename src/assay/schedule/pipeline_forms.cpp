#include "assay/schedule/pipeline_forms.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// Sizes and times as plain numbers: p stages, m microbatches, F, B and W of a whole stage, a hop c. A step is the work
/// of one stage and what it waits: for the work of others (`rest`), less what it does itself meanwhile.
struct Sizes {
  struct Times {
    double f, b, w;
  };
  double p, m, f, b, w, c;
  Times rest;
  bool at_end = false;                             // this stage is the first or the last one
  double k() const { return p - 1; }               // hops from the first stage to the last
  double work() const { return m * (f + b + w); }  // of one stage
  /// So many times F, B and W: on other stages, or taken off, where below zero, on this one or as little as on those.
  double path(double nf, double nb, double nw) const {
    return nf * (nf > 0 ? rest.f : std::min(f, rest.f)) + nb * (nb > 0 ? rest.b : std::min(b, rest.b)) +
           nw * (nw > 0 ? rest.w : std::min(w, rest.w));
  }
  double trip() const { return path(k(), k(), 0) + 2 * k() * c; }  // to the last stage and back, the ends left out
};

PipelineForm form(const Sizes& s, double makespan, double interval, bool exact) {
  return {Seconds(s.work() + makespan), Seconds(s.work() + interval), exact, exact};
}

/// How often the longest path turns between the first and the last stage after the first trip: once per p microbatches
/// that a round trip with p of them in flight takes, and a turn over d hops uses up d + 1 of them.
double turns(double p, double m) { return std::max(0.0, m - 1 - std::ceil((m - 1) / p)); }

PipelineForm gpipe_form(const Sizes& s) {
  const double wait = s.path(s.k(), s.k(), s.k()) + 2 * s.k() * s.c;
  return form(s, wait, wait, true);
}

/// In the steady state p microbatches in flight share a round trip of 2(p-1) hops, so hops cost time with every one.
PipelineForm one_f_one_b_form(const Sizes& s) {
  const double hops = s.p > 1 ? s.k() + turns(s.p, s.m) : 0.0;
  const double wait = s.path(s.k(), s.k(), s.k()) + 2 * hops * s.c;
  return form(s, wait, wait, true);
}

PipelineForm interleaved_form(const Sizes& s, double v) {
  const double hops = s.p > 1 ? 2 * (s.p * v - 1) : 0.0, chunks = s.k() / v;
  const double wait = s.path(chunks, chunks, chunks) + hops * s.c;
  return form(s, wait, wait, s.c * v <= std::min(s.f, s.b + s.w));
}

bool hops_are_short(const Sizes& s, double chunks) { return s.c * chunks <= std::min({s.f, s.b, s.w}); }

/// A trip costs its forwards and input gradients, less what is done meanwhile: `ahead` forwards on the first stage, or
/// as many weight gradients on the way.
PipelineForm zb_h1_form(const Sizes& s) {
  if (s.p == 1) return form(s, 0, 0, true);
  const double ahead = std::min(s.m - 1, s.k()), turn = turns(s.p, s.m);
  double weights = -ahead * s.w + 2 * std::min(ahead, turn) * s.c;
  if (turn > ahead) weights = std::max(weights, turn * (2 * s.c - s.w));
  const double wait = std::max(weights, -ahead * s.f);
  const double last = -ahead * s.b + (s.m > s.p ? s.k() : ahead - 2) * s.c;  // weight gradients end on the last stage
  return form(s, s.trip() + std::max(wait, last), s.trip() + wait, hops_are_short(s, 1));
}

PipelineForm zb_h2_form(const Sizes& s) {
  if (s.p == 1) return form(s, 0, 0, true);
  const double ahead = std::min(s.m - 1, 2 * s.k()), both = std::floor(ahead / 2), odd = ahead - 2 * both;
  const double filled = s.trip() - std::min(ahead * s.f, ahead * s.w), left = s.k() - both;
  const double last = s.path(s.k(), left, 0) + (2 * s.k() - both) * s.c - odd * std::min({s.f, s.b + s.c, s.w});
  const double taken = s.path(left, left, 0) + 2 * left * s.c - odd * std::min(s.f, s.w);
  return form(s, std::max(filled, last), std::max(filled, taken), hops_are_short(s, 1));
}

/// Up to p microbatches, each wave follows the last one down the V and back.
double zb_v_few(const Sizes& s) {
  const double k = s.k(), ahead = s.m - 1;
  return std::max({s.path(k - ahead, k, 0), s.path(k - ahead / 2, k - ahead / 2, 0), s.path(k, k - ahead, -ahead),
                   s.path(k, k - 1.5 * ahead, -ahead / 2)});
}

/// Between p and 2p-1 microbatches, without hops: d more than stages, e too few for the steady state. Each line is a
/// longest path for some ratio of F, B and W, in halves of them, as a stage has two chunks.
PipelineForm zb_v_between(const Sizes& s) {
  const double k = s.k(), d = s.m - s.p, e = k - d;
  const double shared = std::max({
      s.path(0, 2 * k, -2 * d),
      s.path(0, 2 * e, 0),
      s.path(e, e, 0),
      s.path(k + d - 1, e + 1, -2 * d),
      s.path(k + d, e - d, -d),
      s.path(k + d, e, -2 * d - 1),
      s.path(2 * k, -k, -k),
      s.path(2 * k, -d, d - 2 * k),
      s.path(2 * k, 0, -2 * k - 1),
  });
  const double makespan = std::max({
      shared,
      s.path(0, e + 1, d - 1),
      s.path(e + 1, 0, d - 1),
      s.path(k + d - 1, 1 - d, 0),
      s.path(k + d, -d, -1),
      s.path(0, k + e, -e),
      s.path(k + d - 1, e - d + 1, -e),
      s.path(k + d, e - d, -e - 1),
      s.path(2 * k, -k, -2 * e - 1),
      s.path(2 * k, -d, -3 * e - 1),
  });
  const double interval = std::max({
      0.0,
      shared,
      s.path(-k, e + 1, d - 1),
      s.path(1 - d, 0, d - 1),
      s.path(-d, 2 * e + 1, d - e - 1),
      s.path(-d, k + e, -e),
      s.path(d - 1, 1 - d, 0),
      s.path(e + 1 - d, e, d - 1 - e),
      s.path(k - 1, e + 1 - d, -e),
  });
  return form(s, makespan / 2, interval / 2, s.c == 0);
}

/// Each line is a longest path for some ratio of F, B and W; with F = B = W the interval's are all zero.
PipelineForm zb_v_form(const Sizes& s) {
  const double k = s.k(), c = s.c;
  if (k == 0) return form(s, 0, 0, true);
  if (s.m <= s.p) return form(s, zb_v_few(s), zb_v_few(s), c == 0);
  if (s.m < 2 * s.p - 1) return zb_v_between(s);
  const double shared = std::max({
      s.path(0, k, -k) + (6 * k - 2) * c,
      s.path(k, 0, -k - 0.5) + 4 * k * c,
      s.path(k - 0.5, 0.5, -k) + (4 * k - 2) * c,
  });
  const double makespan = std::max({
      shared,
      s.path(k - 0.5, -(k - 1) / 2, 0) + (3 * k - 2) * c,
      s.path(0, k / 2, 0) + (5 * k - 2) * c,
      s.path(0, 0.5, (k - 1) / 2) + 3 * k * c,
      s.path(0.5, 0, (k - 1) / 2) + (3 * k - 2) * c,
      s.path(k, -k / 2, -0.5) + 3 * k * c,
  });
  const double interval = std::max({
      0.0,
      shared,
      s.path(k, -k / 2, -k / 2) + 2 * k * c,
      s.path(-k / 2, 0.5, (k - 1) / 2) + 2 * k * c,
      s.path(-k / 2, k / 2, 0) + (4 * k - 2) * c,
      s.path((k - 1) / 2, -(k - 1) / 2, 0) + 2 * (k - 1) * c,
      s.path(-(k - 1) / 2, 0, (k - 1) / 2) + 2 * (k - 1) * c,
  });
  return form(s, makespan, interval, c == 0);
}

/// Microbatches come from both ends, so a slow stage has work of its own while it would wait: read off the simulation
/// with one pair of stages slower than the others, at the ends or in the middle.
double dualpipe_catches_up(const Sizes& s, double h) {
  const double f = std::max(0.0, s.f - s.rest.f), b = std::max(0.0, s.b - s.rest.b), w = std::max(0.0, s.w - s.rest.w);
  return s.at_end ? (2 * s.p - 3) * (f + b + w) : 2 * h * b + (2 * h + 2) * w;
}

PipelineForm dualpipe_form(const Sizes& s, double saving) {
  const double h = s.p / 2 - 1;  // hops from an end to the middle
  // A pair takes at least its longer half. The longest path has m - p/2 - 2 pairs.
  const double saved = std::min({saving, s.f, s.b + s.w});
  const double pairs = (s.m - s.p / 2 - 2) * saved;
  const bool exact = (s.c == 0 || saved == 0) && hops_are_short(s, 1);
  const auto wait = [&](double c) {
    if (h == 0) return (s.m / 2 + 1) * c - pairs;
    // A pair sends and receives as one, so hops are not hidden: the path turns as that of 1f1b does.
    const double more = (s.m - 2 * s.p) / 2, kept = more >= 2 ? 1 + std::floor((more - 2) / (s.p / 2)) : 0.0;
    return std::max(s.path(2 * h, 0, 0), s.path(h - 1, h, 0) + h * c) + std::max(0.0, s.path(0, h, -h) + h * c) +
           (6 * h + 2 + 2 * more - kept) * c - pairs - dualpipe_catches_up(s, h);
  };
  const double all = wait(saved == 0 ? s.c : 0.0);  // hops within a step of shorter pairs are left out
  PipelineForm result = form(s, all, all, exact);
  if (s.c > 0) {  // the stage that ends last need not be one that starts first
    result.interval = Seconds(s.work() + std::max(wait(0.0), all - h * (s.f + s.c)));
    result.interval_exact = false;
  }
  return result;
}

PipelineForm form_of(const PipelineShape& shape, const Sizes& s, Seconds pair_saving) {
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe_form(s);
    case PipelineSchedule::one_f_one_b:
      return one_f_one_b_form(s);
    case PipelineSchedule::interleaved:
      return shape.chunks == 1 ? one_f_one_b_form(s) : interleaved_form(s, static_cast<double>(shape.chunks));
    case PipelineSchedule::zb_h1:
      return zb_h1_form(s);
    case PipelineSchedule::zb_h2:
      return zb_h2_form(s);
    case PipelineSchedule::zb_v:
      return zb_v_form(s);
    case PipelineSchedule::dualpipe:
      return dualpipe_form(s, pair_saving.value());
  }
  throw InternalError("unknown pipeline schedule");
}

Sizes sizes_of(const PipelineShape& shape, const StageTimes& stage, const StageTimes& others, Seconds transfer,
               bool at_end) {
  return {static_cast<double>(shape.stages),
          static_cast<double>(shape.microbatches),
          stage.forward.value(),
          stage.backward_input.value(),
          stage.backward_weight.value(),
          transfer.value(),
          {others.forward.value(), others.backward_input.value(), others.backward_weight.value()},
          at_end};
}

}  // namespace

PipelineForm pipeline_form(const PipelineShape& shape, const StageTimes& stage, Seconds transfer, Seconds pair_saving) {
  return form_of(shape, sizes_of(shape, stage, stage, transfer, false), pair_saving);
}

Seconds pipeline_bubble(const PipelineShape& shape, const StageTimes& slowest, const StageTimes& others, bool at_end) {
  const Sizes sizes = sizes_of(shape, slowest, others, {}, at_end);
  return std::max(Seconds(0), form_of(shape, sizes, {}).interval - Seconds(sizes.work()));
}

Seconds folded_bubble(const PipelineShape& shape, Seconds alike, const std::array<StageTimes, 2>& runs,
                      const StageTimes& others, bool at_end) {
  const auto& [first, second] = runs;
  const auto ahead = static_cast<double>(std::min(shape.microbatches - 1, 2 * (shape.stages - 1)));
  const auto above = [](Seconds time, Seconds than) { return std::max(Seconds(0), time - than); };
  // Read off the simulation. The ends wait for the runs of others on top; where all runs differ, all of a run counts.
  if (at_end)
    return alike +
           ahead * (above(others.forward, first.forward) + above(others.backward_weight, first.backward_weight));
  const auto whole = [](const StageTimes& run) { return run.forward + run.backward_input + run.backward_weight; };
  return std::max(alike, ahead / 2.0 * above(whole(second), whole(first)));
}

bool splits_backward(PipelineSchedule schedule) {
  using enum PipelineSchedule;
  return schedule == zb_h1 || schedule == zb_h2 || schedule == zb_v || schedule == dualpipe;
}

double peak_microbatches(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, m = shape.microbatches, v = shape.chunks;
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return number(m);
    case PipelineSchedule::one_f_one_b:
      return number(std::min(m, p - stage));
    case PipelineSchedule::interleaved:
      if (v == 1) return number(std::min(m, p - stage));
      return number(std::min(m * v, 2 * (p - 1 - stage) + (v - 1) * p + 1)) / number(v);
    case PipelineSchedule::zb_h1:
      return number(std::min(m, p));
    case PipelineSchedule::zb_h2:
      return number(std::min(m, 2 * p - 1));
    case PipelineSchedule::zb_v:
      return std::min(number(std::min(p, m)), number(m + 1 + stage) / 2);
    case PipelineSchedule::dualpipe:
      return number(p + 1);
  }
  throw InternalError("unknown pipeline schedule");
}

}  // namespace assay
