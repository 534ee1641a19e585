#include "assay/engine/serving/replicas.h"

#include <algorithm>

namespace assay::engine {
namespace {

/// What is told of a report, in the order of the numbers.
std::vector<double> as_numbers(const ServerReport& report) {
  std::vector<double> out{static_cast<double>(report.iterations),
                          static_cast<double>(report.prefills),
                          static_cast<double>(report.decodes),
                          report.mean_batch,
                          static_cast<double>(report.drafted),
                          static_cast<double>(report.accepted),
                          report.prefill_time.value(),
                          report.decode_time.value(),
                          report.moved.value(),
                          report.stated.value(),
                          report.is_interrupted ? 1.0 : 0.0};
  for (const ServedRequest& request : report.requests) {
    out.push_back(static_cast<double>(request.started));
    out.push_back(static_cast<double>(request.finished));
    out.push_back(static_cast<double>(request.tokens.size()));
    out.insert(out.end(), request.tokens.begin(), request.tokens.end());
  }
  return out;
}

/// Reads them again, one after the other.
class NumberReader {
 public:
  explicit NumberReader(const std::vector<double>& numbers) : next_(numbers.begin()), end_(numbers.end()) {}
  bool is_done() const { return next_ == end_; }
  double number() { return *next_++; }
  std::int64_t count() { return static_cast<std::int64_t>(number()); }

 private:
  std::vector<double>::const_iterator next_, end_;
};

}  // namespace

lower::Parallelism replica_of(lower::Parallelism parallelism) {
  parallelism.data = 1;
  return parallelism;
}

std::vector<Prompt> own_prompts(const std::vector<Prompt>& all, const Replica& replica) {
  std::vector<Prompt> out;
  for (std::size_t i = replica.number; i < all.size(); i += replica.count) out.push_back(all[i]);
  return out;
}

ServerReport joined_reports(Transport& all, std::size_t devices, const ServerReport& mine, std::size_t requests) {
  ServerReport out = mine;
  out.requests.assign(requests, {});
  out.iterations = out.prefills = out.decodes = out.drafted = out.accepted = 0;
  out.mean_batch = 0;
  out.moved = out.stated = {};
  const std::vector<std::vector<double>> told = gather_values(all, as_numbers(mine));
  const std::size_t replicas = told.size() / devices;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    NumberReader from(told[replica * devices]);
    out.iterations = std::max(out.iterations, from.count());
    out.prefills += from.count();
    const std::int64_t decodes = from.count();
    out.decodes += decodes;
    out.mean_batch += from.number() * static_cast<double>(decodes);
    out.drafted += from.count();
    out.accepted += from.count();
    out.prefill_time = std::max(out.prefill_time, Seconds(from.number()));
    out.decode_time = std::max(out.decode_time, Seconds(from.number()));
    out.moved += Bytes(from.number()) / static_cast<double>(replicas);
    out.stated += Bytes(from.number()) / static_cast<double>(replicas);
    out.is_interrupted = from.number() > 0 || out.is_interrupted;
    for (std::size_t i = replica; !from.is_done(); i += replicas) {
      ServedRequest& request = out.requests.at(i);
      request.started = from.count();
      request.finished = from.count();
      request.tokens.resize(static_cast<std::size_t>(from.count()));
      for (int& token : request.tokens) token = static_cast<int>(from.count());
    }
  }
  if (out.decodes > 0) out.mean_batch /= static_cast<double>(out.decodes);
  return out;
}

}  // namespace assay::engine
