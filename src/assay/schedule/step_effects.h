// What whole training steps cost beyond their kernels and collectives one by one: numbers of the chip's family and of the
// way the software works. catalogue/steps/training.toml holds them; docs/validation.md says how well they do.
#pragma once
#include <cstdint>
#include <string_view>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"

namespace assay {

/// How the software starts kernels and fuses what is element-wise.
enum class Fusion : std::uint8_t {
  fused,     ///< hand-written fused kernels (Megatron, Transformer Engine), or XLA
  compiled,  ///< a compiler fuses what it finds (torch.compile)
  eager      ///< every operation is a kernel of its own
};
inline constexpr std::string_view fusion_names[] = {"fused", "compiled", "eager"};

/// What the user says of the software.
struct StepSoftware {
  Fusion fusion = Fusion::fused;
  bool tensor_overlap = true;  ///< tensor-parallel collectives run in pieces beside the products that need them
};

/// All neutral: without a calibration nothing is added.
struct StepEffects {
  double product = 1;                           ///< time of products among other kernels over that of products alone
  double attention = 1;                         ///< the same of attention
  double pointwise = 1;                         ///< bytes that element-wise steps move over the fewest
  double loss = 1;                              ///< the same of logits and loss
  double expert_product = 1;                    ///< products of experts over those of dense layers: ragged, uneven
  double expert_traffic = 1;                    ///< bytes to sort tokens by expert and back over the fewest
  double tensor_waited = 1, expert_waited = 1;  ///< shares of collectives that nothing hides
  double contention = 0;  ///< share of weights' collectives that costs time although others compute meanwhile
  double gradients_waited = 0;  ///< share of the reduction of gradients that nothing hides at least
  double straggler = 0;         ///< of the step, per doubling of the chips beyond eight
  Seconds fixed;                ///< per step: data, logging, clipping
  Seconds launch;               ///< that the host takes for each step of the program
  double allocator = 0;         ///< share of the peak memory that lies unused between blocks
  Bytes context;                ///< of the driver and libraries
};

/// The effects of a chip's family under this software; neutral where the family is not in the file.
Result<StepEffects> step_effects(const Chip& chip, const StepSoftware& software, const Catalogue& catalogue);

}  // namespace assay
