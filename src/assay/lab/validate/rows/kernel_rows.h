// Measured kernels: rows of a table as operations in the grammar of `assay roofline`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/rows/csv_schema.h"
#include "assay/lab/validate/validation.h"
#include "assay/predict/kernel/measured/measured_kernel.h"

namespace assay::validate {

using kernel::Harness, kernel::Harnesses, kernel::KernelKind, kernel::kernel_kind_names, kernel::kernel_kinds;

struct KernelRow {
  std::string id, group, shape;     ///< shape: hashed to choose the fold
  std::string source, chip;         ///< names of the harness and of the chip in the catalogue
  std::string operation;            ///< what `assay roofline` is asked; empty: experts, of a server
  std::vector<std::string> server;  ///< what `assay serve` is asked instead
  kernel::Kernel kernel;            ///< the same, read
  Seconds measured;
  bool sustained = false;  ///< one of many back to back: measured in a stream, not in the way of its table
  std::size_t fold = held_out;
  bool fitted = false;  ///< used by the current fit
  bool odd = false;     ///< shows what odd rows cost: nothing else is fitted to it
};

/// The request that predicts a row.
Question question_of(const KernelRow& row);

struct KernelRows {
  std::vector<KernelRow> rows;
  std::vector<UnansweredCase> unanswered;
};
/// Tables we measured on one H200: their harness, which is also the name of their set, and their file.
struct OwnTable {
  std::string_view source, file;
  bool fitted = true;  ///< used in fits; otherwise its rows are held out, and all of them replayed from a graph
};
inline constexpr OwnTable own_tables[] = {{"h200-ops", "validation/h200_ops.csv"},
                                          {"h200-random", "validation/h200_random_ops.csv"},
                                          {"h200-measure", "validation/h200_measure.csv", false},
                                          {"h200-experts", "validation/h200_experts.csv"},
                                          {"h200-products", "validation/h200_products.csv"},
                                          {"h200-odd", "validation/h200_odd.csv"},
                                          {"h200-heads", "validation/h200_heads.csv"}};
inline constexpr std::string_view own_chip = "h200-sxm";
/// Whether the source is one of these tables.
bool is_own(std::string_view source);
/// Why a row of a table written by `assay measure` cannot be read; empty if it can.
Why unread_measurement(const CsvTable& table, std::size_t row);
/// A table in the format of `assay measure`, with kernels on `chip`.
KernelRows read_own_ops(const CsvTable& table, std::string_view source, std::string_view chip = own_chip);
/// The third-party table of kernels.
Result<KernelRows> read_kernels(const CsvTable& given, const hardware::Catalogue& catalogue);

/// For fits, whose numbers are not in a catalogue yet: what the request would answer. Empty if the calibration lacks
/// the section or the chip lacks the format.
std::optional<Seconds> predict(const KernelRow& row, const hardware::Chip& chip,
                               const hardware::Calibration& calibration, const Harness& harness);

}  // namespace assay::validate
