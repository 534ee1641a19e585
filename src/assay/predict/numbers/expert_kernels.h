// How serving software computes layers with experts in kernels of its own: what routing tokens takes, and products in
// one kernel that is cut into blocks, each of some rows of one expert. catalogue/steps/expert_kernels.toml has what
// these reach, and for which products software knows the best size of blocks.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"

namespace assay::numbers {

/// Who multiplies tokens with their experts.
enum class ExpertKernel : std::uint8_t {
  library,     ///< kernels as good as those of other products
  blocks,      ///< blocks of sizes that do not depend on the product, except where a table has better ones
  best_blocks  ///< the best sizes of blocks
};
inline constexpr std::string_view expert_kernel_names[] = {"library", "blocks", "best-blocks"};

/// Blocks of one size, and what a kernel of them reaches.
struct ExpertBlocks {
  std::string format;            ///< of both operands; "fp8-128x128": with scales of such parts
  std::string without_table;     ///< taken where no table has the product: for "few" tokens, "many", or "any"
  double rows = 0, columns = 0;  ///< of the result
  Given<double> memory, matrix;  ///< shares of the bandwidth, and of the peak in whole blocks
  Given<Seconds> element;        ///< least time of a block for one element that is summed over
  Given<Seconds> start;          ///< of the kernel
};

/// Blocks for the products of a layer: the best of those for the tokens of a step. They live as long as their
/// catalogue.
struct ExpertBlockChoice {
  const std::vector<ExpertBlocks>*few = nullptr, *many = nullptr;  ///< none: the product has no kernel of blocks
  double few_tokens = 0;                                           ///< up to so many tokens are few
  const std::vector<ExpertBlocks>* of(double tokens) const { return tokens <= few_tokens ? few : many; }
  friend bool operator==(const ExpertBlockChoice&, const ExpertBlockChoice&) = default;
};

struct ExpertKernels {
  /// Blocks of one format: all, and those for products that no table has.
  struct Blocks {
    std::string format;
    std::vector<ExpertBlocks> all, few, many;
  };
  /// Products whose best blocks software knows.
  struct Table {
    std::string chip, format;
    std::vector<std::pair<double, double>> shapes;  ///< experts of a device, width of each
  };
  Given<Seconds> routing;     ///< of a layer: choosing, sorting and gathering in kernels of their own
  Given<double> traffic = 1;  ///< bytes of bringing tokens to experts and back, over the fewest
  Given<double> rows = 1.0;   ///< of a tile of libraries
  /// Where products gather their tokens themselves: chips, formats of weights, and what is left of the routing.
  std::string gathering_family;
  std::vector<std::string> gathering_formats;
  Given<Seconds> gathering_routing;
  std::vector<Blocks> blocks;
  std::vector<Table> tables;

  /// For `held` experts of a device, each `width` wide; nothing where no blocks of the format were measured.
  ExpertBlockChoice choose(std::string_view chip, std::string_view format, double held, double width, bool best) const;
};

/// Those of the catalogue; neutral if it has none.
Result<std::shared_ptr<const ExpertKernels>> expert_kernels_of(const hardware::Catalogue& catalogue);

}  // namespace assay::numbers
