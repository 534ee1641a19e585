// Ranks of MPI as a transport. The library that speaks MPI is loaded when a run asks for it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/engine/transport.h"

namespace assay::engine {

/// The processes of a run, connected.
class Ranks : public Transport {
 public:
  /// Everything sent has arrived, and the run ends without a fault. A process that ends before it did so takes the
  /// others with it.
  virtual void finish() = 0;
  virtual std::string library() const = 0;
};

/// Joins the ranks of the launcher that started this process, or runs as the only one. `programs` is the directory of
/// this program; a message that does not come within `patience` ends the run with RankFailure.
Result<std::unique_ptr<Ranks>> connect_mpi(const std::string& programs, Seconds patience);

/// Another rank did not answer.
struct RankFailure {
  std::size_t rank = 0;  ///< the one that waited
  std::size_t from = 0;
  Seconds waited;
};

/// What all ranks must have in common, by name: "binary", "catalogue", "request".
using Fingerprints = std::vector<std::pair<std::string, std::uint64_t>>;
/// An error that names the first rank that differs from rank 0, and in what.
Result<void> check_alike(Transport& transport, const Fingerprints& mine);
/// Of the bytes of a text, and of the program that runs.
std::uint64_t fingerprint(std::string_view text);
std::uint64_t own_fingerprint();

/// Whether somebody asked to stop: any of the ranks, so that all of them stop at the same point. To be called by all.
bool is_any_stopped(Transport* transport);

/// The place of this process among those of its machine, and the cores that they share.
struct LocalRank {
  std::size_t rank = 0, count = 1, cores = 1;
};
/// Numbers of the cores that this process may run on: a launcher may bind each rank to one.
std::vector<int> own_cores();
LocalRank local_rank(Transport& transport);

/// An error of any rank, told to all of them: the first one's, with its rank. To be called by all.
Result<void> agree(Transport& transport, const Result<void>& mine);

}  // namespace assay::engine
