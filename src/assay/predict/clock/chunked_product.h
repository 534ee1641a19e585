// A product next to a collective that gathers its operand or reduces its result: one after the other, or both cut into
// chunks of which one travels while another is multiplied.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/predict/clock/lanes.h"
#include "assay/program/plan/planner.h"

namespace assay::clock {

struct NamedItems {
  std::vector<Item> items;
  std::vector<std::string> names;  ///< of the items

  std::int32_t add(Item item, std::string name);
};

struct ChunkedProduct {
  std::string collective;   ///< that is cut into chunks: "AllGather_X"
  std::int64_t chunks = 1;  ///< as many as it has devices
  NamedItems blocking, chunked;
};
/// Nothing where the plan has no collective that could be cut. `product` is the time of the product; collectives reach
/// `efficiency` of the bandwidth that the costs of the plan assume.
std::optional<ChunkedProduct> chunked_product(const program::Mesh& mesh, const plan::Plan& plan, Seconds product,
                                              double efficiency);

/// Each hop and each chunk of the product takes an equal part of the whole. `gathers`: operands arrive, and the device
/// has its own chunk from the start; else sums leave, and the device keeps those of the last chunk. Everything starts
/// after the item `before`.
void add_chunks(bool gathers, std::int64_t chunks, Seconds product, Seconds collective, std::int32_t before,
                NamedItems& out);

}  // namespace assay::clock
