// Counts are signed in Assay, container indices are not: the one conversion between them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace assay {

constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace assay
