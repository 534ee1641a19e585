// assay layer: what is asked.
#include "assay/ask/verbs/layer/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/collective/placement.h"

namespace assay::verbs::layer {
namespace {

/// The axes of the slice, or the levels of the switched network from the outside in.
program::Mesh default_mesh(const hardware::Cluster& cluster) {
  program::Mesh mesh;
  if (cluster.slices > 1 && cluster.torus) mesh.axes.push_back({"S", cluster.slices});
  if (cluster.torus) {
    for (const hardware::Axis& axis : cluster.torus->axes)
      if (axis.size > 1) mesh.axes.push_back({axis.name, axis.size});
  } else {
    for (std::size_t i = cluster.levels.size(); i-- > 0;)
      if (cluster.levels[i].degree > 1)
        mesh.axes.push_back({std::string(1, "XYZABCDE"[mesh.axes.size() % 8]), cluster.levels[i].degree});
  }
  if (mesh.axes.empty()) mesh.axes.push_back({"X", 1});
  return mesh;
}

Result<program::Mesh> read_mesh(const Request& request, const hardware::Cluster& cluster) {
  program::Mesh mesh = default_mesh(cluster);
  if (const auto text = request.value("mesh")) ASSAY_SET(mesh, program::parse_mesh(*text, "--mesh"));
  const auto long_axes =
      std::count_if(mesh.axes.begin(), mesh.axes.end(), [](const program::MeshAxis& axis) { return axis.size > 1; });
  if (long_axes > search::max_chooser_axes)
    return fail("--mesh",
                fmt::format("the search covers up to {} axes, {} has {}", search::max_chooser_axes,
                            program::mesh_text(mesh), long_axes),
                "merge axes: one mesh axis may span several axes of the cluster, e.g. X=8,Y=16", Error::Kind::usage);
  return mesh;
}

Result<plan::DimensionSizes> read_sizes(const Request& request, const std::vector<std::string>& wanted) {
  const std::string example = wanted[0] + "=128," + wanted[1] + "=8192," + wanted[2] + "=32768";
  const auto text = request.value("sizes");
  if (!text) return fail("layer", "--sizes is missing", "e.g. --sizes " + example, Error::Kind::usage);
  ASSAY_TRY(sizes, plan::parse_dimension_sizes(*text, "--sizes"));
  for (const std::string& dim : wanted)
    if (!sizes.count(dim))
      return fail("--sizes", fmt::format("dimension {} has no size", dim), "e.g. --sizes " + example);
  for (const auto& [dim, size] : sizes)
    if (std::find(wanted.begin(), wanted.end(), dim) == wanted.end())
      return fail("--sizes", fmt::format("there is no dimension {}", in_quotes(dim)),
                  "the dimensions are " + join(wanted, ", "));
  return sizes;
}

/// The sharding that a tensor in the notation has; it must be one of `known`, dimension by dimension.
Result<std::size_t> read_sharding(std::string_view text, std::string_view where, const Query& query,
                                  std::vector<program::Tensor>& known) {
  // The notation has no _ in names, but the weights are called W_in.
  const std::size_t open = std::min(text.find('['), text.size());
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(open), '_'),
              plain.begin() + static_cast<std::ptrdiff_t>(open));
  auto parsed = plan::parse_sharding(plain, query.mesh, query.sizes, query.dtype);
  if (!parsed) return within(where, std::move(parsed).error());
  const program::Tensor& tensor = parsed->left;
  std::vector<std::string> shapes;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto same = [](const program::Dimension& a, const program::Dimension& b) { return a.name == b.name; };
    std::string name = known[i].name;
    std::erase(name, '_');
    const bool matches = name == tensor.name && known[i].dims.size() == tensor.dims.size() &&
                         std::equal(tensor.dims.begin(), tensor.dims.end(), known[i].dims.begin(), same);
    program::Tensor whole = known[i];
    whole.sharding = {};
    shapes.push_back(program::tensor_text(query.mesh, whole));
    if (!matches || parsed->right || parsed->result) continue;
    if (tensor.sharding.unreduced)
      return fail(std::string(where), fmt::format("{} cannot be partial sums", tensor.name), "leave {U_...} out");
    known[i].sharding = tensor.sharding;
    return i;
  }
  return fail(std::string(where), fmt::format("{} is not a sharding of {}", in_quotes(text), join(shapes, " or ")),
              fmt::format("e.g. {}", in_quotes(shapes.front().substr(0, shapes.front().size() - 1) + "_" +
                                               query.mesh.axes.front().name + "]")));
}

Result<void> read_problem(const Request& request, Query& query) {
  const bool one = request.has("one");
  const std::vector<std::string> dims =
      one ? std::vector<std::string>{"I", "J", "K"} : std::vector<std::string>{"B", "D", "F"};
  ASSAY_TRY(sizes, read_sizes(request, dims));
  query.sizes = sizes;
  const auto tensor = [&](std::string name, const std::string& rows, const std::string& columns) {
    return program::Tensor{std::move(name), {{rows, sizes.at(rows)}, {columns, sizes.at(columns)}}, query.dtype, {}};
  };
  search::ChooserProblem& problem = query.problem;
  if (one) {
    problem.tensors = {tensor("A", "I", "J"), tensor("B", "J", "K")};
    problem.result = tensor("C", "I", "K");
  } else {
    problem.tensors = {tensor("In", "B", "D"), tensor("W_in", "D", "F"), tensor("W_out", "F", "D")};
    problem.intermediate = tensor("Tmp", "B", "F");
    problem.result = tensor("Out", "B", "D");
  }
  problem.fixed.assign(problem.tensors.size(), false);
  for (const std::string& text : request.values("fix")) {
    ASSAY_TRY(index, read_sharding(text, "--fix", query, problem.tensors));
    problem.fixed[index] = true;
  }
  if (const auto text = request.value("result")) {
    if (!one)
      return fail("--result", "the result of a layer is sharded like In", "fix In: --fix \"In[B_X, D]\"",
                  Error::Kind::usage);
    problem.result_free = trim(*text) == "any";
    std::vector<program::Tensor> known{problem.result};
    if (!problem.result_free) ASSAY_CHECK(read_sharding(*text, "--result", query, known).map([](std::size_t) {}));
    problem.result = known.front();
  }
  return {};
}

}  // namespace

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_SET(query.cluster, cluster_of(request, context));
  ASSAY_CHECK(read_dtype(request, "dtype", query.dtype));
  ASSAY_SET(query.mesh, read_mesh(request, query.cluster));
  query.memory = query.cluster.chip.hbm().capacity.value;
  if (const auto text = request.value("memory")) {
    ASSAY_TRY(memory, parse_as<Bytes>(*text, "--memory"));
    if (!(memory > Bytes(0))) return fail("--memory", "memory must be positive", "give a positive size, e.g. 300MB");
    query.memory = memory;
  }
  ASSAY_CHECK(read_problem(request, query));
  return query;
}

Result<search::ChooserHardware> chooser_hardware(const Query& query) {
  ASSAY_TRY(placement, collective::Placement::make(query.mesh, query.cluster, "--mesh"));
  ASSAY_TRY(peak, hardware::peak_rate(query.cluster.chip, query.dtype, "--dtype"));
  return search::ChooserHardware{collective::time_prices(placement, query.mesh, peak.value), peak.value,
                                 query.cluster.chip.hbm().bandwidth->value, query.memory};
}

}  // namespace assay::verbs::layer
