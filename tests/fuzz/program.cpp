// Programs as text: any text gives a program or an error that points at a character of it; small programs run, and
// equal their unsharded run.
#include <string>
#include <string_view>

#include "assay/engine/language/run_text.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

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

const fuzz::Target program_target("program", [](std::string_view text) {
  const language::Source source{"program", std::string(text)};
  const auto syntax = language::parse(source);
  if (!syntax) {
    check_error(syntax.error());
    return;
  }
  // More axes, or long programs, take the search seconds under the sanitizers.
  if (syntax->mesh.size() > 3 || text.size() > 2000) return;
  const auto mesh = language::mesh_of(*syntax);
  if (mesh.devices() > 64) return;
  const auto sharded = language::compile(source, *syntax, language::Reading::sharded, plan::byte_prices(mesh), false);
  if (!sharded) {
    check_error(sharded.error());
    return;
  }
  const auto whole = language::compile(source, *syntax, language::Reading::unsharded, plan::byte_prices({}), false);
  if (!whole) {
    check_error(whole.error());
    return;
  }
  if (!is_small(*sharded) || !is_small(*whole)) return;
  const engine::TextRun run = engine::run_text(*sharded);
  require(run.facts.byte_error <= 1e-9);
  engine::run_text(*whole);
});

}  // namespace
