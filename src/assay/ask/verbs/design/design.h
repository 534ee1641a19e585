// The parts of `assay design`: a chip from its parts, chips that exist beside what is predicted of them, and a search.
#pragma once
#include <string>
#include <string_view>

#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/predict/design/figures.h"

namespace assay::verbs::design_verb {

/// A design with what its figures are made from; calibrated without the chip of that id.
struct DesignQuery {
  const design::Technology* technology = nullptr;
  design::Calibration calibration;
  design::ChipDesign chip;
  design::Designed designed() const { return {chip, *technology, calibration}; }
};

/// What a file holds that may have come with the request; `where` names the option or argument.
Result<std::string> attached_text(const std::string& path, std::string_view where, const Context& context);
/// A chip of the catalogue's designs by its id, or the text of a file.
Result<std::string> design_text(const std::string& name, const Context& context);
Result<DesignQuery> query_of(const Toml& root, const std::string& file, const Context& context);

/// Why a chip cannot be built, if so: what is too large even at the low end of its range, and what would help.
std::string impossible(const DesignQuery& query, const design::ChipFigures<Plain>& figures);
/// The clock below the limit of power; an error text where no clock is low enough.
struct Clocked {
  Hertz clock;
  Watts power;
  std::string impossible;
};
Clocked clocked(const DesignQuery& query, const design::ChipFigures<Plain>& figures, std::optional<Watts> limit);

/// --workload: the designs of a space for a mix of requests.
Result<report::Response> search(const Request& request, const Context& context);

}  // namespace assay::verbs::design_verb
