// The parts of `assay layer`: the question, and its sweeps.
#pragma once

#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/search/layer/chooser.h"

namespace assay::verbs::layer {

// What `assay layer` is asked: tensors, mesh, cluster and memory.

struct Query {
  hardware::Cluster cluster;
  program::Mesh mesh;
  search::ChooserProblem problem;
  plan::DimensionSizes sizes;
  Dtype dtype = Dtype::bf16;
  Bytes memory;
};

Result<Query> read_query(const Request& request, const Context& context);

/// Prices and rates of the cluster for the query's mesh.
Result<search::ChooserHardware> chooser_hardware(const Query& query);

// assay layer --vary: a layer over its batch, or over the chips that it is split over.

Result<report::Response> sweep_answer(const Request& request, const Context& context);

}  // namespace assay::verbs::layer
