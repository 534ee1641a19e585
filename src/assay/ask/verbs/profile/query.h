// A request for a profile, read: the traces with what they say, and the chip they ran on.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/chip.h"
#include "assay/profile/trace/summary.h"

namespace assay::verbs::profile {

/// A file by its name and what it holds, so that front ends may send profiles they never wrote to a disk.
struct Source {
  std::string name, bytes;
};

/// A device of one of the traces.
struct Device {
  std::size_t trace = 0;
  trace::DeviceSummary summary;
};

struct Query {
  const trace::Vocabulary* vocabulary = nullptr;
  std::vector<trace::Trace> traces;
  std::vector<Device> devices;
  std::optional<Device> before;        ///< where two profiles are compared: of the first one
  std::size_t shown = 0;               ///< the device that the answer is about: the one that computes longest
  std::optional<hardware::Chip> chip;  ///< of all devices
  std::vector<std::string> notes;

  const Device& device() const { return devices[shown]; }
};

/// What a request is about: profiles, and captures of the graphs that they replay.
struct Sources {
  std::vector<Source> profiles, captures;
};

Result<Query> read_query(const Request& request, const Context& context, Sources sources);

/// The answer for profiles in memory; the verb reads them from files.
Result<report::Response> answer_of(const Request& request, const Context& context, Sources sources);

}  // namespace assay::verbs::profile
