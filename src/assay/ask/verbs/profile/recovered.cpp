#include <fmt/format.h>

#include "assay/ask/verbs/profile/hlo.h"
#include "assay/hardware/calibration.h"
#include "assay/profile/hlo/profiled.h"

namespace assay::verbs::profile {

Result<Recovered> recover_request(const Query& query, const compare::MeasuredStep& measured, const Context& context) {
  const trace::Trace& trace = query.traces[query.device().trace];
  const std::string text = hlo::main_program(trace, query.device().summary.device);
  if (auto of_program = recovered_of_program(text, query.chip ? query.chip->id : "CHIP", context))
    return std::move(*of_program);
  ASSAY_TRY(run, compare::recover(measured, *query.vocabulary, trace.file));
  Recovered out;
  out.run = std::move(run);
  out.alone = trace.world_size.value_or(1) == 1;
  const bool splits_data = query.mesh.splits_data_alone() && out.run.kind == compare::RecoveredRun::Kind::training;
  if (!out.alone && !splits_data)
    out.run.lacks.push_back(
        fmt::format("how {} ranks share the model: sizes are those of one rank", *trace.world_size));
  if (!query.chip) out.run.lacks.emplace_back("the chip: --on names it");
  out.model = compare::model_argument(out.run.model, context.catalogue);
  // Only a calibration tells kernels of attention apart.
  compare::RecoveredRun asked = out.run;
  if (query.chip) {
    ASSAY_TRY(calibration, hardware::calibration_of(*query.chip, context.catalogue));
    if (!calibration) asked.attention.clear();
  }
  out.command = compare::command_line(asked, out.model, query.chip ? query.chip->id : "CHIP",
                                      splits_data ? query.mesh.axes : std::vector<program::MeshAxis>());
  return out;
}

void add_mesh(const Query& query, report::Members& out) {
  if (query.mesh.axes.empty()) return;
  out.emplace_back("mesh", report::rows_of(query.mesh.axes, [](const program::MeshAxis& axis) {
                     report::Members row{{"axis", axis.name}, {"size", axis.size}};
                     if (axis.role) row.emplace_back("role", program::name(*axis.role));
                     return row;
                   }));
}

void add_recovered(const Recovered& recovered, report::Members& out) {
  const compare::RecoveredRun& run = recovered.run;
  const compare::RecoveredModel& model = run.model;
  report::Members row{
      {"command", recovered.command}, {"model", recovered.model},           {"batch", run.batch * run.microbatches},
      {"sequence", run.sequence},     {"microbatches", run.microbatches},   {"layers", model.layers},
      {"hidden", model.hidden},       {"intermediate", model.intermediate}, {"heads", model.heads},
      {"kv_heads", model.kv_heads},   {"head_dim", model.head_dim}};
  if (recovered.alone) row.emplace_back("mesh", "one device");
  if (model.vocabulary > 0) row.emplace_back("vocabulary", model.vocabulary);
  if (model.experts > 0) {
    row.emplace_back("experts", model.experts);
    row.emplace_back("experts_per_token", model.experts_per_token);
  }
  row.emplace_back("gated", model.gated);
  row.emplace_back("recomputes", run.recomputes);
  row.emplace_back("compiled", run.compiled);
  if (!run.attention.empty()) row.emplace_back("attention", run.attention);
  if (!run.optimizer.empty()) row.emplace_back("optimizer", run.optimizer);
  if (run.updated) row.emplace_back("optimizer_dtype", name(*run.updated));
  report::Items lacks;
  for (const std::string& lack : run.lacks) lacks.emplace_back(lack);
  row.emplace_back("lacks", std::move(lacks));
  out.emplace_back("recovered", std::move(row));
}

}  // namespace assay::verbs::profile
