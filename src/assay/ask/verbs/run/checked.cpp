// A plan of a program of somebody's own, executed: device by device on real numbers, beside the program without a plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/run/planned_view.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/base/text.h"
#include "assay/profile/hlo/execute/execution.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::run {
namespace {

/// What numbers of a program may differ by, as a share of the largest: between two orders of its sums here, which are
/// made in fp64, and from what a device computes in its own formats.
struct Tolerance {
  double planned = 1e-9, expected = 1e-5;

  static Tolerance of(const hlo::Module& module) {
    constexpr Tolerance rounded{0.02, 0.05};  // somewhere numbers become shorter than fp32
    for (const hlo::Computation& computation : module.computations)
      for (const hlo::Instruction& at : computation.instructions)
        if (at.shape.element && at.shape.element->is_float && at.shape.element->bits < 32) return rounded;
    return {};
  }
};

/// Arrays of FILE.npz:PREFIX, those whose names are the prefix and a number.
Result<std::vector<hlo::Array>> arrays_of(std::string_view option, const std::string& text, std::string_view usual) {
  const std::size_t colon = text.rfind(".npz:");
  const std::string file = colon == std::string::npos ? text : text.substr(0, colon + 4);
  const std::string prefix = colon == std::string::npos ? std::string(usual) : text.substr(colon + 5);
  ASSAY_TRY(bytes, trace::file_bytes(file, option));
  ASSAY_TRY(arrays, hlo::npz_arrays(bytes, prefix, file));
  if (arrays.empty())
    return fail(std::string(option), fmt::format("{} has no array {}0", file, prefix),
                fmt::format("give the part of the names before the number, as in {}:{}", file, usual));
  return arrays;
}

Result<void> check_shapes(std::string_view option, std::vector<hlo::Array>& arrays,
                          const std::vector<hlo::Shape>& shapes) {
  if (arrays.size() != shapes.size())
    return fail(std::string(option), fmt::format("{} arrays, the program has {}", arrays.size(), shapes.size()),
                "one for each, in the order of the program");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape != shapes[i].dims)
      return fail(std::string(option),
                  fmt::format("array {} is [{}], the program has {}", i, fmt::join(arrays[i].shape, ","),
                              hlo::shape_text(shapes[i], false)),
                  "sizes as the program has them");
    arrays[i].element = shapes[i].element;
  }
  return {};
}

/// An error for programs that would take minutes.
Result<void> check_size(const hlo::Module& source, Flops products) {
  constexpr const char* remedy = "lower the program at smaller sizes; without --check it is planned at these";
  constexpr Flops most(2e10);
  for (const hlo::Computation& computation : source.computations)
    for (const hlo::Instruction& at : computation.instructions)
      if (const double elements = at.shape.elements(); elements > static_cast<double>(hlo::most_elements))
        return fail(source.where(at),
                    fmt::format("an array of {} elements is too large to be executed, at most {}", elements,
                                hlo::most_elements),
                    remedy);
  if (products > most)
    return fail(source.file,
                fmt::format("products of {} are too many to be executed, at most {}", report::short_quantity(products),
                            report::short_quantity(most)),
                remedy);
  return {};
}

}  // namespace

Result<void> check_plan(const Request& request, const hlo::Module& source, const hlo::PartitionPricing& pricing,
                        const PlannedProgram& program, report::Response& response) {
  const hlo::PartitionedProgram& plan = program.plan;
  const auto given = request.value("inputs"), expects = request.value("expect");
  if (!request.has("check") && !given && !expects) return {};
  ASSAY_CHECK(check_size(source, program.query.kernels.totals.matrix * static_cast<double>(plan.mesh.mesh.devices())));
  std::vector<hlo::Array> inputs = hlo::drawn_inputs(source, 1);
  if (given) {
    std::vector<hlo::Shape> shapes(inputs.size());
    for (const hlo::Instruction& at : source.entry_computation()->instructions)
      if (at.opcode == "parameter") shapes[hlo::at(static_cast<int>(hlo::number_list(at.argument).front()))] = at.shape;
    ASSAY_TRY(arrays, arrays_of("--inputs", *given, "in"));
    ASSAY_CHECK(check_shapes("--inputs", arrays, shapes));
    inputs = std::move(arrays);
  }
  std::vector<hlo::Array> expected;
  if (expects) {
    std::vector<hlo::Shape> shapes;
    for (const hlo::DividedArray& result : plan.results) shapes.push_back(result.shape);
    ASSAY_TRY(arrays, arrays_of("--expect", *expects, "out"));
    ASSAY_CHECK(check_shapes("--expect", arrays, shapes));
    expected = std::move(arrays);
  }
  ASSAY_TRY(whole_plan, hlo::undivided(source, pricing));
  ASSAY_TRY(whole, hlo::execute(source, pricing, whole_plan, inputs));
  ASSAY_TRY(planned, hlo::execute(source, pricing, plan, inputs));
  const Tolerance tolerance = Tolerance::of(source);
  double worst = 0.0, worst_expected = 0.0;
  report::Items rows;
  const auto number = [](double error) { return std::isfinite(error) ? report::Value(error) : report::Value(); };
  for (std::size_t i = 0; i < planned.size(); ++i) {
    double error = 0.0, of_expected = 0.0;
    for (const hlo::Array& copy : planned[i].copies) {
      for (const hlo::Array& other : whole[i].copies) error = std::max(error, hlo::difference(copy, other));
      if (!expected.empty()) of_expected = std::max(of_expected, hlo::difference(copy, expected[i]));
    }
    report::Members row{{"name", planned[i].name}, {"max_error", number(error)}};
    if (!expected.empty()) row.emplace_back("expected_error", number(of_expected));
    rows.emplace_back(std::move(row));
    worst = std::max(worst, error);
    worst_expected = std::max(worst_expected, of_expected);
  }
  const bool ok = worst <= tolerance.planned && worst_expected <= tolerance.expected;
  report::Members check{{"max_error", number(worst)}, {"compared", true}, {"tolerance", tolerance.planned}};
  if (!expected.empty()) {
    check.emplace_back("expected_error", number(worst_expected));
    check.emplace_back("expected_tolerance", tolerance.expected);
  }
  check.emplace_back("results", std::move(rows));
  check.emplace_back("ok", ok);
  response.results.emplace_back("check", std::move(check));
  if (!ok) response.outcome = report::Outcome::check_failed;
  response.notes.push_back(fmt::format("executed on {} virtual devices, in fp64, on {}", plan.mesh.mesh.devices(),
                                       given ? *given : "drawn numbers (--inputs gives others)"));
  return {};
}

}  // namespace assay::verbs::run
