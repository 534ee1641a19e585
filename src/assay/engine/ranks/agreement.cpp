// What ranks agree on: that they are alike, that none has failed, and when to stop.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "assay/base/progress.h"
#include "assay/engine/ranks/mpi.h"

namespace assay::engine {
namespace {

Message bytes_of_text(std::string_view text) {
  Message out(text.size());
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

/// The texts of all ranks, in order, in every process.
std::vector<std::string> gather_texts(Transport& transport, const std::string& mine) {
  std::vector<std::string> all(transport.count());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (rank != transport.rank()) transport.send(rank, control_tag, bytes_of_text(mine));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == transport.rank()) {
      all[rank] = mine;
      continue;
    }
    const Message message = transport.receive(rank, control_tag);
    all[rank].assign(reinterpret_cast<const char*>(message.data()), message.size());
  }
  return all;
}

}  // namespace

std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = mixed(0, text.size());
  for (std::size_t i = 0; i < text.size(); i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
    hash = mixed(hash, word);
  }
  return hash;
}

std::uint64_t own_fingerprint() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0;
  std::string block(1U << 20, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
    hash = mixed(hash, fingerprint(std::string_view(block).substr(0, static_cast<std::size_t>(file.gcount()))));
  return hash;
}

Result<void> check_alike(Transport& transport, const Fingerprints& mine) {
  std::string text;
  for (const auto& [name, hash] : mine) text += fmt::format("{:016x}", hash);
  const std::vector<std::string> all = gather_texts(transport, text);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (all[rank].substr(16 * i, 16) != all.front().substr(16 * i, 16))
        return fail("--engine mpi", fmt::format("rank {} has another {} than rank 0", rank, mine[i].first),
                    "start the same program with the same files on every node");
  return {};
}

Result<void> agree(Transport& transport, const Result<void>& mine) {
  const std::vector<std::string> all = gather_texts(
      transport, mine ? std::string() : mine.error().where + "\n" + mine.error().what + "\n" + mine.error().hint);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (rank == transport.rank()) return mine;
    const std::size_t first = all[rank].find('\n'), second = all[rank].find('\n', first + 1);
    return fail(all[rank].substr(0, first),
                fmt::format("rank {}: {}", rank, all[rank].substr(first + 1, second - first - 1)),
                all[rank].substr(second + 1));
  }
  return {};
}

bool is_any_stopped(Transport* transport) {
  const bool mine = progress.is_stopped();
  if (!transport) return mine;
  const auto all = gather_values(*transport, {mine ? 1.0 : 0.0});
  return std::any_of(all.begin(), all.end(), [](const std::vector<double>& one) { return one.front() > 0.0; });
}

LocalRank local_rank(Transport& transport) {
  constexpr std::size_t longest = 256;
  char name[longest] = {};
  ::gethostname(name, longest - 1);
  const std::vector<std::string> machines = gather_texts(transport, name);
  const std::vector<int> mine = own_cores();
  const auto cores = gather_values(transport, {mine.begin(), mine.end()});
  LocalRank here{0, 0, 0};
  std::set<double> shared;
  for (std::size_t rank = 0; rank < machines.size(); ++rank) {
    if (machines[rank] != name) continue;
    if (rank < transport.rank()) ++here.rank;
    ++here.count;
    shared.insert(cores[rank].begin(), cores[rank].end());
  }
  here.cores = std::max<std::size_t>(1, shared.size());
  return here;
}

}  // namespace assay::engine
