// Types and attributes of MLIR's textual form, as StableHLO uses them.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/profile/hlo/groups.h"
#include "assay/profile/hlo/shape.h"

namespace assay::hlo {

/// "tensor<4x4096xbf16>", "!stablehlo.token", "tuple<...>"
Result<Shape> parse_tensor_type(std::string_view text, const Cursor& in, std::size_t at);
/// The types behind a statement's last colon: "(A, B) -> C" gives C, "A, B" gives B, or both of two results.
Result<std::vector<Shape>> result_types(std::string_view text, std::size_t count, const Cursor& in, std::size_t at);
/// Text at the top level, cut at commas.
std::vector<std::string_view> top_level_parts(std::string_view text);

/// The outermost brackets of a statement, from the opening sign to the closing one, and its last colon outside of them,
/// behind which the types stand.
struct Pieces {
  std::vector<std::pair<std::size_t, std::size_t>> brackets;
  std::optional<std::size_t> colon;
};
Pieces pieces_of(std::string_view text);
/// An operation: its text without what its regions hold.
struct Statement {
  std::vector<std::string_view> names;  ///< of the results
  std::size_t count = 1;                ///< results, where they have one name
  std::string_view operation, operands, attributes, types;
  std::vector<std::size_t> regions;  ///< where they begin
  std::size_t at = 0;
  std::string_view name() const { return names.empty() ? "" : names.front(); }
};
/// Finds operands, attributes, types and regions in the text of an operation, which begins at `text_at`. What it makes
/// of two texts is added to `made`.
void divide(Statement& out, std::deque<std::string>& made, std::string_view text, std::size_t text_at, bool generic);

/// The name behind @, or in the generic form that of sym_name.
std::string_view symbol(std::string_view line);
/// [{a = 1}, {}] behind a key.
std::vector<std::string_view> attribute_lists(std::string_view text, std::string_view key);
/// Puts blanks in the place of each loc(...), which leaves all other text where it is.
void blank_locations(std::string& text);
/// MLIR writes a quote inside of quotes as \22.
std::string unescaped(std::string_view text);

/// What HLO calls an operation: "dot" of stablehlo.dot_general, "all-gather" of stablehlo.all_gather.
std::string hlo_opcode(std::string_view operation);
/// The operation that the body of a reduction applies, where it is one alone; else empty.
std::string applied_operation(std::string_view text);
/// Groups along axes of a mesh, #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [...]>, in the notation of HLO;
/// empty where there are none. A mesh that is not among the named ones is `usual`.
using NamedMeshes = std::vector<std::pair<std::string_view, std::vector<NamedAxis>>>;
std::string mesh_groups(std::string_view text, const NamedMeshes& meshes, const std::vector<NamedAxis>& usual);
/// The attributes of a statement as HLO writes them.
std::vector<std::pair<std::string_view, std::string>> hlo_attributes(std::string_view opcode, std::string_view text);

}  // namespace assay::hlo
