// Pictures of `assay scaling`: arithmetic over communication, or both times, against the batch.
#pragma once
#include <vector>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/scaling/sections.h"

namespace assay::verbs::scaling {

/// Arithmetic over communication of a forward pass against tokens per chip, for each scheme; 1 is where they are equal.
draw::Chart ratio_chart(const ScalingQuery& query, const SchemeLinks& links,
                        const std::optional<roofline::PlacedSplit>& given);
/// Forward time of one layer against the batch: the arithmetic, and the communication of some splits.
draw::Chart time_chart(const ScalingQuery& query, const SchemeLinks& links,
                       const std::optional<roofline::PlacedSplit>& given);

/// Strong and weak scaling: forward time of one layer against chips, from the rows of a sweep.
draw::Chart chips_chart(const ScalingQuery& query, const report::Items& rows);

}  // namespace assay::verbs::scaling
