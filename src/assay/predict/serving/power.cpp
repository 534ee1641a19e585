#include "assay/predict/serving/power.h"

#include <algorithm>

#include "assay/base/record_reader.h"

namespace assay::serving {

Result<PowerLoad> power_load_of(const hardware::Catalogue& catalogue) {
  PowerLoad load;
  for (const auto& [path, text] : catalogue.files("steps/power_load.toml")) {
    RecordFile file{.name = path};
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      reader.table("load", [&](RecordReader& inner) {
        inner.number("idle", load.idle);
        inner.number("matrix", load.matrix);
        inner.number("byte", load.byte);
      });
      reader.table("step", [&](RecordReader& inner) {
        inner.share("padding", load.padding);
        inner.number("cache", load.cache);
      });
      reader.table("link", [&](RecordReader& inner) { inner.number("full", load.link); });
    }));
  }
  return load;
}

Joules step_energy(const hardware::Chip& chip, const PowerLoad& load, const ServingTime& step) {
  const Watts limit = chip.power->chip.value;
  const auto& bandwidth = chip.hbm().bandwidth;
  const Bytes moved = bandwidth ? step.memory * bandwidth->value : Bytes(0);
  const Bytes cached = std::min(moved, step.attention_bytes);
  const Seconds full = load.idle.value * step.estimate +
                       load.matrix.value * (step.compute + load.padding.value * step.padding) +
                       load.link.value * step.network;
  return std::min(limit * full + load.byte.value * (moved - cached) + load.cache.value * cached, limit * step.estimate);
}

std::optional<ServedPower> served_power(const hardware::Chip& chip, double chips, const PowerLoad& load,
                                        const ServingPoint& point) {
  if (!chip.power) return std::nullopt;
  const Joules mixed = step_energy(chip, load, point.served.step), alone = step_energy(chip, load, point.decode);
  const double share = point.served.load.share;
  const Seconds time = share * point.served.step.estimate + (1.0 - share) * point.decode.estimate;
  const Watts mean = (share * mixed + (1.0 - share) * alone) / time;
  return ServedPower{mean, chip.power->chip.value, chips * alone,
                     chips * mean * (Tokens(1) / point.served.tokens_per_second)};
}

Watts mean_power(const PowerLoad& load, const ServedPower& full, double chips, double servers, double working) {
  const Watts idle = load.idle.value * full.limit;
  return chips * (servers * idle + working * (full.chip - idle));
}

}  // namespace assay::serving
