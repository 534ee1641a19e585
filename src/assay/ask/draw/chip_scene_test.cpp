#include "assay/ask/draw/chip_scene.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::draw {
namespace {

std::vector<hardware::Chip> every_chip() {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::vector<hardware::Chip> chips;
  for (const std::string& id : catalogue.chip_ids()) chips.push_back(*catalogue.chip(id, "test"));
  return chips;
}

TEST(ChipScene, EveryChipOfTheCatalogueStaysWithinItsDrawing) {
  for (const hardware::Chip& chip : every_chip()) {
    const Scene scene = draw_chips({chip});
    for (const SceneItem& item : scene.items)
      if (const auto* box = std::get_if<Rectangle>(&item.shape)) {
        EXPECT_LE(box->x + box->width, scene.width) << chip.id;
        EXPECT_LE(box->y + box->height, scene.height) << chip.id;
      }
  }
}

TEST(ChipScene, DrawsACoreForEachAndALaneForEach) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip gpu = *catalogue.chip("h100-sxm", "test");
  std::size_t boxes = 0;
  for (const SceneItem& item : draw_chips({gpu}).items) boxes += std::holds_alternative<Rectangle>(item.shape);
  EXPECT_EQ(boxes, 132u + 4u + 4u * 32u + gpu.memory.size() + 1u);  // cores, matrix units, lanes, memories, the frame
}

}  // namespace
}  // namespace assay::draw
