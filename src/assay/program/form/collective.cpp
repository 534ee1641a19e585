#include "assay/program/form/collective.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "assay/base/text.h"

namespace assay::program {

Result<Collective> parse_collective(std::string_view text, std::string_view where) {
  std::vector<std::string> known;
  for (const CollectiveFacts& each : all_collectives) {
    if (each.name == text) return each.kind;
    known.emplace_back(each.name);
  }
  return fail(std::string(where), fmt::format("unknown collective {}", in_quotes(text)), suggestion(text, known),
              Error::Kind::usage);
}

}  // namespace assay::program
