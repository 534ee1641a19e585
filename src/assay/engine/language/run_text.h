// Executes programs that are written as text, with the executor of all programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/engine/program/step.h"
#include "assay/program/language/lowering.h"

namespace assay::engine {

/// A row that a gather asks for and its table lacks.
struct RowBeyond {
  std::ptrdiff_t step = 0;
  double row = 0;
  std::int64_t rows = 0;  ///< of the table
};

struct TextRun {
  NamedArrays results;  ///< and gradients, by name
  /// What every device of this process held of every tensor, by tensor and device.
  std::vector<Shards> memory;
  RunFacts facts;
  std::string disagreeing;          ///< the result or gradient of which devices differ most, if they do
  std::optional<RowBeyond> beyond;  ///< the first one
  Bytes predicted;                  ///< received per device in all movements, by the steps
  std::vector<Seconds> times;       ///< of each step on the slowest rank; none without ranks
};

/// The array that a given tensor of a program holds.
Array given_array(const language::Compiled& compiled, const language::GivenTensor& given);

/// On virtual devices or, with a transport, on one device for each rank: results and facts are then those of all ranks.
TextRun run_text(const language::Compiled& compiled, Transport* transport = nullptr);
struct TimedRun {
  RankActivities ranks;  ///< what all of them did
  NamedArrays results;
};
/// Steps one after the other, or with movements that travel beside other steps as soon as what they move is there: the
/// fastest of so many runs, in every process. To be called by all.
TimedRun run_timed(const language::Compiled& compiled, Transport& transport, Overlap overlap, int runs);
/// What the devices of all ranks hold of a tensor, in every process. To be called by all.
Shards gathered(const language::Compiled& compiled, const TextRun& run, int tensor, Transport* transport);

/// The largest difference between two arrays, as a share of the largest value; infinite where their shapes differ. Two
/// values that are both no numbers are equal.
double relative_error(const Array& got, const Array& expected);

}  // namespace assay::engine
