// libassay-cuda.so: runs the tasks of `assay run --engine cuda` on a GPU. The program loads it when it is asked for.
#include <exception>

#include "cuda/session.h"

namespace {

using assay::cuda::Session;

std::string message;  // result text of the last call

template <class F>
const char* guarded(F&& work) {
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

Session& of(void* session) { return *static_cast<Session*>(session); }

const char* unique_id(char* bytes) {
  return guarded([&] { assay::cuda::make_unique_id(bytes); });
}

const char* open(const AssayCudaJob* job, void** session) {
  return guarded([&] { *session = new Session(*job); });
}

const char* step(void* session, const int* tokens, const int* targets, AssayCudaStep* result, double* clocks) {
  return guarded([&] { *result = of(session).step(tokens, targets, clocks); });
}

const char* serve(void* session, const AssayCudaServing* step, double* seconds, double* clocks) {
  return guarded([&] { *seconds = of(session).serve(*step, clocks); });
}

const char* read(void* session, int array, float* values) {
  return guarded([&] { of(session).read(array, values); });
}

const char* write(void* session, int master, int weight, const float* values) {
  return guarded([&] { of(session).write(master, weight, values); });
}

const char* device(void* session) { return of(session).device.c_str(); }

const char* network(void* session) { return of(session).network().c_str(); }

void close(void* session) { delete static_cast<Session*>(session); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const AssayCuda assay_cuda_table;
const AssayCuda assay_cuda_table{ASSAY_CUDA_VERSION, &unique_id, &open, &step, &serve, &read, &write, &device,
                                 &network,           &close};
