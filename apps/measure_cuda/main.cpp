// assay-measure-cuda: measures a GPU and prints the rows as CSV, for `assay measure --rows FILE`.
// It needs the CUDA toolkit and the standard library alone, so that it also builds where Assay's other libraries are
// missing; docs/measure.md has the command.
#include <cstdio>
#include <cstring>

#include "assay/lab/measure/gpu.h"

int main(int argc, char** argv) {
  assay::measure::GpuRequest request;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      request.extent = assay::measure::Extent::quick;
    } else {
      std::fprintf(stderr, "usage: assay-measure-cuda [--quick] > rows.csv\n");
      return 2;
    }
  }
  const assay::measure::Measurement measured = assay::measure::measure_gpu(request);
  std::fputs(assay::measure::rows_text(measured).c_str(), stdout);
  for (const std::string& note : measured.notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fprintf(stderr, "%zu rows\n", measured.rows.size());
  return measured.rows.empty() ? 1 : 0;
}
