// Calibrations from profiles: kernels inside of real steps, as rows of a table.
#pragma once
#include "assay/ask/verbs/measure/measured_table.h"
#include "assay/ask/verbs/profile/query.h"

namespace assay::verbs::measure_verb {

/// A profile with its products and attention as a table in the form of lab/measure/rows.h.
struct ProfiledRows {
  profile::Query query;
  MeasuredTable table;
};
Result<ProfiledRows> profiled_rows(const std::string& file, std::string_view where, const Context& context);

/// The answer of --profile: the calibration of the chip with what its kernels say, and how much nearer it is.
Result<report::Response> answer_profiles(const Request& request, const Context& context, const std::string& directory);

}  // namespace assay::verbs::measure_verb
