#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs::run {
namespace {

constexpr std::size_t most_elements = 256;  // of one device
constexpr std::size_t most_rows = 20000;

report::Value nested(const engine::Array& array, std::size_t dim, std::size_t& next) {
  if (dim == array.shape.size()) return array.values[next++];
  report::Items items;
  for (std::int64_t i = 0; i < array.shape[dim]; ++i) items.push_back(nested(array, dim + 1, next));
  return items;
}

std::string name_of(const program::ProgramTensor& tensor) {
  return (tensor.is_gradient ? "d" : "") + std::string(tensor.name);
}

/// What a device holds, without the dimension of the devices.
engine::Array held_array(const language::Compiled& compiled, int id, engine::Array held) {
  const std::size_t rank = language::listed_tensor(compiled, id).dims.size();
  held.shape.erase(held.shape.begin(), held.shape.end() - static_cast<std::ptrdiff_t>(rank));
  return held;
}

/// "X=0,Y=1"
std::string place_text(const program::Mesh& mesh, std::int64_t device) {
  const engine::Coordinates at = engine::coordinates(mesh, device);
  std::string text;
  for (std::size_t i = 0; i < at.size(); ++i)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", mesh.axes[i].name, at[i]);
  return text;
}

}  // namespace

report::Value nested(const engine::Array& array) {
  std::size_t next = 0;
  return nested(array, 0, next);
}

std::string type_text(const program::Mesh& mesh, const program::Tensor& tensor) {
  std::string text;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    text += fmt::format("{}{}", d == 0 ? "" : ", ", tensor.dims[d].size);
    const program::AxisList axes = tensor.sharding.dims[d];
    if (!axes.empty()) text += "@" + program::axes_text(mesh, axes);
  }
  return fmt::format("{}[{}]", facts(tensor.dtype).name, text);
}

Result<std::vector<std::string>> shown_names(const Request& request, const language::Compiled& compiled) {
  const auto text = request.value("show");
  if (!text) return std::vector<std::string>{};
  std::vector<std::string> known;
  for (const program::ProgramTensor& tensor : compiled.program.tensors)
    if (std::find(known.begin(), known.end(), name_of(tensor)) == known.end()) known.push_back(name_of(tensor));
  std::vector<std::string> names = split(*text, ',');
  for (std::string& name : names) {
    name = trim(name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail("--show", fmt::format("the program has no tensor {}", in_quotes(name)), suggestion(name, known),
                  Error::Kind::usage);
  }
  return names;
}

Result<report::Items> shown_rows(const language::Compiled& compiled, const engine::TextRun& run,
                                 const std::vector<std::string>& names) {
  const program::Program& program = compiled.program;
  report::Items rows;
  std::optional<Error> fault;
  const auto show = [&](int id, std::string_view after) {
    const program::ProgramTensor& tensor = program.tensor(id);
    if (fault || std::find(names.begin(), names.end(), name_of(tensor)) == names.end()) return;
    const auto& shards = run.memory[static_cast<std::size_t>(id)];
    if (static_cast<std::size_t>(tensor.elements) > most_elements || rows.size() + shards.size() > most_rows) {
      fault = Error{Error::Kind::input,
                    "--show",
                    fmt::format("{} has {:.0f} elements on a device, up to {} are shown", name_of(tensor),
                                tensor.elements, most_elements),
                    "use smaller sizes",
                    {}};
      return;
    }
    report::Items held;
    for (std::size_t d = 0; d < shards.size(); ++d)
      held.emplace_back(report::Members{{"device", place_text(program.mesh, static_cast<std::int64_t>(d))},
                                        {"values", nested(held_array(compiled, id, shards[d]))}});
    rows.emplace_back(
        report::Members{{"after", after},
                        {"tensor", program::tensor_text(program.mesh, language::listed_tensor(compiled, id))},
                        {"devices", std::move(held)}});
  };
  for (const language::GivenTensor& given : compiled.given)
    if (given.kind == language::Value::Given::input) show(given.tensor, "given");
  for (const program::Step& step : program.steps) {
    // A view shows nothing new but its name: its operand holds the same.
    const bool is_view = step.op == program::Op::view || step.op == program::Op::view_grad;
    if (is_view && name_of(program.tensor(step.in[0])) == name_of(program.tensor(step.out[0]))) continue;
    for (int id : step.out)
      if (id >= 0) show(id, language::listed_text(compiled, step));
  }
  if (fault) return tl::unexpected<Error>(*fault);
  return rows;
}

}  // namespace assay::verbs::run
