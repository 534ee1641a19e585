// Rules between the fields of a chip file; the reader applies them once every field was read.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "assay/base/toml.h"
#include "assay/hardware/chip.h"

namespace assay::hardware {

/// Records a fault of a chip file: where, under which key, what is wrong, and how to fix it.
using ReportFault = std::function<void(const Toml& node, std::string_view key, std::string what, std::string hint)>;

/// Known words, fields that go together, plausible counts, the shape of the scale-up network.
void check_chip(const Chip& chip, const Toml& root, const ReportFault& report);

/// A fabric level carries at most what the chips below it can send.
void check_fabric(const Chip& chip, const Toml& root, const ReportFault& report);

}  // namespace assay::hardware
