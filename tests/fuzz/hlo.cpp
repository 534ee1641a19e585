// Programs: any text gives a program that can be counted, or an error that says where and what to do.
#include <string>
#include <string_view>

#include "assay/profile/compare/recognition.h"
#include "assay/profile/hlo/liveness.h"
#include "assay/profile/hlo/partition/partition.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

template <class T>
bool is_there(const Result<T>& result) {
  require(result || (!result.error().where.empty() && !result.error().what.empty() && !result.error().hint.empty()));
  return result.has_value();
}

/// A program of whole arrays can be planned on its mesh, or the error says why not.
void check_plan(const hlo::Module& module) {
  const auto mesh = hlo::partition_mesh(module);
  if (!is_there(mesh)) return;
  const plan::Prices prices = plan::byte_prices(mesh->mesh);
  auto partitioner = hlo::Partitioner::make(module, *mesh, prices);
  if (!is_there(partitioner)) return;
  const auto plan = partitioner->best();
  if (!is_there(plan)) return;
  const auto kernels = hlo::program_kernels(plan->module);
  if (is_there(kernels)) hlo::program_memory(plan->module, *kernels);
}

const fuzz::Target hlo_target("hlo", [](std::string_view text) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  static const hlo::Calls& known = **hlo::calls_of(catalogue);
  if (const auto shape = hlo::parse_shape(text, "shape")) require(shape->bytes() <= shape->padded_bytes());
  const auto read = hlo::read_module(std::string(text), "program", known);
  if (!read) {
    require(!read.error().where.empty() && !read.error().what.empty() && !read.error().hint.empty());
    return;
  }
  const auto kernels = hlo::program_kernels(*read);
  const auto mesh = hlo::program_mesh(*read);
  if (!kernels || !mesh) {
    const Error& error = kernels ? mesh.error() : kernels.error();
    require(!error.where.empty() && !error.what.empty() && !error.hint.empty());
    return;
  }
  const hlo::ProgramMemory memory = hlo::program_memory(*read, *kernels);
  require(memory.peak() >= memory.arguments);
  compare::recognise(*read, *mesh, *kernels);
  if (read->is_stablehlo && text.size() < 20'000) check_plan(*read);
});

}  // namespace
