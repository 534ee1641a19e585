// Types and attributes of MLIR's textual form, as StableHLO uses them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/profile/hlo/shape.h"

namespace assay::hlo {

/// "tensor<4x4096xbf16>", "!stablehlo.token", "tuple<...>"
Result<Shape> parse_tensor_type(std::string_view text, const Cursor& in, std::size_t at);
/// The types behind a statement's last colon: "(A, B) -> C" gives C, "A, B" gives B.
Result<std::vector<Shape>> result_types(std::string_view text, const Cursor& in, std::size_t at);
/// Text at the top level, cut at commas.
std::vector<std::string_view> top_level_parts(std::string_view text);

/// Where the types of a statement begin: its last colon outside of brackets.
std::optional<std::size_t> type_colon(std::string_view text);
/// MLIR writes a quote inside of quotes as \22.
std::string unescaped(std::string_view text);

/// What HLO calls an operation: "dot" of stablehlo.dot_general, "all-gather" of stablehlo.all_gather.
std::string hlo_opcode(std::string_view operation);
/// The attributes of a statement as HLO writes them.
std::vector<std::pair<std::string_view, std::string>> hlo_attributes(std::string_view opcode, std::string_view text);

}  // namespace assay::hlo
