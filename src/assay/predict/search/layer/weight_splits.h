// A layer whose weights stay where they are, split over all devices: along F alone, or along D and F.
#pragma once
#include <optional>

#include "assay/predict/search/layer/chooser.h"

namespace assay::search {

/// The best choice of either kind; nothing where there is none, or where it does not fit.
struct WeightSplits {
  std::optional<LayerChoice> one;  ///< W_in[D, F_XY], W_out[F_XY, D]: activations of width D are gathered and reduced
  std::optional<LayerChoice> two;  ///< W_in[D_X, F_Y], W_out[F_Y, D_X]: parts of both widths, over fewer devices each
};

/// The problem must be a layer; In is free unless it is fixed.
WeightSplits weight_splits(const program::Mesh& mesh, const ChooserProblem& problem, const ChooserHardware& hardware);

}  // namespace assay::search
