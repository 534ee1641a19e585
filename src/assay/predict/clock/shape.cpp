// Names and sizes of pipeline schedules: which exist, and what is wrong with those that do not.
#include <fmt/format.h>

#include <array>
#include <string>

#include "assay/base/text.h"
#include "assay/predict/clock/simulation.h"

namespace assay::clock {
namespace {

struct Name {
  std::string_view word;
  PipelineSchedule schedule;
};
constexpr std::array<Name, 7> names{{{"gpipe", PipelineSchedule::gpipe},
                                     {"1f1b", PipelineSchedule::one_f_one_b},
                                     {"interleaved", PipelineSchedule::interleaved},
                                     {"zb-h1", PipelineSchedule::zb_h1},
                                     {"zb-h2", PipelineSchedule::zb_h2},
                                     {"zb-v", PipelineSchedule::zb_v},
                                     {"dualpipe", PipelineSchedule::dualpipe}}};

bool is_two_chunk(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_v || schedule == PipelineSchedule::dualpipe;
}

/// Far above any pipeline that is built, and small enough that no product of sizes overflows.
constexpr std::int64_t most_of_anything = 1'000'000;

bool sizes_are_sane(const PipelineShape& shape) {
  const auto sane = [](std::int64_t n) { return n >= 1 && n <= most_of_anything; };
  return sane(shape.stages) && sane(shape.microbatches) && sane(shape.chunks);
}

bool chunks_fit(const PipelineShape& shape) {
  if (shape.schedule == PipelineSchedule::interleaved || shape.chunks == 1) return true;
  return is_two_chunk(shape.schedule) && shape.chunks == 2;
}

bool groups_divide(const PipelineShape& shape) { return shape.microbatches % microbatch_group(shape) == 0; }

bool directions_fit(const PipelineShape& shape) {
  return shape.schedule != PipelineSchedule::dualpipe ||
         (shape.stages % 2 == 0 && groups_divide(shape) && shape.microbatches >= 2 * shape.stages);
}

}  // namespace

std::string_view schedule_name(PipelineSchedule schedule) {
  for (const Name& name : names)
    if (name.schedule == schedule) return name.word;
  throw InternalError("unnamed pipeline schedule");
}

Result<PipelineSchedule> parse_schedule(std::string_view text, std::string_view where) {
  std::vector<std::string> known;
  for (const Name& name : names) {
    if (name.schedule == PipelineSchedule::zb_h1) {  // which is what "zb" alone means
      if (text == "zb") return name.schedule;
      known.emplace_back("zb");
    }
    if (name.word == text) return name.schedule;
    known.emplace_back(name.word);
  }
  return fail(std::string(where), fmt::format("unknown pipeline schedule {}", in_quotes(text)),
              fmt::format("schedules are {}", join(known, ", ")));
}

std::int64_t chunks_per_stage(const PipelineShape& shape) { return is_two_chunk(shape.schedule) ? 2 : shape.chunks; }

std::int64_t model_parts(const PipelineShape& shape) {
  return shape.schedule == PipelineSchedule::dualpipe ? shape.stages : shape.stages * chunks_per_stage(shape);
}

std::int64_t stage_of_part(const PipelineShape& shape, std::int64_t part, std::int64_t direction) {
  const std::int64_t p = shape.stages;
  if (shape.schedule == PipelineSchedule::dualpipe) return direction == 0 ? part : p - 1 - part;
  if (shape.schedule == PipelineSchedule::zb_v) return part < p ? part : 2 * p - 1 - part;
  return part % p;
}

std::int64_t microbatch_group(const PipelineShape& shape) {
  if (shape.schedule == PipelineSchedule::dualpipe) return 2;  // half from each end
  return shape.schedule == PipelineSchedule::interleaved && shape.chunks > 1 ? shape.stages : 1;
}

bool is_possible(const PipelineShape& shape) {
  return sizes_are_sane(shape) && chunks_fit(shape) && groups_divide(shape) && directions_fit(shape);
}

Result<void> check_pipeline(const PipelineShape& shape) {
  const std::string name(schedule_name(shape.schedule));
  const std::int64_t p = shape.stages, m = shape.microbatches;
  if (!sizes_are_sane(shape))
    return fail("pipeline",
                fmt::format("stages, microbatches and chunks must be between 1 and {}, got {}, {} and {}",
                            human_count(most_of_anything), p, m, shape.chunks),
                "");
  if (!chunks_fit(shape))
    return is_two_chunk(shape.schedule)
               ? fail("--interleave", fmt::format("{} has two chunks per stage, got {}", name, shape.chunks),
                      "leave --interleave out")
               : fail("--interleave", fmt::format("{} has one chunk per stage, got {}", name, shape.chunks),
                      "use --schedule interleaved");
  if (shape.schedule == PipelineSchedule::interleaved && !groups_divide(shape)) {
    const std::int64_t below = m / p * p, above = below + p;
    return fail(
        "--schedule",
        fmt::format("with interleaved, microbatches must be a multiple of stages: {} is not a multiple of {}", m, p),
        below > 0 ? fmt::format("use {} or {} microbatches", below, above)
                  : fmt::format("use {} microbatches, or 1f1b", above));
  }
  if (!directions_fit(shape)) {
    if (p % 2 != 0)
      return fail("--schedule", fmt::format("dualpipe needs an even number of stages, got {}", p),
                  p > 1 ? fmt::format("use {} or {} stages", p - 1, p + 1) : "use 2 stages");
    if (m < 2 * p)
      return fail("--schedule",
                  fmt::format("dualpipe needs at least two microbatches per stage, got {} for {} stages", m, p),
                  fmt::format("use {} microbatches", 2 * p));
    return fail("--schedule",
                fmt::format("dualpipe needs an even number of microbatches, half from each end, got {}", m),
                fmt::format("use {} or {} microbatches", m - 1, m + 1));
  }
  return {};
}

}  // namespace assay::clock
