// Chip files: any bytes as a file, and any lines KEY=VALUE as overrides of a good one, give a chip or an error.
#include <cmath>
#include <string>
#include <string_view>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

/// What holds for every chip that was read.
void check(const hardware::Chip& chip) {
  require(hardware::vector_alus(chip) > 0);
  require(hardware::vector_rate(chip).value > FlopsPerSecond(0) &&
          hardware::vector_fma_rate(chip).value >= hardware::vector_rate(chip).value);
  require(chip.hbm().bandwidth->value > BytesPerSecond(0));
  for (const hardware::MemoryRoof& roof : hardware::memory_roofs(chip))
    require(roof.bandwidth.value > BytesPerSecond(0) && !roof.name.empty());
  if (const auto egress = hardware::scale_up_egress(chip)) require(egress->value > BytesPerSecond(0));
  if (const auto flops = hardware::matrix_flops_per_cycle(chip)) require(flops->value > Flops(0));
  require(chip.efficiency.matrix.value > 0 && chip.efficiency.matrix.value <= 1);
}

void check(const Result<hardware::Chip>& chip) {
  if (chip)
    check(*chip);
  else
    require(!chip.error().what.empty());
}

std::vector<hardware::Override> lines_of(std::string_view text) {
  std::vector<hardware::Override> changes;
  for (const std::string& line : split(text, '\n'))
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      changes.push_back({line.substr(0, equals), line.substr(equals + 1)});
  return changes;
}

const fuzz::Target catalogue_target("catalogue", [](std::string_view text) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  check(hardware::read_chip(text, "fuzz"));
  constexpr std::size_t short_enough = 256;  // for a few overrides; files are longer
  if (text.size() <= short_enough) check(catalogue.chip("tpu-v5e", "fuzz", lines_of(text)));
});

}  // namespace
