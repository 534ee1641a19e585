// gzip for what goes over a network: the page's files once, answers as they are made.
#pragma once
#include <string>
#include <string_view>

namespace assay::ui {

/// Bytes below this are sent as they are: packing them saves no packet.
inline constexpr std::size_t least_packed = 1400;

/// The bytes as gzip. `level`: 1 is the fastest, 9 the smallest.
std::string packed(std::string_view bytes, int level);

}  // namespace assay::ui
