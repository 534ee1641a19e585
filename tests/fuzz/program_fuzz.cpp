// Programs as text: any text gives a program or an error that points at a character of it; small programs run, and
// equal their unsharded run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "assay/execute/language/run_text.h"

namespace {

using namespace assay;

void require(bool truth) {
  if (!truth) std::abort();
}

/// An error has a place "program:LINE:COLUMN" in the text and a line that shows it.
void check_error(const Error& error) {
  require(!error.what.empty() && error.where.starts_with("program:"));
  require(error.what.ends_with("^"));
}

bool is_small(const language::Compiled& compiled) {
  double elements = 0.0;
  for (const program::ProgramTensor& tensor : compiled.program.tensors) elements += tensor.elements;
  return elements * static_cast<double>(compiled.program.mesh.devices()) < 1e5 && compiled.program.steps.size() < 500;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const language::Source source{"program", std::string(reinterpret_cast<const char*>(data), size)};
  const auto syntax = language::parse(source);
  if (!syntax) {
    check_error(syntax.error());
    return 0;
  }
  // More axes, or long programs, take the search seconds under the sanitizers.
  if (syntax->mesh.size() > 3 || size > 2000) return 0;
  const auto mesh = language::mesh_of(*syntax);
  if (mesh.devices() > 64) return 0;
  const auto sharded = language::compile(source, *syntax, language::Reading::sharded, plan::byte_prices(mesh), false);
  if (!sharded) {
    check_error(sharded.error());
    return 0;
  }
  const auto whole = language::compile(source, *syntax, language::Reading::unsharded, plan::byte_prices({}), false);
  if (!whole) {
    check_error(whole.error());
    return 0;
  }
  if (!is_small(*sharded) || !is_small(*whole)) return 0;
  const execute::TextRun run = execute::run_text(*sharded);
  require(run.facts.byte_error <= 1e-9);
  execute::run_text(*whole);
  return 0;
}
