#include "assay/verbs/validate/fitting.h"

#include <fmt/format.h>

#include "assay/base/parallel.h"
#include "assay/validate/fit/fit.h"
#include "assay/validate/fit/serving.h"
#include "assay/validate/fit/steps.h"
#include "assay/validate/validation.h"

namespace assay::verbs::validate {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

/// All fits, by path below the catalogue: to all rows and without each fold. A named set limits the fit to its subject;
/// steps are fitted on the kernels of the same fit.
Result<Files> fitted_files(const std::string& set, const hardware::Catalogue& all,
                           const std::optional<std::string>& data) {
  const bool trains = set.find("train") != std::string::npos, serves = set.find("infer") != std::string::npos;
  std::vector<hardware::Catalogue> catalogues;
  for (std::size_t left_out = 0; left_out <= assay::validate::held_out; ++left_out)
    catalogues.push_back(all.replaced_from(assay::validate::fitted_without(left_out)));
  Files files;
  const auto add = [&](std::size_t left_out, const std::string& path, std::string text) {
    catalogues[left_out].put(path, text);
    files.emplace_back(assay::validate::fitted_without(left_out) + path, std::move(text));
  };
  if (!trains && !serves) {
    std::vector<std::optional<Result<Files>>> kernels(catalogues.size());
    parallel_for(kernels.size(), 1, [&](std::size_t left_out) {
      kernels[left_out] = assay::validate::fit_calibrations({catalogues[left_out], data, left_out});
    });
    for (std::size_t left_out = 0; left_out <= assay::validate::held_out; ++left_out) {
      ASSAY_TRY(fitted, std::move(*kernels[left_out]));
      for (auto& [path, text] : fitted) add(left_out, path, std::move(text));
    }
  }
  if (set.empty() || trains) {
    ASSAY_TRY(steps, assay::validate::fit_steps(catalogues, data));
    for (std::size_t left_out = 0; left_out <= assay::validate::held_out; ++left_out)
      add(left_out, "steps/training.toml", std::move(steps[left_out]));
  }
  if (set.empty() || serves) {
    ASSAY_TRY(serving, assay::validate::fit_serving(catalogues, data));
    for (std::size_t left_out = 0; left_out <= assay::validate::held_out; ++left_out)
      add(left_out, "steps/serving.toml", std::move(serving[left_out]));
  }
  return files;
}

}  // namespace

Result<report::Response> answer_fit(const Request& request, const hardware::Catalogue& catalogue) {
  const std::string set = request.arguments().empty() ? "" : request.arguments().front();
  if (request.has("group"))
    return fail("--group", "a fit is to all groups, so that its files follow from the data alone", "drop --group",
                Error::Kind::usage);
  ASSAY_TRY(files, fitted_files(set, catalogue, request.value("data")));
  report::Response response;
  report::Items rows;
  for (auto& [path, text] : files) {
    rows.emplace_back(report::Members{{"file", path}, {"bytes", Bytes(static_cast<double>(text.size()))}});
    response.files.emplace_back(*request.value("fit") + "/" + path, std::move(text));
  }
  response.headline = fmt::format("{} files fitted", rows.size());
  response.results.emplace_back("files", std::move(rows));
  response.table_key = "files";
  return response;
}

}  // namespace assay::verbs::validate
