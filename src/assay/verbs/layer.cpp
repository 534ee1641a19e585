// assay layer: the best sharding of a layer's three tensors, or of one product, under a cap on memory.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/network/placement.h"
#include "assay/search/layer/chooser.h"
#include "assay/verbs/screens/screens.h"
#include "assay/verbs/verbs.h"

namespace assay::verbs::layer {
namespace {

struct Query {
  hardware::Cluster cluster;
  program::Mesh mesh;
  search::ChooserProblem problem;
  plan::DimensionSizes sizes;
  Dtype dtype = Dtype::bf16;
  Bytes memory;
};

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
  if (const auto text = request.value("mesh")) {
    ASSAY_TRY(parsed, program::parse_mesh(*text, "--mesh"));
    mesh = parsed;
  }
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
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.where = fmt::format("{}: {}", where, error.where);
    return tl::unexpected<Error>(std::move(error));
  }
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

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_TRY(cluster, cluster_of(request, context));
  query.cluster = cluster;
  if (const auto text = request.value("dtype")) {
    ASSAY_TRY(parsed, parse_dtype(*text, "--dtype"));
    query.dtype = parsed;
  }
  ASSAY_TRY(mesh, read_mesh(request, query.cluster));
  query.mesh = mesh;
  query.memory = query.cluster.chip.hbm().capacity.value;
  if (const auto text = request.value("memory")) {
    ASSAY_TRY(memory, parse_as<Bytes>(*text, "--memory"));
    if (!(memory > Bytes(0))) return fail("--memory", "memory must be positive", "give a positive size, e.g. 300MB");
    query.memory = memory;
  }
  ASSAY_CHECK(read_problem(request, query));
  return query;
}

/// Why a runner-up comes after the best one.
std::string reason(const search::LayerChoice& best, const search::LayerChoice& other) {
  const auto more = [](double a, double b) { return a > b * (1.0 + 1e-9); };
  const auto moved = [&](const char* what) {
    return fmt::format("{}: {} on the network instead of {}", what, human(other.times.communication),
                       human(best.times.communication));
  };
  if (more(other.times.lower.value(), best.times.lower.value())) {
    const double share = other.times.lower / best.times.lower - 1.0;
    const std::string slower = fmt::format("{} slower, bound by {}", report::percent(share), search::limiter_of(other));
    return more(other.times.communication.value(), best.times.communication.value())
               ? moved((slower + "; moves more").c_str())
               : slower;
  }
  if (more(other.times.communication.value(), best.times.communication.value()))
    return moved("as fast with full overlap, but moves more");
  if (more(other.times.upper.value(), best.times.upper.value()))
    return "as fast with full overlap, but with more arithmetic or memory traffic";
  if (!more(other.memory().value(), best.memory().value())) return "equal in time and memory";
  return fmt::format("as fast, but needs {} more memory", human(other.memory() - best.memory()));
}

std::string shardings_text(const program::Mesh& mesh, const search::LayerChoice& choice) {
  std::vector<std::string> parts;
  for (const program::Tensor& tensor : choice.tensors) parts.push_back(program::tensor_text(mesh, tensor));
  return join(parts, ", ");
}

report::Members memory_members(const Query& query, const search::LayerChoice& choice) {
  report::Members memory;
  for (const program::Tensor& tensor : choice.tensors)
    memory.emplace_back(tensor.name, program::local_bytes(query.mesh, tensor));
  if (query.problem.layer())
    memory.emplace_back("weights", program::local_bytes(query.mesh, choice.tensors[1]) +
                                       program::local_bytes(query.mesh, choice.tensors[2]));
  memory.emplace_back("stored", choice.stored);
  memory.emplace_back("working", choice.working);
  memory.emplace_back("total", choice.memory());
  memory.emplace_back("capacity", query.memory);
  memory.emplace_back("fits", choice.memory() <= query.memory);
  return memory;
}

report::Items step_rows(const Query& query, const search::LayerChoice& choice) {
  report::Items rows;
  for (std::size_t p = 0; p < choice.plans.size(); ++p)
    for (std::size_t i = 0; i < choice.plans[p].steps.size(); ++i) {
      const plan::Plan& plan = choice.plans[p];
      const program::Step& step = plan.steps[i];
      const bool multiplies = step.op == program::Op::product;
      const search::ProductTimes& times = choice.products[p];
      const Seconds time = multiplies ? std::max(times.compute, times.memory) : Seconds(plan.costs[i]);
      rows.emplace_back(report::Members{{"text", program::step_text(query.mesh, plan.tensors, step)},
                                        {"kind", program::name(step)},
                                        {"axes", program::axes_text(query.mesh, step.axes)},
                                        {"bytes", multiplies ? Bytes(0) : step.bytes},
                                        {"time", time}});
    }
  return rows;
}

void add_choice(const Query& query, const search::LayerChoice& choice, report::Members& out) {
  report::Members shardings;
  for (const program::Tensor& tensor : choice.tensors)
    shardings.emplace_back(tensor.name, program::tensor_text(query.mesh, tensor));
  if (choice.intermediate) shardings.emplace_back("Tmp", program::tensor_text(query.mesh, *choice.intermediate));
  shardings.emplace_back(choice.result.name, program::tensor_text(query.mesh, choice.result));
  out.emplace_back("shardings", std::move(shardings));
  out.emplace_back("steps", step_rows(query, choice));
  out.emplace_back("memory", memory_members(query, choice));
  out.emplace_back("compute_time", choice.times.compute);
  out.emplace_back("memory_time", choice.times.memory);
  out.emplace_back("weight_read_time", choice.weight_traffic / query.cluster.chip.hbm().bandwidth->value);
  out.emplace_back("collective_time", choice.times.communication);
  out.emplace_back(
      "time", report::range(choice.times.lower, search::expected_time(query.cluster.chip, choice), choice.times.upper));
  out.emplace_back("limiter", search::limiter_of(choice));
}

/// Arguments of a request for exactly this choice.
report::Members choice_arguments(const Request& request, const Query& query, const search::LayerChoice& choice) {
  Request fixed = request.without("fix");
  if (query.problem.result_free) fixed = fixed.with("result", program::tensor_text(query.mesh, choice.result));
  report::Members arguments = fixed.named_arguments();
  report::Items shardings;
  for (const program::Tensor& tensor : choice.tensors) shardings.emplace_back(program::tensor_text(query.mesh, tensor));
  arguments.emplace_back("fix", std::move(shardings));
  return arguments;
}

report::Items alternative_rows(const Request& request, const Query& query,
                               const std::vector<search::LayerChoice>& choices) {
  report::Items rows;
  for (std::size_t i = 1; i < choices.size(); ++i) {
    const search::LayerChoice& other = choices[i];
    rows.emplace_back(report::Members{{"shardings", shardings_text(query.mesh, other)},
                                      {"time", other.times.lower},
                                      {"collective_time", other.times.communication},
                                      {"memory", other.memory()},
                                      {"why", reason(choices.front(), other)},
                                      {"arguments", choice_arguments(request, query, other)}});
  }
  return rows;
}

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  ASSAY_TRY(placement, network::Placement::make(query.mesh, query.cluster, "--mesh"));
  ASSAY_TRY(peak, hardware::peak_rate(query.cluster.chip, query.dtype, "--dtype"));
  const search::ChooserHardware hardware{network::time_prices(placement, query.mesh, peak.value), peak.value,
                                         query.cluster.chip.hbm().bandwidth->value, query.memory};
  const search::LayerSearch search = search::choose_sharding(query.mesh, query.problem, hardware);
  const bool fits = !search.choices.empty();
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("mesh", program::mesh_text(query.mesh));
  out.emplace_back("fits", fits);
  if (!fits) {
    const search::LayerChoice& least = search.smallest;
    const Bytes shortfall = least.memory() - query.memory;
    out.emplace_back("shortfall", shortfall);
    out.emplace_back("memory_that_fits", least.memory());
    add_choice(query, least, out);
    response.headline = fmt::format("nothing fits {} per device: {} needs {}, {} more", human(query.memory),
                                    shardings_text(query.mesh, least), human(least.memory()), human(shortfall));
    response.notes.push_back(fmt::format("--memory {}B would fit; so would more devices or a narrower dtype",
                                         exact_number(least.memory().value())));
    response.outcome = report::Outcome::infeasible;
  } else {
    const search::LayerChoice& best = search.choices.front();
    add_choice(query, best, out);
    if (search.choices.size() > 1) out.emplace_back("alternatives", alternative_rows(request, query, search.choices));
    response.headline = fmt::format("{}: at least {}, {} per device", shardings_text(query.mesh, best),
                                    human(best.times.lower), human(best.memory()));
    for (const program::Tensor& tensor : best.tensors)
      if (program::is_padded(query.mesh, tensor))
        response.notes.push_back(
            fmt::format("{} does not divide evenly: its shards are padded", program::tensor_text(query.mesh, tensor)));
  }
  out.emplace_back("search", report::Members{{"considered", search.considered},
                                             {"over_memory", search.over_memory},
                                             {"equal_to_best", search.equal}});
  if (!placement.plain())
    response.notes.push_back("placed " + network::placement_text(placement, query.mesh, query.cluster));
  if (!request.has("memory"))
    response.notes.push_back(fmt::format("assumes that all of the chip's {} are free", human(query.memory)));
  response.table_key = "steps";
  return response;
}

}  // namespace

VerbSpec verb() {
  return {"layer",
          "the best sharding of a layer, or of one product, that fits into memory",
          "Finds the shardings of In[B, D], W_in[D, F] and W_out[F, D] that minimise the time of In * W_in * W_out -> "
          "Out, with Out sharded like In. With --one: A[I, J] * B[J, K] -> C[I, K]. All shardings over the mesh axes "
          "are tried; intermediate copies count as memory.",
          {},
          {on_option,
           {"sizes", "B=128,...", "sizes of B, D and F, or with --one of I, J and K"},
           {"memory", "CAP", "memory available per device (default: the chip's)"},
           {"mesh", "X=4,Y=4", "axes of the mesh (default: those of the slice)"},
           OptionSpec{"dtype", "DTYPE", "of all tensors"}.by_default("bf16"),
           {"fix", "TENSOR", "a sharding to keep fixed, e.g. \"In[B_X, D]\"", true},
           {"one", "", "one product A[I, J] * B[J, K] -> C[I, K]"},
           {"result", "TENSOR", "with --one: the sharding of C, or `any` (default: C[I, K] on every device)"},
           set_option},
          {{"assay layer --sizes B=128,D=8192,F=32768 --on tpu-v5e:2x2 --memory 300MB", "a layer under a memory limit"},
           {"assay layer --one --sizes I=8192,J=8192,K=8192 --on tpu-v4:4x4x4",
            "the fastest product whose result is on every device"}},
          &answer,
          false,
          false,
          &screens::layer};
}

}  // namespace assay::verbs::layer
