// The parts of an answer about a profile.
#pragma once
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/screen.h"
#include "assay/ask/verbs/profile/query.h"

namespace assay::verbs::profile {

/// A kernel without its arguments, templates and namespaces.
std::string short_kernel(std::string_view name);

void add_times(const trace::DeviceTimes& times, report::Members& out);
report::Items category_rows(const Query& query, const trace::DeviceSummary& summary);
report::Items operation_rows(const Query& query);
report::Items gap_rows(const trace::DeviceSummary& summary);
report::Items stream_rows(const trace::DeviceSummary& summary);
report::Items rank_rows(const Query& query);
/// FLOP of all operations with known shapes, and the share of the peak that they are over the whole time.
void add_rates(const Query& query, report::Members& out);
/// Steps and how much they differ.
void add_steps(const trace::DeviceSummary& summary, report::Members& out);
/// The rank that others wait for, where computation differs between ranks by more than 2 %.
void add_straggler(const Query& query, report::Members& out);

/// What got slower and what faster since the first of two profiles, for each step where both have steps.
void add_comparison(const Query& query, report::Members& out);

/// Events of the shown device on its streams, coloured by category, with the steps.
draw::Timeline timeline_of(const Query& query);
/// The same as a picture, above the time of each category.
draw::Scene picture_of(const Query& query);

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer);

}  // namespace assay::verbs::profile
