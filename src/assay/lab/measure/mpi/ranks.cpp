#include "assay/lab/measure/mpi/ranks.h"

#include <mpi.h>

#include <algorithm>

#include "assay/base/result.h"

namespace assay::measure {
namespace {

class Ranks {
 public:
  explicit Ranks(std::int64_t most_bytes)
      : sent_(static_cast<std::size_t>(most_bytes) / sizeof(float), 1.0F), received_(sent_.size(), 0.0F) {
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }
  int count() const { return count_; }

  /// One collective over an array of `bytes`: over all ranks for an exchange, on each rank for a reduction.
  void call(const std::string& kind, std::int64_t bytes) {
    const auto array = static_cast<int>(bytes / static_cast<std::int64_t>(sizeof(float)));
    const int part = array / count_;
    float *from = sent_.data(), *to = received_.data();
    if (kind == "all_gather")
      MPI_Allgather(from, part, MPI_FLOAT, to, part, MPI_FLOAT, MPI_COMM_WORLD);
    else if (kind == "reduce_scatter")
      MPI_Reduce_scatter_block(from, to, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (kind == "all_reduce")
      MPI_Allreduce(from, to, array, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (kind == "all_to_all")
      MPI_Alltoall(from, part / count_, MPI_FLOAT, to, part / count_, MPI_FLOAT, MPI_COMM_WORLD);
    else
      throw InternalError("unknown collective " + kind);
  }

  /// The time of the slowest rank.
  Seconds timed(const std::string& kind, std::int64_t bytes) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    call(kind, bytes);
    const double mine = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return Seconds(slowest);
  }

  /// A sum of ones over the ranks is their number.
  bool adds_up() {
    call("all_reduce", 4096);
    return received_.front() == static_cast<float>(count_);
  }

 private:
  int count_ = 1;
  std::vector<float> sent_, received_;
};

}  // namespace

Measurement measure_ranks(Extent extent) {
  Measurement out;
  const bool quick = extent == Extent::quick;
  const std::int64_t most = std::int64_t{quick ? 4 : 16} << 20;
  Ranks ranks(most);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string name = version;
  out.facts.emplace_back("MPI", name.substr(0, name.find_first_of(",\n")));
  if (!ranks.adds_up()) {
    out.notes.emplace_back("a sum over the ranks is wrong");
    return out;
  }
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"})
    for (const std::int64_t bytes : sizes(4096, most, 2)) {
      const int calls = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{32} << 20) / bytes, 5, 51));
      MeasuredRow row{kind, "fp32", bytes, ranks.count()};
      for (int batch = 0; batch < (quick ? 3 : 7); ++batch) {  // the fastest: ignores a rank that lost its core
        ranks.timed(kind, bytes);
        std::vector<Seconds> times;
        for (int i = 0; i < calls; ++i) times.push_back(ranks.timed(kind, bytes));
        const Seconds median = median_of(times);
        if (batch > 0 && median > row.median) continue;
        row.median = median;
        row.least = times.front();
      }
      out.rows.push_back(std::move(row));
    }
  return out;
}

}  // namespace assay::measure
