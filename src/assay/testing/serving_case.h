// A question of serving, and the strategies that tests of its search share.
#pragma once
#include <string>

#include "assay/hardware/calibration.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/search/serving/search.h"
#include "assay/testing/catalogue.h"

namespace assay::testing {

struct ServingCase {
  model::Transformer model;
  hardware::Cluster cluster;
  serving::ServingQuestion question;

  ServingCase(const std::string& id, const std::string& where)
      : model(model::load_model(id, catalogue(), "test")->model),
        cluster(*hardware::parse_cluster(where, catalogue(), "test")) {
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.setup.model = &model;
    question.prompt = 1024;
    question.output = 256;
    question.capacity = cluster.chip.hbm().capacity.value;
  }
  ServingCase(const ServingCase&) = delete;

  search::ServingSearch search(search::ServingChoices choices = {}) const {
    return *search::search_serving(question, cluster, choices);
  }
};

inline serving::ServingStrategy tensor_only(std::int64_t ways) {
  serving::ServingStrategy s;
  s.tensor = ways;
  return s;
}

/// Kernels as measured: their steps grow in jumps, tile by tile.
struct MeasuredServingCase : ServingCase {
  MeasuredServingCase(const std::string& id, const std::string& where) : ServingCase(id, where) {
    const auto calibration = *hardware::calibration_of(cluster.chip, catalogue());
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", &calibration->values);
    question.setup.collectives = calibration->values.collective;
  }
};

}  // namespace assay::testing
