// What each verb declares of its results.
#pragma once
#include <string_view>

namespace assay::verbs::answers {

extern const std::string_view chips, clusters, models, software, roofline, systolic, transfer, collective, shard, layer,
    scaling, solve, train, serve, validate, book, measure, profile, sweep, run;

}  // namespace assay::verbs::answers
