#include <fmt/format.h>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/base/text.h"
#include "assay/profile/hlo/execute/array.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

/// Arrays that are shown element by element.
constexpr double most_shown = 4096;

/// "(0,4)" at the places of memory, "_" where it is padding.
std::string memory_order(const hlo::Shape& shape) {
  const auto places = static_cast<std::size_t>(shape.padded_bytes().value() * 8.0 / shape.element->bits + 0.5);
  std::vector<std::string> out(places, "_");
  for (hlo::Indices index(shape.dims); !index.done(); index.next()) {
    const auto at = static_cast<std::size_t>(element_offset(shape, index.at));
    if (at < out.size()) out[at] = fmt::format("({})", fmt::join(index.at, ","));
  }
  return join(out, " ");
}

Result<std::vector<std::int64_t>> read_element(const Request& request, const hlo::Shape& shape) {
  std::vector<std::int64_t> out;
  for (const std::string& word : split(*request.value("element"), ',')) {
    const auto number = parse_number(trim(word));
    const bool inside = number && out.size() < shape.dims.size() && *number >= 0.0 &&
                        *number < static_cast<double>(shape.dims[out.size()]);
    if (!inside)
      return fail("--element",
                  fmt::format("{} is no element of {}", in_quotes(*request.value("element")), shape_text(shape, false)),
                  "an index for each dimension, from 0, such as 2,4");
    out.push_back(static_cast<std::int64_t>(*number));
  }
  if (out.size() != shape.dims.size())
    return fail("--element", fmt::format("{} of {} indices", out.size(), shape.dims.size()),
                "an index for each dimension, from 0, such as 2,4");
  return out;
}

}  // namespace

Result<report::Response> layout_answer(const Request& request, std::string_view text) {
  ASSAY_TRY(shape, hlo::parse_shape(text, "FILE"));
  if (shape.is_tuple || shape.element->bits == 0)
    return fail("FILE", "a tuple has no layout of its own",
                "give one of its arrays, such as bf16[8,128]{1,0:T(8,128)(2,1)}");
  report::Response response;
  report::Members layout{{"shape", shape_text(shape)},
                         {"dtype", shape.element->name},
                         {"element_bits", static_cast<std::int64_t>(shape.element->bits)},
                         {"memory", hlo::memory_name(shape.layout.memory_space)},
                         {"elements", shape.elements()},
                         {"bytes", shape.bytes()},
                         {"padded", fmt::format("[{}]", fmt::join(padded_dims(shape), ","))},
                         {"padded_bytes", shape.padded_bytes()}};
  if (shape.bytes() > Bytes(0)) layout.emplace_back("growth", shape.padded_bytes() / shape.bytes());
  if (request.has("element")) {
    ASSAY_TRY(element, read_element(request, shape));
    const std::int64_t offset = element_offset(shape, element);
    layout.emplace_back("offset", offset);
    layout.emplace_back("byte_offset", Bytes(static_cast<double>(offset) * shape.element->bits / 8.0));
  }
  if (shape.elements() <= most_shown && shape.padded_bytes().value() * 8.0 / shape.element->bits <= most_shown)
    layout.emplace_back("order", memory_order(shape));
  response.headline = fmt::format("{}: {} in {}", shape_text(shape), report::short_quantity(shape.padded_bytes()),
                                  hlo::memory_name(shape.layout.memory_space));
  response.results.emplace_back("file", shape_text(shape));
  response.results.emplace_back("layout", std::move(layout));
  return response;
}

}  // namespace assay::verbs::profile
