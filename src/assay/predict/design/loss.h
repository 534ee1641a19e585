// The loss that a published law predicts of a model, by its parameters and its tokens.
#pragma once
#include <string>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"

namespace assay::hardware {
class Catalogue;
}

namespace assay::design {

/// loss = floor + a / parameters^alpha + b / tokens^beta, in nats per token.
struct LossLaw {
  std::string name, source;
  Given<double> floor, a, alpha, b, beta;
};

Result<const std::vector<LossLaw>*> loss_laws(const hardware::Catalogue& catalogue);

double loss(const LossLaw& law, double parameters, double tokens);

}  // namespace assay::design
