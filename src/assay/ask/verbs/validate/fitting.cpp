#include "assay/ask/verbs/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/parallel.h"
#include "assay/lab/fit/bounds.h"
#include "assay/lab/fit/fit.h"
#include "assay/lab/fit/serving.h"
#include "assay/lab/fit/steps.h"
#include "assay/lab/validate/validation.h"

namespace assay::verbs::validate_verb {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

struct Fitted {
  Files files;
  std::vector<validate::RangedNumber> at_bounds;  ///< in these files
};

/// Numbers at bounds, with the files of folds by their paths below the catalogue.
Result<void> add_at_bounds(const hardware::Catalogue& fitted, const std::string& folder, Fitted& out) {
  ASSAY_TRY(numbers, validate::numbers_at_bounds(fitted));
  for (validate::RangedNumber& number : numbers) {
    number.file = folder + number.file;
    const bool is_new =
        std::any_of(out.files.begin(), out.files.end(), [&](const auto& file) { return file.first == number.file; });
    if (is_new) out.at_bounds.push_back(std::move(number));
  }
  return {};
}

/// All fits, by path below the catalogue: to all rows and without each fold. A named set limits the fit to its subject;
/// steps are fitted on the kernels of the same fit.
Result<Fitted> fitted_files(const std::string& set, const hardware::Catalogue& all,
                            const std::optional<std::string>& data) {
  const bool trains = set.find("train") != std::string::npos, serves = set.find("infer") != std::string::npos;
  std::vector<hardware::Catalogue> catalogues;
  for (std::size_t left_out = 0; left_out <= validate::held_out; ++left_out)
    catalogues.push_back(all.replaced_from(validate::fitted_without(left_out)));
  Fitted out;
  const auto add = [&](std::size_t left_out, const std::string& path, std::string text) {
    catalogues[left_out].put(path, text);
    out.files.emplace_back(validate::fitted_without(left_out) + path, std::move(text));
  };
  if (!trains && !serves) {
    std::vector<std::optional<Result<Files>>> kernels(catalogues.size());
    parallel_for(kernels.size(), 1, [&](std::size_t left_out) {
      kernels[left_out] = validate::fit_calibrations({catalogues[left_out], data, left_out});
    });
    for (std::size_t left_out = 0; left_out <= validate::held_out; ++left_out) {
      ASSAY_TRY(fitted, std::move(*kernels[left_out]));
      for (auto& [path, text] : fitted) add(left_out, path, std::move(text));
    }
  }
  if (set.empty() || trains) {
    ASSAY_TRY(steps, validate::fit_steps(catalogues, data));
    for (std::size_t left_out = 0; left_out <= validate::held_out; ++left_out)
      add(left_out, "steps/training.toml", std::move(steps[left_out]));
  }
  if (set.empty() || serves) {
    ASSAY_TRY(serving, validate::fit_serving(catalogues, data));
    for (std::size_t left_out = 0; left_out <= validate::held_out; ++left_out)
      add(left_out, "steps/serving.toml", std::move(serving[left_out]));
  }
  for (std::size_t left_out = 0; left_out <= validate::held_out; ++left_out)
    ASSAY_CHECK(add_at_bounds(catalogues[left_out], validate::fitted_without(left_out), out));
  return out;
}

}  // namespace

Result<report::Response> answer_fit(const Request& request, const hardware::Catalogue& catalogue) {
  const std::string set = request.arguments().empty() ? "" : request.arguments().front();
  if (request.has("group"))
    return fail("--group", "a fit is to all groups, so that its files follow from the data alone", "drop --group",
                Error::Kind::usage);
  ASSAY_TRY(fitted, fitted_files(set, catalogue, request.value("data")));
  report::Response response;
  report::Items rows;
  for (auto& [path, text] : fitted.files) {
    rows.emplace_back(report::Members{{"file", path}, {"bytes", Bytes(static_cast<double>(text.size()))}});
    response.files.emplace_back(*request.value("fit") + "/" + path, std::move(text));
  }
  response.headline = fmt::format("{} files fitted, {} numbers at a bound", rows.size(), fitted.at_bounds.size());
  response.results.emplace_back("files", std::move(rows));
  report::Items bounds;
  for (const auto& [file, name, range, value, low, high, bound] : fitted.at_bounds) {
    bounds.emplace_back(report::Members{{"file", file}, {"name", name}, {"value", value}, {"bound", bound}});
    response.notes.push_back(fmt::format("{}: {} is {}, at the bound {} of {}", file, name, value, bound, range));
  }
  response.results.emplace_back("at_bounds", std::move(bounds));
  response.table_key = "files";
  return response;
}

}  // namespace assay::verbs::validate_verb
