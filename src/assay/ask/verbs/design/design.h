// The parts of `assay design`: a chip from its parts, chips that exist beside what is predicted of them, a search over
// designs, and one over the shapes of a model.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/chip.h"
#include "assay/predict/design/figures.h"
#include "assay/predict/design/owning.h"

namespace assay::verbs::design_verb {

/// A design with what its figures are made from; calibrated without the chip of that id.
struct DesignQuery {
  const design::Technology* technology = nullptr;
  design::Calibration calibration;
  design::ChipDesign chip;
  Watts beside;  ///< a chip's share of its server, as of the base
  design::Designed designed() const { return {chip, *technology, calibration}; }
};

/// What a file holds that may have come with the request; `where` names the option or argument.
Result<std::string> attached_text(const std::string& path, std::string_view where, const Context& context);
/// A chip of the catalogue's designs by its id, or the text of a file.
Result<std::string> design_text(const std::string& name, const Context& context);
/// Reads a design into a query whose technology and calibration are there.
Result<void> read_chip(const Toml& root, const std::string& file, DesignQuery& query);
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

/// The dies with their parts.
draw::Scene picture_of(const DesignQuery& query, const design::ChipFigures<Plain>& figures);

/// What --owning says, over the catalogue's figures.
Result<design::OwningFigures> owning_of(const Request& request, const Context& context);
/// The chip with the network and the servers of its chip file, in a cluster of that many chips.
design::Installed installed(const DesignQuery& query, const design::ChipFigures<Plain>& figures, Watts power,
                            const hardware::Chip& chip, const design::OwningFigures& owning, double chips);
report::Members owning_members(const design::OwningFigures& figures, const design::Owning<Plain>& owning);

/// --workload: the designs of a space for a mix of requests.
Result<report::Response> search(const Request& request, const Context& context);
/// --model-shape: shapes of a model within a budget.
Result<report::Response> model_shapes(const Request& request, const Context& context);

}  // namespace assay::verbs::design_verb
