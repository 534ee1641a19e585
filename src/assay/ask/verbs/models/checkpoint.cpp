#include "assay/ask/verbs/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "assay/base/text.h"

namespace assay::verbs::models {
namespace {

/// The name of a tensor with its layer and expert taken out: "model.layers.*.mlp.experts.*.up_proj.weight".
std::string group_name(const std::string& name) {
  std::string out;
  for (const std::string& part : split(name, '.')) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += out.empty() ? "" : ".";
    out += number ? "*" : part;
  }
  return out;
}

/// Whether a tensor belongs to a layer behind the model's last: a prediction layer.
bool behind_last_layer(const std::string& name, std::int64_t layers) {
  const auto parts_of_name = split(name, '.');
  for (std::size_t i = 0; i + 1 < parts_of_name.size(); ++i)
    if (parts_of_name[i] == "layers" || parts_of_name[i] == "blk")
      if (const auto index = parse_number(parts_of_name[i + 1])) return *index >= static_cast<double>(layers);
  return false;
}

/// A matrix of machine words that hold several weights each, as AWQ, GPTQ, MLX and MXFP4 pack them.
bool holds_packed_weights(const model::CheckpointTensor& tensor) {
  return tensor.shape.size() > 1 && (tensor.dtype == "I32" || tensor.dtype == "U32" || tensor.dtype == "U8");
}

}  // namespace

void add_checkpoint(report::Response& response, const model::Checkpoint& checkpoint,
                    const model::ParameterCounts* counts, const model::Transformer* model) {
  struct Group {
    std::int64_t tensors = 0, elements = 0;
    std::string dtype;
  };
  std::map<std::string, Group> groups;
  std::map<std::string, std::int64_t> dtypes;
  std::int64_t total = 0, weights = 0;
  Bytes bytes;
  for (const model::CheckpointTensor& tensor : checkpoint.tensors) {
    total += tensor.elements;
    bytes += tensor.bytes;
    dtypes[tensor.dtype] += tensor.elements;
    if (model::counts_as_parameter(tensor.name) && !(model && behind_last_layer(tensor.name, model->decoder.layers())))
      weights += tensor.elements;
    Group& group = groups[group_name(tensor.name)];
    ++group.tensors;
    group.elements += tensor.elements;
    group.dtype = group.dtype.empty() || group.dtype == tensor.dtype ? tensor.dtype : "mixed";
  }
  report::Members out{
      {"tensors", static_cast<std::int64_t>(checkpoint.tensors.size())}, {"elements", total}, {"bytes", bytes}};
  report::Members by_dtype;
  for (const auto& [dtype, elements] : dtypes) by_dtype.emplace_back(dtype, elements);
  out.emplace_back("dtypes", std::move(by_dtype));
  const auto packed = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(), [](const auto& tensor) {
    return model::counts_as_parameter(tensor.name) && holds_packed_weights(tensor);
  });
  if (counts && packed != checkpoint.tensors.end()) {
    response.notes.push_back(
        fmt::format("elements of {} hold several weights each: the tensors are not compared with the configuration",
                    packed->dtype));
  } else if (counts) {
    out.emplace_back("weights", weights);
    out.emplace_back("difference", weights - counts->total);
    response.notes.push_back(weights == counts->total
                                 ? "the tensors and the configuration agree to the last parameter"
                                 : fmt::format("the tensors hold {} weights, the configuration makes {}: {} {}",
                                               human_count(weights), human_count(counts->total),
                                               human_count(std::abs(weights - counts->total)),
                                               weights > counts->total ? "more" : "fewer"));
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.elements > b.second.elements; });
  constexpr std::size_t most = 40;
  report::Items rows;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const std::string quoted = in_quotes(sorted[i].first);  // names come from a foreign file
    rows.emplace_back(report::Members{{"name", quoted.substr(1, quoted.size() - 2)},
                                      {"tensors", sorted[i].second.tensors},
                                      {"elements", sorted[i].second.elements},
                                      {"dtype", sorted[i].second.dtype}});
  }
  if (sorted.size() > most)
    response.notes.push_back(fmt::format("{} smaller groups of tensors not shown", sorted.size() - most));
  out.emplace_back("groups", std::move(rows));
  response.results.emplace_back("checkpoint", std::move(out));
}

}  // namespace assay::verbs::models
