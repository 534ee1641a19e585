// Measured rows: one per kernel or collective, in the columns of catalogue/validation/h200_ops.csv.
// This file and the grids need only the standard library, so that machines without our other libraries can measure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/units.h"

namespace assay::measure {

/// Sizes are named by position, as the table's header says for each `op`; 0: none.
struct MeasuredRow {
  std::string op, dtype;
  std::int64_t a = 0, b = 0, c = 0, d = 0, e = 0;
  Seconds median = {}, least = {};
  std::string note = {};
};

/// Facts about the machine and its software that a calibration file repeats: {"compiler", "g++ 12.2.0"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Measurement {
  Facts facts;
  std::vector<MeasuredRow> rows;
  std::vector<std::string> notes;  ///< what could not be measured, and why
};

/// The table: facts and notes as comments, a header, one line per row.
std::string rows_text(const Measurement& measurement);

/// The facts among a table's comments; its rows are read by validate/kernel_rows.
Facts facts_of(std::string_view table);

/// The median; sorts the times.
Seconds median_of(std::vector<Seconds>& times);

}  // namespace assay::measure
