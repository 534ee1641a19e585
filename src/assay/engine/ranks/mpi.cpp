#include "assay/engine/ranks/mpi.h"

#include <dlfcn.h>
#include <sched.h>

#include "assay/engine/ranks/mpi_table.h"

namespace assay::engine {
namespace {

constexpr const char* library_name = "libassay-mpi.so";

class MpiRanks : public Ranks {
 public:
  MpiRanks(const AssayMpi& mpi, Seconds patience) : mpi_(mpi), patience_(patience) { mpi.connect(&rank_, &count_); }

  std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  std::size_t count() const override { return static_cast<std::size_t>(count_); }
  std::string library() const override { return mpi_.library(); }

  void send(std::size_t to, int tag, Message message) override {
    auto kept = std::make_unique<Message>(std::move(message));
    mpi_.send(static_cast<int>(to), tag, kept->data(), kept->size(), kept.get(),
              [](void* arrived) { delete static_cast<Message*>(arrived); });
    kept.release();
  }
  Message receive(std::size_t from, int tag) override {
    const long size = mpi_.next(static_cast<int>(from), tag, patience_.value());
    if (size < 0) throw RankFailure{rank(), from, patience_};
    Message message(static_cast<std::size_t>(size));
    mpi_.receive(message.data(), message.size());
    return message;
  }
  void finish() override { mpi_.disconnect(); }

 private:
  const AssayMpi& mpi_;
  Seconds patience_;
  int rank_ = 0, count_ = 1;
};

}  // namespace

Result<std::unique_ptr<Ranks>> connect_mpi(const std::string& programs, Seconds patience) {
  // Beside the program, or where packages put it. MPI's own plug-ins look for its symbols among the global ones.
  std::string why;
  void* library = nullptr;
  for (const std::string& directory : {programs + "/", programs + "/../lib/assay/"}) {
    library = dlopen((directory + library_name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library) break;
    if (const char* text = dlerror(); text && why.empty()) why = text;
  }
  if (!library)
    return fail("--engine mpi", "this engine is not there: " + why,
                "install OpenMPI (Debian: openmpi-bin libopenmpi-dev) and build again, or use --engine virtual",
                Error::Kind::missing);
  const auto* table = static_cast<const AssayMpi*>(dlsym(library, ASSAY_MPI_TABLE));
  if (!table || table->version != ASSAY_MPI_VERSION)
    return fail("--engine mpi", std::string(library_name) + " belongs to another version of assay", "build both again",
                Error::Kind::missing);
  return std::make_unique<MpiRanks>(*table, patience);
}

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace assay::engine
