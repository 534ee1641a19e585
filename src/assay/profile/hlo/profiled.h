// What kernels of a profile compute, from the compiled programs that the profile holds.
#pragma once
#include <cstdint>

#include "assay/profile/hlo/calls.h"
#include "assay/profile/trace/trace.h"
#include "assay/profile/trace/vocabulary.h"

namespace assay::hlo {

/// Gives kernels the instructions of their programs as operations around them: shapes, FLOP, bytes and scopes. Where a
/// graph of launches replays a part of a program, its kernels are found in the order of that part. Returns how many
/// kernels have an instruction.
std::int64_t adopt_programs(trace::Trace& trace, const trace::Vocabulary& vocabulary, const Calls& calls);

/// The program that takes most of the time of a device, as HLO text; empty where the profile holds none.
std::string main_program(const trace::Trace& trace, std::int64_t device);

}  // namespace assay::hlo
