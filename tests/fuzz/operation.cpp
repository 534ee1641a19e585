// Operations: any text gives an operation or an error; an operation reads back from its text, and its cost is sane.
#include <cmath>
#include <string_view>

#include "assay/predict/roofline/roofline.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

void check_cost(const roofline::Operation& operation, const roofline::TrafficCounting& counting,
                const roofline::Roof& roof) {
  const roofline::Work<Plain> work = roofline::operation_work(Plain{}, operation, counting);
  require(work.flops >= Flops(0) && std::isfinite(work.flops.value()));
  require(work.bytes > Bytes(0) && std::isfinite(work.bytes.value()));
  const roofline::Bound<Plain> bound = roofline::roofline_bound(Plain{}, work, roof);
  require(bound.compute >= Seconds(0) && bound.memory > Seconds(0));
  require(bound.lower <= bound.upper && bound.lower <= bound.estimate);
  Ledger ledger;
  const Traced num{&ledger};
  const roofline::Bound<Traced> traced =
      roofline::roofline_bound(num, roofline::operation_work(num, operation, counting), roof);
  require(plain(traced.lower) == bound.lower && plain(traced.upper) == bound.upper);
}

const fuzz::Target operation_target("operation", [](std::string_view text) {
  static_cast<void>(roofline::parse_tensor(text, "fuzz"));
  const Result<roofline::Operation> parsed = roofline::parse_operation(text, "fuzz");
  if (!parsed) {
    require(!parsed.error().what.empty() && parsed.error().where.starts_with("fuzz"));
    return;
  }
  const Result<roofline::Operation> again = roofline::parse_operation(parsed->text(), "text");
  require(again && again->text() == parsed->text() && again->free_sizes() == parsed->free_sizes());

  roofline::Roof roof;
  roof.peak = {197_TFLOP_per_s, "fuzz", "", {}};
  roof.bandwidth = {820_GB_per_s, "fuzz", "", {}};
  roofline::Operation operation = *parsed;
  for (const std::string& letter : parsed->free_sizes()) {
    static_cast<void>(roofline::find_knee(operation, letter, {}, roof));
    operation = operation.with(letter, 7.0);
  }
  check_cost(operation, {}, roof);
  if (operation.is_matmul()) {
    check_cost(operation, {roofline::Tile{4, 16, 3}, 1, Dtype::bf16}, roof);
    check_cost(operation, {std::nullopt, 4, Dtype::fp32}, roof);
  }
});

}  // namespace
