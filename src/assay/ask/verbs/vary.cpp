#include "assay/ask/verbs/vary.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::verbs {

Result<std::optional<Variation>> read_variation(const Request& request, std::span<const VariedNumber> axes) {
  constexpr std::size_t most = 256;
  const auto text = request.value("vary");
  if (!text) return std::optional<Variation>();
  const std::size_t equals = text->find('=');
  const std::string name(trim(std::string_view(*text).substr(0, equals)));
  const VariedNumber* axis = nullptr;
  std::vector<std::string> examples;
  for (const VariedNumber& one : axes) {
    if (one.name == name) axis = &one;
    examples.push_back(fmt::format("{}={}", one.name, one.example));
  }
  if (!axis || equals == std::string::npos)
    return fail("--vary", fmt::format("{} is not a sweep", in_quotes(*text)), "e.g. " + join(examples, " or "),
                Error::Kind::usage);
  Variation variation{name, {}};
  const std::string_view values = std::string_view(*text).substr(equals + 1);
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    ASSAY_TRY(from, axis->parse(trim(values.substr(0, dots)), "--vary"));
    ASSAY_TRY(to, axis->parse(trim(values.substr(dots + 2)), "--vary"));
    if (!(from > 0.0) || from > to)
      return fail("--vary", fmt::format("{} does not go up from a number above 0", in_quotes(values)),
                  "put the smaller end first", Error::Kind::usage);
    for (double at = from; at < to; at *= 2.0) variation.values.push_back(at);
    variation.values.push_back(to);
  } else {
    for (const std::string& part : split(values, ',')) {
      ASSAY_TRY(value, axis->parse(trim(part), "--vary"));
      variation.values.push_back(value);
    }
  }
  if (variation.values.size() > most)
    return fail("--vary", fmt::format("{} points, and at most {} are asked for", variation.values.size(), most),
                "give a shorter range, or a list", Error::Kind::usage);
  return std::optional(std::move(variation));
}

}  // namespace assay::verbs
