// A compiled program: computations of instructions over arrays, as XLA's HLO has them. StableHLO is read into the same.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/profile/hlo/calls.h"
#include "assay/profile/hlo/groups.h"
#include "assay/profile/hlo/shape.h"

namespace assay::hlo {

inline constexpr std::uint32_t no_computation = 0xFFFFFFFF;

/// Texts of an instruction are views of the module's text.
struct Instruction {
  std::string_view name, opcode;
  Shape shape;
  std::vector<std::uint32_t> operands;        ///< instructions of the same computation
  std::vector<std::uint32_t> callees;         ///< computations that it calls, in the order of `callee_keys`
  std::vector<std::string_view> callee_keys;  ///< "body", "condition", "calls", "to_apply", "branch_computations"
  std::string_view argument;  ///< of a constant its value, of a parameter its number, as they are written
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  const LibraryCall* call = nullptr;  ///< what a call of a library does, where the catalogue knows it
  std::size_t offset = 0;             ///< in the text

  /// The target of a call, without quotes.
  std::string_view call_target() const;
  bool calls(CallKind kind) const { return call && call->does == kind; }
  /// Empty where it has none of this name.
  std::string_view attribute(std::string_view key) const;
  /// The computation of a key, or none.
  std::uint32_t callee(std::string_view key) const;
  /// Of the metadata: "jit(step)/jvp()/while/body/dot_general".
  std::string_view op_name() const;
};

struct Computation {
  std::string_view name;
  std::vector<Instruction> instructions;
  std::uint32_t root = 0;  ///< the last one where none is marked
  bool fused = false;      ///< the body of a fusion
};

/// A tuple of instructions of a computation, and a member of one; `number` is the member's, as text.
Instruction tuple_of(const Computation& in, std::vector<std::uint32_t> members, std::string_view name);
Instruction member_of(const Computation& in, std::uint32_t tuple, std::string_view number, std::string_view name);

/// An output that is written over a parameter.
struct Alias {
  std::int64_t output = 0;  ///< member of the result; -1: the whole
  std::int64_t parameter = 0;
};

struct Module {
  std::string file;
  std::shared_ptr<const std::string> text;  ///< what the views point into; shared with a partitioned form of the module
  /// And texts that readers made. Copies of the module share both.
  std::shared_ptr<std::deque<std::string>> made = std::make_shared<std::deque<std::string>>();
  std::string name;
  bool is_stablehlo = false;
  bool scheduled = false;
  std::int64_t partitions = 1, replicas = 1;
  std::vector<Alias> aliases;
  std::vector<Shape> parameters;                   ///< of the entry, by number
  std::optional<Shape> result;                     ///< of the entry
  std::vector<NamedAxis> mesh;                     ///< of shardy, where it is named
  std::vector<std::string_view> result_shardings;  ///< of StableHLO: attributes of the entry's results
  std::vector<Computation> computations;
  std::uint32_t entry = no_computation;
  bool cut = false;  ///< the text ends before the module does

  std::int64_t devices() const { return partitions * replicas; }
  /// A text that lives as long as the module.
  std::string_view keep(std::string text) { return made->emplace_back(std::move(text)); }
  const Computation* entry_computation() const { return entry == no_computation ? nullptr : &computations[entry]; }
  /// The place of an instruction, for errors: "FILE:LINE:COLUMN".
  std::string where(const Instruction& instruction) const;
};

/// Computations in the order of calls.
struct CallOrder {
  std::vector<std::uint32_t> computations;  ///< callees before callers
  const Instruction* circle = nullptr;      ///< calls the computation that it is in; then the order ends there
};
/// Those that these call, and themselves.
CallOrder callees_first(const Module& module, const std::vector<std::uint32_t>& callers);

/// Whether an opcode is of this operation, also as the start of an asynchronous pair.
bool is_async_start(const Instruction& instruction);
bool is_async_done(const Instruction& instruction);
/// "all-gather" of all-gather-start.
std::string_view base_opcode(const Instruction& instruction);

/// Numbers of a list attribute: {0,1} or [0, 1].
std::vector<std::int64_t> number_list(std::string_view text);
/// A number behind a key in text such as JSON or {key = 3 : i64}, with or without quotes.
std::optional<double> number_after(std::string_view text, std::string_view key);
/// The text in quotes behind a key.
std::optional<std::string_view> text_after(std::string_view text, std::string_view key);

/// Whether text looks like HLO, or like StableHLO.
bool is_hlo_text(std::string_view text);
bool is_stablehlo_text(std::string_view text);
/// HLO text, as XLA prints it before or after its passes.
Result<Module> read_hlo(std::string text, std::string_view file);
/// StableHLO (or MHLO) in MLIR's textual form.
Result<Module> read_stablehlo(std::string text, std::string_view file);
/// The module with what plain calls run in their place, as compilers have it before they fuse.
Module inlined(const Module& module);
/// Either, with the calls of libraries that these files know. They must outlive the module.
Result<Module> read_module(std::string text, std::string_view file, const Calls& calls);

}  // namespace assay::hlo
