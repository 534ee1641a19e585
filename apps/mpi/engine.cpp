// libassay-mpi.so: carries the messages of `assay run --engine mpi`. The program loads it when it is asked for.
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>

#include "assay/engine/ranks/mpi_table.h"

namespace {

struct Sent {
  void* owner = nullptr;
  void (*release)(void*) = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
};

std::mutex guard;  // MPI is called by one thread at a time
std::list<Sent> sent;
thread_local MPI_Message arrived = MPI_MESSAGE_NULL;
char library_text[MPI_MAX_LIBRARY_VERSION_STRING] = "";

/// Lets MPI work on what is under way, and forgets what has arrived.
void progress() {
  for (auto message = sent.begin(); message != sent.end();) {
    int done = 0;
    MPI_Test(&message->request, &done, MPI_STATUS_IGNORE);
    if (done) message->release(message->owner);
    message = done ? sent.erase(message) : std::next(message);
  }
}

void connect(int* rank, int* count) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, count);
}

const char* library() {
  int length = 0;
  MPI_Get_library_version(library_text, &length);
  return library_text;
}

void send(int to, int tag, const void* bytes, size_t size, void* owner, void (*release)(void*)) {
  const std::lock_guard lock(guard);
  Sent& message = sent.emplace_back(Sent{owner, release});
  MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, to, tag, MPI_COMM_WORLD, &message.request);
  progress();
}

long next(int from, int tag, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int tries = 0;; ++tries) {
    {
      const std::lock_guard lock(guard);
      int found = 0;
      MPI_Status status;
      MPI_Improbe(from, tag, MPI_COMM_WORLD, &found, &arrived, &status);
      if (found) {
        int size = 0;
        MPI_Get_count(&status, MPI_BYTE, &size);
        return size;
      }
      progress();
    }
    ::sched_yield();  // to other ranks, or to steps that overlap this movement
    if (tries % 16 < 15) continue;
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (waited.count() > seconds) return -1;
    // A rank that has waited long leaves the cores to others, but not for longer than a message is worth.
    constexpr std::chrono::microseconds patient(2000), nap(100);
    if (waited > patient) std::this_thread::sleep_for(nap);
  }
}

void receive(void* bytes, size_t size) {
  const std::lock_guard lock(guard);
  MPI_Mrecv(bytes, static_cast<int>(size), MPI_BYTE, &arrived, MPI_STATUS_IGNORE);
}

void disconnect() {
  for (Sent& message : sent) {
    MPI_Wait(&message.request, MPI_STATUS_IGNORE);
    message.release(message.owner);
  }
  sent.clear();
  MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const AssayMpi assay_mpi_table;
const AssayMpi assay_mpi_table{ASSAY_MPI_VERSION, &connect, &library, &send, &next, &receive, &disconnect};
