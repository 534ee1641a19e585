#include "assay/predict/clock/closed_forms.h"

#include <algorithm>
#include <cmath>

namespace assay::clock {
namespace {

/// Sizes and times as plain numbers: p stages, m microbatches, F, B and W of a whole stage. A step is the work of one
/// stage plus its waiting time: the work of others, less what the stage does itself meanwhile.
struct Sizes {
  double p, m, f, b, w;
  double k() const { return p - 1; }  // hops from the first stage to the last
  double path(double nf, double nb, double nw) const { return nf * f + nb * b + nw * w; }
};

/// A trip costs its forwards and input gradients, less what is done meanwhile: `ahead` forwards on the first stage, or
/// as many weight gradients on the way.
double zb_h1_wait(const Sizes& s) {
  const double ahead = std::min(s.m - 1, s.k());
  return s.path(s.k(), s.k(), 0) - ahead * std::min(s.f, s.w);
}

double zb_h2_wait(const Sizes& s) {
  if (s.p == 1) return 0;
  const double ahead = std::min(s.m - 1, 2 * s.k()), both = std::floor(ahead / 2), odd = ahead - 2 * both;
  const double filled = s.path(s.k(), s.k(), 0) - ahead * std::min(s.f, s.w), left = s.k() - both;
  return std::max(filled, s.path(left, left, 0) - odd * std::min(s.f, s.w));
}

/// Up to p microbatches, each wave follows the last one down the V and back.
double zb_v_few(const Sizes& s) {
  const double k = s.k(), ahead = s.m - 1;
  return std::max({s.path(k - ahead, k, 0), s.path(k - ahead / 2, k - ahead / 2, 0), s.path(k, k - ahead, -ahead),
                   s.path(k, k - 1.5 * ahead, -ahead / 2)});
}

/// Between p and 2p-1 microbatches: d more than stages, e too few for the steady state. Each line is a longest path for
/// some ratio of F, B and W, in halves of them, as a stage has two chunks.
double zb_v_between(const Sizes& s) {
  const double k = s.k(), d = s.m - s.p, e = k - d;
  return std::max({
             0.0,
             s.path(0, 2 * k, -2 * d),
             s.path(0, 2 * e, 0),
             s.path(e, e, 0),
             s.path(k + d - 1, e + 1, -2 * d),
             s.path(k + d, e - d, -d),
             s.path(k + d, e, -2 * d - 1),
             s.path(2 * k, -k, -k),
             s.path(2 * k, -d, d - 2 * k),
             s.path(2 * k, 0, -2 * k - 1),
             s.path(-k, e + 1, d - 1),
             s.path(1 - d, 0, d - 1),
             s.path(-d, 2 * e + 1, d - e - 1),
             s.path(-d, k + e, -e),
             s.path(d - 1, 1 - d, 0),
             s.path(e + 1 - d, e, d - 1 - e),
             s.path(k - 1, e + 1 - d, -e),
         }) /
         2;
}

/// Each line is a longest path for some ratio of F, B and W; with F = B = W all are zero.
double zb_v_wait(const Sizes& s) {
  const double k = s.k();
  if (k == 0) return 0;
  if (s.m <= s.p) return zb_v_few(s);
  if (s.m < 2 * s.p - 1) return zb_v_between(s);
  return std::max({
      0.0,
      s.path(0, k, -k),
      s.path(k, 0, -k - 0.5),
      s.path(k - 0.5, 0.5, -k),
      s.path(k, -k / 2, -k / 2),
      s.path(-k / 2, 0.5, (k - 1) / 2),
      s.path(-k / 2, k / 2, 0),
      s.path((k - 1) / 2, -(k - 1) / 2, 0),
      s.path(-(k - 1) / 2, 0, (k - 1) / 2),
  });
}

double dualpipe_wait(const Sizes& s) {
  const double h = s.p / 2 - 1;  // hops from an end to the middle
  if (h == 0) return 0;
  return std::max(s.path(2 * h, 0, 0), s.path(h - 1, h, 0)) + std::max(0.0, s.path(0, h, -h));
}

double wait_of(const PipelineShape& shape, const Sizes& s) {
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::interleaved: {
      const double chunks = s.k() / static_cast<double>(shape.chunks);
      return s.path(chunks, chunks, chunks);
    }
    case PipelineSchedule::zb_h1:
      return zb_h1_wait(s);
    case PipelineSchedule::zb_h2:
      return zb_h2_wait(s);
    case PipelineSchedule::zb_v:
      return zb_v_wait(s);
    case PipelineSchedule::dualpipe:
      return dualpipe_wait(s);
  }
  throw InternalError("unknown pipeline schedule");
}

}  // namespace

Seconds interval_of_equal_stages(const PipelineShape& shape, const StageTimes& stage) {
  const Sizes sizes{static_cast<double>(shape.stages), static_cast<double>(shape.microbatches), stage.forward.value(),
                    stage.backward_input.value(), stage.backward_weight.value()};
  return Seconds(sizes.m * sizes.path(1, 1, 1) + wait_of(shape, sizes));
}

namespace {

struct WorkTimes {
  Seconds f, b, w;
};
/// Weight gradients count as input gradients if the schedule does not defer them.
WorkTimes work_of(const StageTimes& times, bool splits) {
  const Seconds b = times.backward_input, w = times.backward_weight;
  return {times.forward, splits ? b : b + w, splits ? w : Seconds()};
}

/// A stage of an uneven pipeline.
struct StageWork {
  const StageAmong& stage;
  WorkTimes own, before, rest;
  Seconds first_weight;
};

/// A stage whose microbatches pass one run: `ahead` forwards come before its first gradient, and weight gradients are
/// deferred by `behind`. Its first gradient waits for a trip to the last stage and back, and so does its last one.
Seconds single_run(double m, double ahead, double behind, const StageWork& work) {
  const auto& [stage, own, before, rest, first_weight] = work;
  const Seconds trip = rest.f + rest.b;
  const double others = std::min(m, ahead) - 1;
  const Seconds first = std::max(Seconds(), trip - others * own.f);
  const double deferred = std::clamp(m - 1 - behind, 0.0, others);
  const Seconds last = std::max(Seconds(), trip - others * own.b - deferred * own.w);
  const Seconds busy = m * (own.f + own.b + own.w) + (m > ahead ? first + last : std::max(first, last));
  const Seconds on_the_way = before.f + before.b - std::min(m, behind + 1) * own.w + first_weight;
  return busy + std::max(stage.at_end, on_the_way + stage.first_at_end);
}

/// The last stage of a V turns microbatches round, the first one has both ends.
Seconds folded(double p, double m, const StageWork& work) {
  const auto& [stage, own, before, rest, first_weight] = work;
  const WorkTimes run = work_of(stage.first_run, true);
  const auto i = static_cast<double>(stage.stage);
  Seconds busy = m * (own.f + own.b + own.w);
  const Seconds second_weight = own.w - run.w;
  if (m >= 2 * p && i == p - 1)
    busy += std::max(Seconds(), rest.f + rest.b - (p - 1) * own.f) +
            std::max(Seconds(), rest.f + rest.b - (p - 1) * own.b - second_weight);
  else if (m >= 2 * p && i == 0)
    busy += std::max(Seconds(), rest.f - 2 * (p - 1) * run.f) +
            std::max(Seconds(), rest.b - second_weight - (p - 1) * (run.b + run.w));
  const Seconds on_the_way =
      before.f + before.b - std::min(m, i + 1) * run.w - std::min(m, i) * second_weight + first_weight;
  return busy + std::max(stage.at_end, on_the_way + stage.first_at_end);
}

}  // namespace

Seconds least_interval(const PipelineShape& shape, const StageAmong& stage) {
  using enum PipelineSchedule;
  const auto p = static_cast<double>(shape.stages), m = static_cast<double>(shape.microbatches),
             i = static_cast<double>(stage.stage);
  const bool splits = splits_backward(shape.schedule);
  const StageWork work{stage, work_of(stage.own, splits), work_of(stage.before, splits), work_of(stage.rest, splits),
                       splits ? stage.first_weight : Seconds()};
  const WorkTimes &own = work.own, &before = work.before;
  switch (shape.schedule) {
    case gpipe:
      return single_run(m, m, 0, work);
    case zb_h1:
      return single_run(m, p - i, i, work);
    case zb_h2:
      return single_run(m, 2 * (p - i) - 1, 2 * i, work);
    case zb_v:
      return folded(p, m, work);
    case dualpipe:
      return m * (own.f + own.b + own.w) + stage.at_end;
    case one_f_one_b:
    case interleaved:
      break;
  }
  if (shape.chunks == 1) return single_run(m, p - i, 0, work);
  return least_interval_of_chunks(m, own.f + own.b, before.f + before.b, stage.at_end, stage.first_at_end);
}

namespace {

/// A part of the model with what it sends: results to the next part, gradients to the one before.
StageTimes with_sends(const PipelineInput& input, std::int64_t part, std::int64_t direction) {
  StageTimes times = input.times[input.times.size() == 1 ? 0 : static_cast<std::size_t>(part)];
  const auto lies = [&](std::int64_t at) { return stage_of_part(input.shape, at, direction); };
  if (part + 1 < model_parts(input.shape) && lies(part + 1) != lies(part)) times.forward += input.transfer;
  if (part > 0 && lies(part - 1) != lies(part)) times.backward_input += input.transfer;
  return times;
}

void add(StageTimes& sum, const StageTimes& more, double share) {
  sum.forward += share * more.forward;
  sum.backward_input += share * more.backward_input;
  sum.backward_weight += share * more.backward_weight;
}

}  // namespace

StageAmong stage_among(const PipelineInput& input, std::int64_t stage) {
  const PipelineShape& shape = input.shape;
  const bool is_dual = shape.schedule == PipelineSchedule::dualpipe;
  const auto at_end = [&](std::size_t of) {
    return input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : of];
  };
  StageAmong out;
  out.stage = stage;
  for (std::int64_t direction = 0; direction < (is_dual ? 2 : 1); ++direction)
    for (std::int64_t part = 0; part < model_parts(shape); ++part) {
      const StageTimes times = with_sends(input, part, direction);
      const std::int64_t at = stage_of_part(shape, part, direction);
      const bool is_first_run = part < shape.stages;
      if (at != stage) {
        add(is_first_run && at < stage ? out.before : out.rest, times, 1.0);
      } else {
        add(out.own, times, is_dual ? 0.5 : 1.0);  // half of the microbatches come from each end
        if (is_first_run) add(out.first_run, times, 1.0);
      }
    }
  out.first_weight = input.times.front().backward_weight;
  out.at_end = at_end(static_cast<std::size_t>(stage));
  out.first_at_end = at_end(0);
  return out;
}

Seconds least_interval(const PipelineInput& input) {
  const PipelineShape& shape = input.shape;
  std::int64_t slowest = 0;
  Seconds most(-1.0);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    Seconds seconds;
    for (std::int64_t chunk = 0; chunk < model_parts(shape) / shape.stages; ++chunk) {
      const bool turns = shape.schedule == PipelineSchedule::zb_v && chunk == 1;
      const std::int64_t part = turns ? 2 * shape.stages - 1 - stage : chunk * shape.stages + stage;
      const StageTimes& times = input.times[input.times.size() == 1 ? 0 : static_cast<std::size_t>(part)];
      seconds += times.forward + times.backward_input + times.backward_weight;
    }
    if (seconds > most) {
      most = seconds;
      slowest = stage;
    }
  }
  const Seconds last = least_interval(shape, stage_among(input, shape.stages - 1));
  return std::max(last, least_interval(shape, stage_among(input, slowest)));
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

}  // namespace assay::clock
