#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include "assay/ask/report/render.h"
#include "assay/ask/verbs/option_values.h"

namespace assay::verbs::run {
namespace {

/// What all ranks must have in common.
engine::Fingerprints fingerprints(const Request& request, const Context& context) {
  std::string files;
  for (const auto& [path, text] : context.catalogue.files("")) files += fmt::format("{}\n{}\n", path, text);
  report::Response asked;
  asked.results = request.named_arguments();
  const std::string words = report::render(asked, {.format = report::Format::json});
  return {{"binary", engine::own_fingerprint()},
          {"catalogue", engine::fingerprint(files)},
          {"request", engine::fingerprint(words)}};
}

/// The answer of a rank that is not asked for one.
report::Response silence() {
  report::Response response;
  response.is_silent = true;
  return response;
}

Result<report::Response> run_connected(engine::Ranks& ranks, const Request& request, const Context& context,
                                       const std::function<Result<PreparedRun>()>& prepare) {
  const auto count = static_cast<std::int64_t>(ranks.count());
  const auto answer = [&](Result<report::Response> response) -> Result<report::Response> {
    ranks.finish();
    if (ranks.rank() == 0) return response;
    return silence();
  };
  // A fault ends this process before it has finished, and the launcher ends the others.
  try {
    if (const auto alike = engine::check_alike(ranks, fingerprints(request, context)); !alike)
      return answer(tl::unexpected(alike.error()));
    Result<PreparedRun> prepared = prepare();
    Result<void> state;
    if (!prepared)
      state = tl::unexpected(prepared.error());
    else if (const std::int64_t devices = prepared->devices.value_or(count); devices != count)
      state = fail(fmt::format("--engine {}", request.value("engine").value_or("mpi")),
                   fmt::format("the mesh has {} device{}, but there {} {} rank{}", devices, devices == 1 ? "" : "s",
                               count == 1 ? "is" : "are", count, count == 1 ? "" : "s"),
                   fmt::format("start it with mpirun -n {}", devices));
    if (const auto agreed = engine::agree(ranks, state); !agreed) return answer(tl::unexpected(agreed.error()));
    ASSAY_TRY(response, prepared->run(&ranks));
    return answer(std::move(response));
  } catch (const engine::RankFailure& failure) {
    return fail(
        "--engine mpi",
        fmt::format("rank {} waited {:.3g} s for rank {} in vain", failure.rank, failure.waited.value(), failure.from),
        "did that rank end? give it longer with --time-limit");
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("rank {}: {}", ranks.rank(), error.what()));
  }
}

}  // namespace

bool is_on_gpu(const Request& request) { return request.value("engine") == "cuda"; }

void add_gpu(const UsedGpu& gpu, report::Response& response) {
  response.results.emplace_back("device", gpu.device);
  response.results.emplace_back("memory", gpu.memory);
  if (gpu.network.empty()) return;
  response.results.emplace_back("network", gpu.network);
  response.important.push_back(fmt::format("{} carries what GPUs send each other", gpu.network));
}

Result<report::Response> run_on_engine(const Request& request, const Context& context,
                                       const std::function<Result<PreparedRun>()>& prepare) {
  if (request.value("engine") != "mpi") {
    ASSAY_TRY(prepared, prepare());
    if (!is_on_gpu(request) || prepared.devices.value_or(1) == 1) {
      ASSAY_TRY(response, prepared.run(nullptr));
      if (const int processes = context.surroundings.ranks.count; processes > 1) {
        response.notes.push_back(
            fmt::format("each of the {} processes of this launch ran all of it: --engine mpi shares it", processes));
        if (response.screen) response.screen->notes.push_back(response.notes.back());
      }
      return response;
    }
  }
  return run_on_ranks(request, context, prepare);
}

Result<report::Response> run_on_ranks(const Request& request, const Context& context,
                                      const std::function<Result<PreparedRun>()>& prepare) {
  std::optional<Seconds> patience;
  ASSAY_CHECK(read_time(request, "time-limit", patience));
  constexpr Seconds usual(60);
  ASSAY_TRY(ranks, engine::connect_mpi(context.surroundings.programs, patience.value_or(usual)));
  return run_connected(*ranks, request, context, prepare);
}

}  // namespace assay::verbs::run
