// What Linux reports about this machine, through /proc and /sys.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "assay/base/units.h"
#include "assay/lab/measure/rows.h"

namespace assay::measure {

/// One cache: its level, its size, and how many of the machine's cores share it.
struct Cache {
  int level = 1;
  Bytes size;
  int cores = 1;
};

struct Machine {
  std::string processor;      ///< its name, or its maker's numbers
  int cores = 1;              ///< physical cores that this process may use
  int threads = 1;            ///< hardware threads that this process may use
  int vector_bits = 128;      ///< of the widest vector registers
  std::vector<Cache> caches;  ///< for data, from the smallest
  Bytes memory;               ///< all of it
};

/// `root` holds /proc and /sys; unreported values keep their defaults.
Machine read_machine(const std::string& root = "");

/// The machine as facts of a table, and back: a chip file is written from the table alone.
Facts facts_of(const Machine& machine);
Machine machine_of(const Facts& facts);

/// The value of a fact; empty if there is none.
std::string fact(const Facts& facts, std::string_view key);

}  // namespace assay::measure
