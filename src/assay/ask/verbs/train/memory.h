// The memory of a training plan: the margin it must keep, the verdict on it, and how far measured peaks are from their
// estimate.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/query.h"

namespace assay::verbs::train {

/// The option of the margin, for the verb table.
inline constexpr OptionSpec memory_margin_option{
    "memory-margin",
    "interval|N%|none",
    "memory of each chip that plans leave free: interval (default) for measured peaks at the upper end of the memory "
    "interval, a share of the chip's memory (10%), or none. Without a plan that keeps it, one without it is shown",
    false,
    "",
    "",
    "",
    "interval"};

/// Reads --memory-margin; the calibrated steps are known by then.
Result<void> read_memory_margin(const Request& request, TrainQuery& query);

/// Whether a strategy fits with the margin, only without it, or not at all.
enum class MemoryVerdict : std::uint8_t { fits, tight, no };
MemoryVerdict memory_verdict(const TrainQuery& query, const training::TrainingCost& cost);
std::string_view name_of(MemoryVerdict verdict);
/// "fits (70.1 of 85.9 GB)", for the headline.
std::string verdict_text(const TrainQuery& query, const training::TrainingCost& cost);

/// What a chip holds at the peak, with the verdict and its reason.
report::Members memory_members(const TrainQuery& query, const training::TrainingCost& cost);

/// The interval of four in five measured peaks, if known.
report::Members memory_interval(const TrainQuery& query, const training::MemoryParts& memory);

}  // namespace assay::verbs::train
