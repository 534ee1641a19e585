#include "assay/ask/draw/chip_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/sketch.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double column_of_chip = 430.0, between_chips = 36.0, inset = 16.0;
constexpr double core_pitch = 13.0, core_side = 11.0, lane_pitch = 3.0;
constexpr double unit_side = 78.0, units_gap = 10.0, memory_height = 34.0;
constexpr std::int64_t cores_in_a_row = 33;

/// Heights that all columns share, so that their parts are level.
struct ChipRows {
  double cores = 0, units = unit_side, lanes = 0, core_memories = 0, chip_memories = 0;
  double pixels = HUGE_VAL;  ///< of the side of a matrix unit, for a multiplier along it
};

/// Numbers that a matrix unit multiplies in a cycle.
double multipliers(const hardware::MatrixUnit& unit) {
  if (unit.rows && unit.columns) return static_cast<double>(unit.rows->value * unit.columns->value);
  return unit.flops_per_cycle ? unit.flops_per_cycle->value.value() / 2.0 : 0.0;
}

double stack_height(std::size_t memories) { return static_cast<double>(memories) * (memory_height + 6.0); }

bool is_of_core(const hardware::MemoryLevel& level) { return level.per == "core"; }

ChipRows rows_of(const std::vector<hardware::Chip>& chips) {
  ChipRows out;
  for (const hardware::Chip& chip : chips) {
    const std::int64_t rows = (chip.cores.count.value + cores_in_a_row - 1) / cores_in_a_row;
    out.cores = std::max(out.cores, static_cast<double>(rows) * core_pitch);
    const double room = (column_of_chip - 2.0 * inset) / static_cast<double>(chip.matrix_unit.count.value) - units_gap;
    if (const double side = std::sqrt(multipliers(chip.matrix_unit)); side > 0.0)
      out.pixels = std::min(out.pixels, std::min(unit_side, room) / side);
    out.lanes = std::max(out.lanes, static_cast<double>(chip.vector_unit.partitions.value) * lane_pitch * 2.0);
    const auto of_core = static_cast<std::size_t>(std::count_if(chip.memory.begin(), chip.memory.end(), &is_of_core));
    out.core_memories = std::max(out.core_memories, stack_height(of_core));
    out.chip_memories = std::max(out.chip_memories, stack_height(chip.memory.size() - of_core));
  }
  return out;
}

/// One chip, drawn from the top down.
class ChipColumn {
 public:
  ChipColumn(Scene& scene, const hardware::Chip& chip, const ChipRows& rows, double x)
      : scene_(scene), chip_(chip), rows_(rows), x_(x) {}

  void draw(double y) {
    words({x_, y + 14.0}, chip_.name, ColourRole::ink, true);
    y = cores(y + 26.0);
    const double top = y;
    y = units(y + 30.0);
    y = lanes(y + 10.0);
    y = memories(y + 10.0, true, rows_.core_memories);
    Rectangle frame{x_, top, column_of_chip, y - top + 4.0, 6.0, {}};
    frame.paint = {.stroke = ColourRole::muted};
    scene_.add(frame);
    words({x_ + inset, top + 20.0}, fmt::format("one {}", chip_.cores.kind), ColourRole::ink, true);
    memories(y + 20.0, false, rows_.chip_memories);
  }

 private:
  void words(PlotPoint at, std::string text, ColourRole colour = ColourRole::muted, bool bold = false) {
    scene_.add(Label{at, shortened(text, picture_text_size, column_of_chip - 2.0 * inset, bold), picture_text_size,
                     Anchor::start, colour, bold});
  }

  double cores(double y) {
    const std::int64_t count = chip_.cores.count.value;
    words({x_, y + 10.0}, fmt::format("{} {}{}", count, chip_.cores.kind, count == 1 ? "" : "s"));
    y += 18.0;
    for (std::int64_t i = 0; i < count; ++i) {
      Rectangle core{x_ + static_cast<double>(i % cores_in_a_row) * core_pitch,
                     y + static_cast<double>(i / cores_in_a_row) * core_pitch,
                     core_side,
                     core_side,
                     2.0,
                     {}};
      core.paint = {.fill = i == 0 ? ColourRole::ink : ColourRole::muted, .fill_opacity = i == 0 ? 1.0 : 0.25};
      scene_.add(core);
    }
    return y + rows_.cores + 12.0;
  }

  double units(double y) {
    const hardware::MatrixUnit& unit = chip_.matrix_unit;
    const std::string size = unit.rows && unit.columns ? fmt::format("{} x {}", unit.rows->value, unit.columns->value)
                                                       : human_number(multipliers(unit));
    words({x_ + inset, y + 10.0}, fmt::format("{} matrix units of {} multipliers", unit.count.value, size));
    y += 18.0;
    const double side = multipliers(unit) > 0.0 ? rows_.pixels * std::sqrt(multipliers(unit)) : 0.0;
    for (std::int64_t i = 0; i < unit.count.value; ++i) {
      Rectangle box{x_ + inset + static_cast<double>(i) * (side + units_gap), y, side, side, 3.0, {}};
      box.paint = {.fill = arithmetic_colour, .fill_opacity = 0.25, .stroke = arithmetic_colour};
      scene_.add(box);
    }
    return y + rows_.units;
  }

  double lanes(double y) {
    const hardware::VectorUnit& unit = chip_.vector_unit;
    std::string text = fmt::format("vector unit: {} x {} lanes, {} ALU{} each", unit.partitions.value, unit.lanes.value,
                                   unit.alus.value, unit.alus.value == 1 ? "" : "s");
    if (chip_.cores.warps) text += fmt::format("; {} warps take turns", chip_.cores.warps->value);
    words({x_ + inset, y + 10.0}, std::move(text));
    y += 18.0;
    for (std::int64_t p = 0; p < unit.partitions.value; ++p)
      for (std::int64_t i = 0; i < unit.lanes.value; ++i) {
        Rectangle lane{x_ + inset + static_cast<double>(i) * lane_pitch,
                       y + static_cast<double>(p) * lane_pitch * 2.0,
                       lane_pitch - 1.0,
                       lane_pitch * 2.0 - 1.0,
                       0.0,
                       {}};
        lane.paint = {.fill = arithmetic_colour, .fill_opacity = 0.7};
        scene_.add(lane);
      }
    return y + rows_.lanes;
  }

  double memories(double y, bool of_core, double height) {
    double at = y;
    for (std::size_t i = chip_.memory.size(); i-- > 0;) {
      const hardware::MemoryLevel& level = chip_.memory[i];
      if (is_of_core(level) != of_core) continue;
      Rectangle box{
          x_ + (of_core ? inset : 0.0), at, column_of_chip - (of_core ? 2.0 * inset : 0.0), memory_height, 4.0, {}};
      box.paint = {.fill = memory_colour, .fill_opacity = 0.18, .stroke = memory_colour};
      scene_.add(box);
      std::string text = fmt::format("{}, {}", level.name, human(level.capacity.value));
      if (level.bandwidth) text += fmt::format(", {}", human(level.bandwidth->value));
      words({box.x + 12.0, at + 22.0}, std::move(text), ColourRole::ink);
      at += memory_height + 6.0;
    }
    return y + height;
  }

  Scene& scene_;
  const hardware::Chip& chip_;
  const ChipRows& rows_;
  double x_;
};

}  // namespace

Scene draw_chips(const std::vector<hardware::Chip>& chips) {
  const ChipRows rows = rows_of(chips);
  Scene scene;
  scene.width =
      2.0 * picture_margin + static_cast<double>(chips.size()) * (column_of_chip + between_chips) - between_chips;
  scene.height =
      2.0 * picture_margin + rows.cores + rows.units + rows.lanes + rows.core_memories + rows.chip_memories + 162.0;
  scene.title = "What chips are made of";
  for (const hardware::Chip& chip : chips)
    scene.description +=
        fmt::format("{}{}: {} {} with {} matrix units and {} x {} vector lanes each",
                    scene.description.empty() ? "" : "; ", chip.name, chip.cores.count.value, chip.cores.kind,
                    chip.matrix_unit.count.value, chip.vector_unit.partitions.value, chip.vector_unit.lanes.value);
  for (std::size_t i = 0; i < chips.size(); ++i)
    ChipColumn(scene, chips[i], rows, picture_margin + static_cast<double>(i) * (column_of_chip + between_chips))
        .draw(picture_margin);
  return scene;
}

}  // namespace assay::draw
