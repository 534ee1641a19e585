#include "assay/lab/measure/rows.h"

#include <algorithm>
#include <cstdio>

namespace assay::measure {
namespace {

constexpr std::string_view fact_mark = "# fact ";

std::string microseconds(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", time.in(1_us));
  return text;
}

}  // namespace

std::string rows_text(const Measurement& measurement) {
  std::string text =
      "# Medians and minima in microseconds.\n"
      "# gemm: a=M b=N c=K, A[M,K] x B (GPU: B[N,K]^T, CPU: B[K,N]); bmm: d=batch; copy: a=bytes read=bytes written; "
      "read: a=bytes.\n"
      "# attn_*: a=batch b=heads c=kv heads d=sequence e=head dim, note=kernel; bwd without forward; attn_decode: one "
      "query, d=KV length.\n"
      "# all_gather, reduce_scatter, all_reduce, all_to_all: a=bytes of the whole array, b=ranks.\n";
  for (const auto& [key, value] : measurement.facts) text += std::string(fact_mark) + key + ": " + value + "\n";
  for (const std::string& note : measurement.notes) text += "# note " + note + "\n";
  text += "op,dtype,a,b,c,d,e,us_median,us_min,note\n";
  for (const MeasuredRow& row : measurement.rows) {
    text += row.op + "," + row.dtype;
    for (const std::int64_t size : {row.a, row.b, row.c, row.d, row.e})
      text += "," + (size ? std::to_string(size) : std::string());
    text += "," + microseconds(row.median) + "," + microseconds(row.least) + "," + row.note + "\n";
  }
  return text;
}

Facts facts_of(std::string_view table) {
  Facts facts;
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = std::min(table.find('\n', at), table.size());
    std::string_view line = table.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(fact_mark)) continue;
    line.remove_prefix(fact_mark.size());
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos)
      facts.emplace_back(std::string(line.substr(0, colon)), std::string(line.substr(colon + 2)));
  }
  return facts;
}

Seconds median_of(std::vector<Seconds>& times) {
  if (times.empty()) return Seconds(0);
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 ? times[middle] : 0.5 * (times[middle - 1] + times[middle]);
}

}  // namespace assay::measure
