// Pictures of `assay scaling`: arithmetic over communication, or both times, against the batch.
#pragma once
#include <vector>

#include "assay/draw/chart/chart.h"
#include "assay/verbs/scaling/sections.h"

namespace assay {

/// Arithmetic over communication of a forward pass against tokens per chip, for each scheme; 1 is where they are equal.
Chart ratio_chart(const ScalingQuery& query, const SchemeLinks& links, const std::optional<PlacedSplit>& given);
/// Forward time of one layer against the batch: the arithmetic, and the communication of some splits.
Chart time_chart(const ScalingQuery& query, const SchemeLinks& links, const std::optional<PlacedSplit>& given);

/// Strong and weak scaling: forward time of one layer against chips, from the rows of a sweep.
Chart chips_chart(const ScalingQuery& query, const Items& rows);

}  // namespace assay
