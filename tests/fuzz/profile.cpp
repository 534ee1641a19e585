// Profiles: any bytes give a trace that can be summed up and laid beside a prediction, or an error that says where and
// what to do.
#include <cmath>
#include <string_view>

#include "assay/profile/compare/recovered.h"
#include "assay/profile/compare/waterfall.h"
#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/summary.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

/// A product, a norm and an update.
compare::Prediction small_prediction() {
  compare::Prediction out;
  for (const program::Op op : {program::Op::product, program::Op::norm, program::Op::update}) {
    compare::PredictedLine line;
    line.op = op;
    line.flops = Flops(op == program::Op::product ? 2.0 * 1024 * 512 * 256 : 0.0);
    line.time = 10_us;
    out.order.push_back(static_cast<std::uint32_t>(out.lines.size()));
    out.lines.push_back(std::move(line));
  }
  out.time = 40_us;
  out.overhead = 10_us;
  return out;
}

void compare_device(const trace::Trace& trace, const trace::Vocabulary& vocabulary, std::int64_t device) {
  const compare::MeasuredStep measured = compare::measured_step(trace, vocabulary, device);
  double sum = static_cast<double>(measured.host_gaps) + static_cast<double>(measured.other_gaps);
  for (const compare::MeasuredCall& call : measured.calls) sum += static_cast<double>(call.alone);
  require(std::abs(sum - static_cast<double>(measured.total)) <= 1e-9 * static_cast<double>(measured.total));
  const compare::Prediction prediction = small_prediction();
  const compare::Waterfall gap =
      compare::waterfall(measured, prediction, compare::match(measured, prediction, vocabulary), vocabulary);
  require(std::abs(gap.residual.value()) <= 1e-9 * std::max(gap.measured, gap.predicted).value());
  if (const auto run = compare::recover(measured, vocabulary, "profile"))
    require(run->model.heads > 0 && run->model.layers > 0);
}

const fuzz::Target profile_target("profile", [](std::string_view bytes) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  static const trace::Vocabulary& vocabulary = **trace::vocabulary_of(catalogue);
  const auto read = trace::read_profile(bytes, "profile", vocabulary);
  if (!read) {
    require(!read.error().where.empty() && !read.error().what.empty() && !read.error().hint.empty());
    return;
  }
  for (const trace::DeviceSummary& device : trace::summarize(*read, vocabulary)) {
    require(device.times.busy <= device.times.total);
    require(device.times.computation <= device.times.busy);
    require(!device.operations.empty() && !device.categories.empty());
    compare_device(*read, vocabulary, device.device);
  }
});

}  // namespace
