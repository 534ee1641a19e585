#include "assay/hardware/chip_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::hardware {
namespace {

/// A product of counts in floating point, because the counts may still be huge.
double count_product(const Shape& counts) {
  double all = 1.0;
  for (std::int64_t count : counts) all *= static_cast<double>(count);
  return all;
}

/// Reports a fault at the node of a dotted key, or at the nearest table above it that exists.
class RuleFaults {
 public:
  RuleFaults(const Toml& root, const ReportFault& report) : root_(root), report_(report) {}

  void add(std::string_view key, std::string what, std::string hint) const {
    const Toml* node = &root_;
    for (const std::string& part : split(key, '.'))
      if (const Toml* next = node->find(part)) node = next;
    report_(*node, key, std::move(what), std::move(hint));
  }
  void one_of(std::string_view key, const std::string& value, const std::vector<std::string>& allowed) const {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      add(key, fmt::format("unknown {} {}", key, in_quotes(value)), "one of " + join(allowed, ", "));
  }

 private:
  const Toml& root_;
  const ReportFault& report_;
};

void check_torus(const ScaleUp& up, const RuleFaults& faults) {
  if (!up.pod || !up.wrap_rule || !up.wrap_length)
    return faults.add("network.scale_up", "a torus needs pod, wrap_rule and wrap_length",
                      "e.g. pod = [16, 16], wrap_rule = \"length\", wrap_length = 16");
  faults.one_of("network.scale_up.wrap_rule", *up.wrap_rule, {"length", "cube"});
  const Shape& pod = up.pod->value;
  if (pod.size() > 3) faults.add("network.scale_up.pod", "a torus has at most three axes", "");
  if (count_product(pod) > 1e7) faults.add("network.scale_up.pod", "a pod has at most 10 million chips", "");
  if (*up.wrap_rule == "cube" && pod.size() != 3)
    faults.add("network.scale_up.wrap_rule", "wrap_rule cube needs three axes", "");
  if (up.wrap_length->value > *std::max_element(pod.begin(), pod.end()))
    faults.add("network.scale_up.wrap_length", "no axis of the pod is that long", "");
  if (up.links.value != 2 * static_cast<std::int64_t>(pod.size()))
    faults.add(
        "network.scale_up.links",
        fmt::format("a torus of {} axes has {} links per chip, got {}", pod.size(), 2 * pod.size(), up.links.value),
        "");
  if (!up.shapes) return;
  for (const Shape& shape : up.shapes->value)
    if (shape.size() != pod.size() || count_product(shape) > count_product(pod))
      faults.add("network.scale_up.shapes", "every shape must have as many axes as the pod, and no more chips", "");
}

void check_scale_up(const ScaleUp& up, const RuleFaults& faults) {
  faults.one_of("network.scale_up.kind", up.kind, {"torus", "switched", "direct"});
  if (up.kind == "torus") return check_torus(up, faults);
  if (!up.domain)
    faults.add("network.scale_up", "a switched or direct network needs domain",
               "the number of chips it joins, e.g. domain = 8");
}

}  // namespace

void check_chip(const Chip& chip, const Toml& root, const ReportFault& report) {
  const RuleFaults faults(root, report);
  faults.one_of("family", chip.family, {"tpu", "gpu", "accelerator", "cpu"});
  if (std::none_of(chip.peak.begin(), chip.peak.end(), [](const auto& p) { return p.has_value(); }))
    faults.add("peak", "a chip needs at least one peak rate", "e.g. bf16 = \"197 TFLOP/s\"");
  constexpr FlopsPerSecond slowest(1e6);  // slower than any chip since 1980: a slip of the unit
  for (const DtypeFacts& format : all_dtypes())
    if (const auto& peak = chip.peak[static_cast<std::size_t>(format.dtype)]; peak && peak->value < slowest)
      faults.add(fmt::format("peak.{}", format.name),
                 fmt::format("a peak rate is at least {}, got {}", human(slowest), human(peak->value)),
                 "check the unit, e.g. 989 TFLOP/s");
  if (chip.memory.empty() || chip.memory.front().name != "hbm" || !chip.memory.front().bandwidth)
    faults.add("memory", "a chip needs [memory.hbm] with capacity and bandwidth",
               "main memory is called hbm, whatever its technology");
  for (const MemoryLevel& level : chip.memory)
    if (level.per) faults.one_of("memory." + level.name + ".per", *level.per, {"chip", "core"});
  if (chip.matrix_unit.rows.has_value() != chip.matrix_unit.columns.has_value())
    faults.add("matrix_unit", "rows and columns go together", "give both or neither");
  for (std::size_t i = 0; i < chip.prices.size(); ++i) {
    const std::vector<std::string> kinds{"on-demand", "spot", "1-year", "3-year"};
    if (std::find(kinds.begin(), kinds.end(), chip.prices[i].kind) == kinds.end())
      report(*root.find("price")->items[i].find("kind"), "price.kind",
             fmt::format("unknown kind {}", in_quotes(chip.prices[i].kind)), "one of " + join(kinds, ", "));
  }
  const VectorUnit& unit = chip.vector_unit;
  if (count_product({chip.cores.count.value, unit.partitions.value, unit.lanes.value, unit.alus.value}) > 1e12)
    faults.add("vector_unit", "a chip has at most 1e12 vector ALUs", "ALUs = cores x partitions x lanes x alus");
  if (chip.network.scale_up) check_scale_up(*chip.network.scale_up, faults);
}

void check_fabric(const Chip& chip, const Toml& root, const ReportFault& report) {
  if (!chip.network.scale_out) return;
  const ScaleOut& out = *chip.network.scale_out;
  const std::vector<double> below = chips_below_levels(chip);
  for (std::size_t i = 0; i < out.levels.size(); ++i) {
    const BytesPerSecond ports = below[i] * out.bandwidth.value;
    if (out.levels[i].bandwidth.value <= (1.0 + 1e-9) * ports) continue;
    const Toml& level = root.find("network")->find("scale_out")->find("level")->items[i];
    report(*level.find("bandwidth"), fmt::format("network.scale_out.level.{}.bandwidth", out.levels[i].name),
           fmt::format("{} is more than the {} chips below can send: {}", human(out.levels[i].bandwidth.value),
                       human_number(below[i]), human(ports)),
           "network.scale_out.bandwidth is what one chip sends");
  }
}

}  // namespace assay::hardware
