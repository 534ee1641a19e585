#include "assay/schedule/pipeline_forms.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// Sizes and times as plain numbers: p stages, m microbatches, F, B and W of a whole stage, a hop c.
struct Sizes {
  double p, m, f, b, w, c;
  double k() const { return p - 1; }                     // hops from the first stage to the last
  double work() const { return m * (f + b + w); }        // of one stage
  double trip() const { return k() * (f + b + 2 * c); }  // down to the last stage and back, the ends left out
};

PipelineForm form(double makespan, double interval, bool exact) {
  return {Seconds(makespan), Seconds(interval), exact, exact};
}

/// How often the longest path turns between the first and the last stage after the first trip: once per p microbatches
/// that a round trip with p of them in flight takes, and a turn over d hops uses up d + 1 of them.
double turns(double p, double m) { return std::max(0.0, m - 1 - std::ceil((m - 1) / p)); }

PipelineForm gpipe_form(const Sizes& s) {
  const double all = (s.m + s.k()) * (s.f + s.b + s.w) + 2 * s.k() * s.c;
  return form(all, all, true);
}

/// In the steady state p microbatches in flight share a round trip of 2(p-1) hops, so hops cost time with every one.
PipelineForm one_f_one_b_form(const Sizes& s) {
  const double hops = s.p > 1 ? s.k() + turns(s.p, s.m) : 0.0;
  const double all = (s.m + s.k()) * (s.f + s.b + s.w) + 2 * hops * s.c;
  return form(all, all, true);
}

PipelineForm interleaved_form(const Sizes& s, double v) {
  const double hops = s.p > 1 ? 2 * (s.p * v - 1) : 0.0;
  const double all = (s.m + s.k() / v) * (s.f + s.b + s.w) + hops * s.c;
  return form(all, all, s.c * v <= std::min(s.f, s.b + s.w));
}

bool hops_are_short(const Sizes& s, double chunks) { return s.c * chunks <= std::min({s.f, s.b, s.w}); }

/// A trip costs its forwards and input gradients, less what is done meanwhile: `ahead` forwards on the first stage, or
/// as many weight gradients on the way.
PipelineForm zb_h1_form(const Sizes& s) {
  if (s.p == 1) return form(s.work(), s.work(), true);
  const double ahead = std::min(s.m - 1, s.k()), turn = turns(s.p, s.m);
  double weights = -ahead * s.w + 2 * std::min(ahead, turn) * s.c;
  if (turn > ahead) weights = std::max(weights, turn * (2 * s.c - s.w));
  const double wait = std::max(weights, -ahead * s.f);
  const double last = -ahead * s.b + (s.m > s.p ? s.k() : ahead - 2) * s.c;  // weight gradients end on the last stage
  const double base = s.work() + s.trip();
  return form(base + std::max(wait, last), base + wait, hops_are_short(s, 1));
}

PipelineForm zb_h2_form(const Sizes& s) {
  if (s.p == 1) return form(s.work(), s.work(), true);
  const double ahead = std::min(s.m - 1, 2 * s.k()), both = std::floor(ahead / 2), odd = ahead - 2 * both;
  const double filled = std::min(ahead * s.f, ahead * s.w), base = s.work() + s.trip();
  const double last = both * (s.b + s.c) + odd * std::min({s.f, s.b + s.c, s.w});
  const double taken = both * (s.f + s.b + 2 * s.c) + odd * std::min(s.f, s.w);
  return form(base - std::min(filled, last), base - std::min(filled, taken), hops_are_short(s, 1));
}

/// Up to p microbatches, each wave follows the last one down the V and back.
double zb_v_few(const Sizes& s) {
  const double ahead = s.m - 1;
  return s.work() + s.k() * (s.f + s.b) - ahead * std::min({s.f, (s.f + s.b) / 2, s.b + s.w, (3 * s.b + s.w) / 2});
}

/// Between p and 2p-1 microbatches, without hops: d more than stages, e too few for the steady state. Each line is a
/// longest path for some ratio of F, B and W, in halves of them, as a stage has two chunks.
PipelineForm zb_v_between(const Sizes& s) {
  const double k = s.k(), d = s.m - s.p, e = k - d;
  const auto path = [&](double f, double b, double w) { return (f * s.f + b * s.b + w * s.w) / 2; };
  const double shared = std::max({
      path(0, 2 * k, -2 * d),
      path(0, 2 * e, 0),
      path(e, e, 0),
      path(k + d - 1, e + 1, -2 * d),
      path(k + d, e - d, -d),
      path(k + d, e, -2 * d - 1),
      path(2 * k, -k, -k),
      path(2 * k, -d, d - 2 * k),
      path(2 * k, 0, -2 * k - 1),
  });
  const double makespan = std::max({
      shared,
      path(0, e + 1, d - 1),
      path(e + 1, 0, d - 1),
      path(k + d - 1, 1 - d, 0),
      path(k + d, -d, -1),
      path(0, k + e, -e),
      path(k + d - 1, e - d + 1, -e),
      path(k + d, e - d, -e - 1),
      path(2 * k, -k, -2 * e - 1),
      path(2 * k, -d, -3 * e - 1),
  });
  const double interval = std::max({
      0.0,
      shared,
      path(-k, e + 1, d - 1),
      path(1 - d, 0, d - 1),
      path(-d, 2 * e + 1, d - e - 1),
      path(-d, k + e, -e),
      path(d - 1, 1 - d, 0),
      path(e + 1 - d, e, d - 1 - e),
      path(k - 1, e + 1 - d, -e),
  });
  return form(s.work() + makespan, s.work() + interval, s.c == 0);
}

/// Each line is a longest path for some ratio of F, B and W; with F = B = W the interval's are all zero.
PipelineForm zb_v_form(const Sizes& s) {
  const double k = s.k(), f = s.f, b = s.b, w = s.w, c = s.c;
  if (k == 0) return form(s.work(), s.work(), true);
  if (s.m <= s.p) return form(zb_v_few(s), zb_v_few(s), c == 0);
  if (s.m < 2 * s.p - 1) return zb_v_between(s);
  const double shared = std::max({
      k * (b - w) + (6 * k - 2) * c,
      k * f - (k + 0.5) * w + 4 * k * c,
      (k - 0.5) * f + b / 2 - k * w + (4 * k - 2) * c,
  });
  const double makespan = std::max({
      shared,
      (k - 0.5) * f - (k - 1) / 2 * b + (3 * k - 2) * c,
      k / 2 * b + (5 * k - 2) * c,
      b / 2 + (k - 1) / 2 * w + 3 * k * c,
      f / 2 + (k - 1) / 2 * w + (3 * k - 2) * c,
      k * f - k / 2 * b - w / 2 + 3 * k * c,
  });
  const double interval = std::max({
      0.0,
      shared,
      k * (f - b / 2 - w / 2) + 2 * k * c,
      -k / 2 * f + b / 2 + (k - 1) / 2 * w + 2 * k * c,
      k / 2 * (b - f) + (4 * k - 2) * c,
      (k - 1) / 2 * (f - b) + 2 * (k - 1) * c,
      (k - 1) / 2 * (w - f) + 2 * (k - 1) * c,
  });
  return form(s.work() + makespan, s.work() + interval, c == 0);
}

PipelineForm dualpipe_form(const Sizes& s, double saving) {
  const double h = s.p / 2 - 1;  // hops from an end to the middle
  // A pair takes at least its longer half. The longest path has m - p/2 - 2 pairs.
  const double saved = std::min({saving, s.f, s.b + s.w});
  const double base = s.work() - (s.m - s.p / 2 - 2) * saved;
  const bool exact = (s.c == 0 || saved == 0) && hops_are_short(s, 1);
  const auto step = [&](double c) {
    if (h == 0) return base + (s.m / 2 + 1) * c;
    // A pair sends and receives as one, so hops are not hidden: the path turns as that of 1f1b does.
    const double more = (s.m - 2 * s.p) / 2, kept = more >= 2 ? 1 + std::floor((more - 2) / (s.p / 2)) : 0.0;
    return base + std::max(2 * h * s.f, (h - 1) * s.f + h * (s.b + c)) + h * std::max(0.0, s.b - s.w + c) +
           (6 * h + 2 + 2 * more - kept) * c;
  };
  const double all = step(saved == 0 ? s.c : 0.0);  // hops within a step of shorter pairs are left out
  PipelineForm result = form(all, all, exact);
  if (s.c > 0) {  // the stage that ends last need not be one that starts first
    result.interval = Seconds(std::max(step(0.0), all - h * (s.f + s.c)));
    result.interval_exact = false;
  }
  return result;
}

}  // namespace

PipelineForm pipeline_form(const PipelineShape& shape, const StageTimes& stage, Seconds transfer, Seconds pair_saving) {
  const Sizes s{static_cast<double>(shape.stages), static_cast<double>(shape.microbatches), stage.forward.value(),
                stage.backward_input.value(),      stage.backward_weight.value(),           transfer.value()};
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

StageTimes slowest_stage(const PipelineInput& input) {
  StageTimes slowest;
  for (const StageTimes& times : input.times) {
    slowest.forward = std::max(slowest.forward, times.forward);
    slowest.backward_input = std::max(slowest.backward_input, times.backward_input);
    slowest.backward_weight = std::max(slowest.backward_weight, times.backward_weight);
  }
  const double parts = static_cast<double>(model_parts(input.shape)) / static_cast<double>(input.shape.stages);
  return {parts * slowest.forward, parts * slowest.backward_input, parts * slowest.backward_weight};
}

Seconds pipeline_lower_bound(const PipelineInput& input) {
  const PipelineShape& shape = input.shape;
  const bool dual = shape.schedule == PipelineSchedule::dualpipe;
  const bool split = splits_backward(shape.schedule);
  const auto times = [&](std::int64_t part) -> const StageTimes& {
    return input.times[input.times.size() == 1 ? 0 : static_cast<std::size_t>(part)];
  };
  const std::int64_t p = shape.stages;
  const auto m = static_cast<double>(shape.microbatches);
  Seconds bound, down, back;  // the way from the first part to this stage, and of a gradient back to it
  for (std::int64_t stage = 0; stage < p; ++stage) {
    Seconds forward, input_gradient, weight_gradient, saved;
    const auto add = [&](const StageTimes& t, double share) {
      forward += share * t.forward;
      input_gradient += share * t.backward_input;
      weight_gradient += share * t.backward_weight;
    };
    if (dual) {
      add(times(stage), m / 2);
      add(times(p - 1 - stage), m / 2);
      saved = m * input.pair_saving;  // more than there are pairs
    } else {
      const bool turns_back = shape.schedule == PipelineSchedule::zb_v;
      for (std::int64_t chunk = 0; chunk < chunks_per_stage(shape); ++chunk)
        add(times(turns_back && chunk == 1 ? 2 * p - 1 - stage : chunk * p + stage), m);
    }
    const Seconds at_end =
        input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
    const Seconds work = forward + input_gradient + weight_gradient;
    const Seconds least = dual ? std::max({work - saved, forward, input_gradient + weight_gradient}) : work;
    bound = std::max(bound, down + least + at_end);
    // The gradient of the last microbatch goes on from here to the first stage; weight gradients may come after it.
    if (!dual) bound = std::max(bound, down + back + forward + input_gradient + (split ? Seconds() : weight_gradient));
    if (!dual) {
      down += times(stage).forward + input.transfer;
      back += times(stage).backward_input + (split ? Seconds() : times(stage).backward_weight) + input.transfer;
    }
  }
  return bound;
}

}  // namespace assay
