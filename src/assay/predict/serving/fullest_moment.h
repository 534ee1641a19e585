// When the tensors of a block take the most memory.
#pragma once
#include <vector>

#include "assay/program/form/program.h"

namespace assay::serving {

/// Peak bytes that are alive at once on one device: a tensor lives from the step that makes it to the last one that
/// reads it, and a tensor passed to other blocks lives to the end.
class FullestMoment {
 public:
  explicit FullestMoment(const program::Program& program, std::vector<int>* at_peak = nullptr)
      : program_(program), last_(program.tensors.size(), never), alive_(program.tensors.size()), at_peak_(at_peak) {}

  /// Peak of the activations of a block, or of the weights that it gathers.
  Bytes operator()(const program::Block& block, bool gathered);

 private:
  void keep_alive();

  static constexpr std::int32_t never = -1;
  const program::Program& program_;
  std::vector<std::int32_t> last_;  ///< step that reads a tensor last
  std::vector<Bytes> alive_;        ///< 0: not alive
  std::vector<int>* at_peak_;       ///< receives the tensors that are alive at the peak, if not null
};

}  // namespace assay::serving
