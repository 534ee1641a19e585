// A timeline as part of an answer.
#pragma once
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/document.h"

namespace assay::verbs::train {

/// Lanes, classes of bars, bars in order of their start, marks and counters. Bars name lane and class by their place
/// in these lists.
report::Members timeline_members(const draw::Timeline& timeline);

}  // namespace assay::verbs::train
