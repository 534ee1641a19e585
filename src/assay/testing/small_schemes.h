// Every scheme of parallelism at small sizes, and what tests expect of a run under any of them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "assay/testing/small_programs.h"

namespace assay::testing::small {

/// The largest difference between two sets of arrays, each as a share of its largest value.
inline double difference(const engine::NamedArrays& a, const engine::NamedArrays& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (const auto& [name, array] : a) {
    if (!b.contains(name)) return INFINITY;
    worst = std::max(worst,
                     engine::largest_difference(array, b.at(name)) / std::max(1e-3, engine::largest_magnitude(array)));
  }
  return worst;
}

inline void expect_equal(const TrainingRun& run, const TrainingRun& one) {
  EXPECT_NEAR(run.loss, one.loss, 1e-11);
  EXPECT_LT(difference(run.gradients, one.gradients), 1e-9);
  EXPECT_LT(difference(run.updated, one.updated), 1e-9);
  EXPECT_LT(run.facts.disagreement, 1e-12);
  EXPECT_LT(run.facts.byte_error, 1e-12);
}

struct Scheme {
  std::string name;
  lower::Parallelism parallelism;
};

inline std::vector<Scheme> schemes(const model::Transformer& m) {
  using enum lower::ResidualScheme;
  std::vector<Scheme> out{
      {"data", {.data = 4}},
      {"zero 1", {.data = 4, .zero = 1}},
      {"zero 2", {.data = 4, .zero = 2}},
      {"zero 3", {.data = 4, .zero = 3}},
      {"fsdp", {.fsdp = 4}},
      {"hybrid fsdp", {.data = 2, .fsdp = 2}},
      {"hybrid fsdp, zero 1", {.data = 2, .fsdp = 2, .zero = 1}},
      {"tensor", {.tensor = 2}},
      {"tensor, sequence", {.tensor = 2, .residual = sequence}},
      {"tensor, split d_model", {.tensor = 2, .residual = lower::ResidualScheme::model}},
      {"fsdp x tensor", {.fsdp = 2, .tensor = 2}},
      {"data x fsdp x tensor, sequence", {.data = 2, .fsdp = 2, .tensor = 2, .zero = 2, .residual = sequence}},
      {"context, gather", {.context = 2}},
      {"context, exchange", {.context = 2, .context_scheme = lower::ContextScheme::exchange}},
      {"fsdp x context", {.fsdp = 2, .context = 2}},
      {"tensor x context, sequence", {.tensor = 2, .context = 2, .residual = sequence}},
      {"data x tensor x context, split d_model",
       {.data = 2, .tensor = 2, .context = 2, .zero = 1, .residual = lower::ResidualScheme::model}},
  };
  // More devices than heads of keys: some hold copies of them.
  out.push_back({"tensor, copied keys", {.tensor = 4}});
  out.push_back({"fsdp x tensor, copied keys, sequence", {.fsdp = 2, .tensor = 4, .residual = sequence}});
  out.push_back({"tensor x context, more than heads of keys", {.tensor = 2, .context = 4}});
  out.push_back({"tensor x context, copied keys, exchange",
                 {.tensor = 2, .context = 2, .context_scheme = lower::ContextScheme::exchange}});
  if (!m.has_experts()) return out;
  const std::vector<Scheme> with_experts{
      {"expert from data", {.data = 4, .expert = 2}},
      {"expert from fsdp", {.fsdp = 4, .expert = 2}},
      {"expert from both, zero 1", {.data = 2, .fsdp = 2, .expert = 4, .zero = 1}},
      {"expert x tensor", {.fsdp = 2, .tensor = 2, .expert = 2}},
      {"expert x tensor, sequence", {.data = 2, .tensor = 2, .expert = 2, .residual = sequence}},
      {"expert x tensor, split d_model",
       {.data = 2, .fsdp = 2, .tensor = 2, .expert = 2, .residual = lower::ResidualScheme::model}},
      {"expert x context", {.fsdp = 2, .context = 2, .expert = 2}},
      {"experts over tensor", {.tensor = 2, .expert = 2, .expert_over = {.tensor = true}}},
      {"experts over tensor, sequence",
       {.tensor = 2, .expert = 2, .expert_over = {.tensor = true}, .residual = sequence}},
      {"experts over tensor, split d_model",
       {.data = 2,
        .tensor = 2,
        .expert = 4,
        .expert_over = {.tensor = true},
        .residual = lower::ResidualScheme::model}},
      {"experts over data and tensor", {.fsdp = 2, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}}},
      {"experts over data and tensor, sequence, zero 1",
       {.data = 4, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}, .zero = 1, .residual = sequence}},
      {"experts over tensor, copied keys, sequence",
       {.fsdp = 2, .tensor = 4, .expert = 4, .expert_over = {.tensor = true}, .residual = sequence}},
      {"experts over context", {.fsdp = 2, .context = 2, .expert = 2, .expert_over = {.context = true}}},
      {"experts over data and context, exchange",
       {.data = 2,
        .context = 2,
        .expert = 4,
        .expert_over = {.context = true},
        .zero = 2,
        .context_scheme = lower::ContextScheme::exchange}},
      {"experts over tensor and context, sequence",
       {.fsdp = 2,
        .tensor = 2,
        .context = 2,
        .expert = 4,
        .expert_over = {.tensor = true, .context = true},
        .residual = sequence}},
  };
  out.insert(out.end(), with_experts.begin(), with_experts.end());
  return out;
}

}  // namespace assay::testing::small
