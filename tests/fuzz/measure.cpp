// Tables of measured rows and calibration files: any text gives rows and a chip, or an error; a calibration that reads
// can be written.
#include <string_view>

#include "assay/hardware/calibration.h"
#include "assay/lab/fit/measured.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

void check_table(std::string_view text) {
  const auto table = validate::CsvTable::parse(text, "rows.csv");
  if (!table) return require(!table.error().what.empty());
  const validate::KernelRows rows = validate::read_own_ops(*table, "host", "host");
  require(rows.rows.size() + rows.unanswered.size() == table->rows());
  const measure::HostRates rates = measure::host_rates(measure::facts_of(text), validate::measured_rows(*table));
  require(rates.machine.cores >= 1 && rates.units <= 64);
  const auto chip =
      hardware::read_chip(measure::host_chip_text(rates, {"2026-11-15", "fuzz"}, 0.5, 0.5), "chips/host.toml");
  if (!chip) require(!chip.error().what.empty());
}

void check_calibration(std::string_view text) {
  const auto calibration = hardware::read_calibration(text, "calibration/fuzz");
  if (!calibration) return require(!calibration.error().what.empty());
  static_cast<void>(hardware::calibration_text(*calibration));
}

const fuzz::Target measure_target("measure", [](std::string_view text) {
  check_table(text);
  check_calibration(text);
});

}  // namespace
