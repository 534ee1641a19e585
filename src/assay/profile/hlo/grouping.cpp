#include "assay/profile/hlo/grouping.h"

#include <algorithm>

namespace assay::hlo {
namespace {

/// Whether instructions are made where they are read, at no cost: broadcasts, counts, and what is made of constants and
/// counts alone, element by element.
std::vector<bool> made_in_place(const Computation& computation) {
  constexpr int deepest = 16;
  std::vector<int> depths(computation.instructions.size(), 0);
  std::vector<bool> out(depths.size(), false);
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const Instruction& at = computation.instructions[i];
    const bool spreads = at.opcode == "broadcast";
    int depth = 1;
    for (const std::uint32_t operand : at.operands)
      if (!spreads || !computation.instructions[operand].shape.dims.empty())
        depth = depths[operand] > 0 ? std::max(depth, depths[operand] + 1) : deepest;
    const bool of_elements = spreads || is_element_wise(at.opcode);
    depths[i] = (of_elements && depth < deepest) || at.opcode == "constant" || at.opcode == "iota" ? depth : 0;
    out[i] = spreads || (depths[i] > 0 && at.opcode != "constant");
  }
  return out;
}

/// Changes of layout that a product reads as they are.
bool folds_into_products(const Instruction& instruction, const Computation& computation,
                         const std::vector<std::uint32_t>& users) {
  if (instruction.opcode != "transpose" && instruction.opcode != "copy") return false;
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](std::uint32_t user) {
    return computation.instructions[user].opcode == "dot";
  });
}

class Grouper {
 public:
  Grouper(const Computation& computation, const Users& users)
      : computation_(computation),
        users_(users),
        in_place_(made_in_place(computation)),
        kernel_(computation.instructions.size(), no_kernel) {}

  Grouping groups() {
    for (auto i = static_cast<std::uint32_t>(computation_.instructions.size()); i-- > 0;) kernel_[i] = kernel_of(i);
    return {std::move(kernel_), std::move(in_place_)};
  }

 private:
  std::uint32_t kernel_of(std::uint32_t i) const {
    const Instruction& at = computation_.instructions[i];
    if (is_free(at) || at.opcode == "reshape" || folds_into_products(at, computation_, users_[i])) return no_kernel;
    if (!is_fusible(at)) return i;
    const std::uint32_t reader = only_reader(i);
    if (in_place_[i]) return i == computation_.root || has_other_reader(i) ? i : first_reader(i);
    const bool ends = at.opcode == "reduce" || at.opcode == "dynamic-update-slice";
    return ends || reader == no_kernel ? i : reader;
  }

  /// The kernel that all readers are in, behind views; none where they differ or one of them does not fuse.
  std::uint32_t only_reader(std::uint32_t i) const {
    std::uint32_t out = no_kernel;
    std::vector<std::uint32_t> open{i};
    for (std::size_t steps = 0; !open.empty(); ++steps) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (at == computation_.root || steps > most_readers) return no_kernel;
      for (const std::uint32_t user : users_[at]) {
        const Instruction& by = computation_.instructions[user];
        if (kernel_[user] == no_kernel && (by.opcode == "reshape" || by.opcode == "bitcast" || in_place_[user])) {
          open.push_back(user);
          continue;
        }
        if (!is_fusible(by) || (out != no_kernel && kernel_[user] != out)) return no_kernel;
        out = kernel_[user];
        if (out == no_kernel) return no_kernel;
      }
    }
    return out;
  }

  /// Arithmetic of what is made in place counts once.
  std::uint32_t first_reader(std::uint32_t i) const {
    if (!is_element_wise(computation_.instructions[i].opcode)) return no_kernel;
    std::vector<std::uint32_t> open{i};
    for (std::size_t next = 0; next < open.size() && next < most_readers; ++next)
      for (const std::uint32_t user : users_[open[next]]) {
        if (kernel_[user] != no_kernel) return kernel_[user];
        open.push_back(user);
      }
    return i;
  }

  bool has_other_reader(std::uint32_t i) const {
    return std::any_of(users_[i].begin(), users_[i].end(), [&](std::uint32_t user) {
      const Instruction& by = computation_.instructions[user];
      return !is_fusible(by) || user == computation_.root;
    });
  }

  static constexpr std::size_t most_readers = 64;
  const Computation& computation_;
  const Users& users_;
  std::vector<bool> in_place_;
  std::vector<std::uint32_t> kernel_;
};

}  // namespace

bool is_fused(const Module& module) {
  return std::any_of(module.computations.begin(), module.computations.end(),
                     [](const Computation& computation) { return computation.fused; });
}

Grouping grouping(const Computation& computation, const Users& users, bool fused) {
  if (!fused) return Grouper(computation, users).groups();
  Grouping out;
  out.kernel.resize(computation.instructions.size(), no_kernel);
  for (std::uint32_t i = 0; i < computation.instructions.size(); ++i)
    if (!is_free(computation.instructions[i])) out.kernel[i] = i;
  return out;
}

std::uint32_t source_of(const Computation& computation, const Grouping& groups, std::uint32_t value) {
  for (std::size_t steps = 0; steps < computation.instructions.size(); ++steps) {
    const Instruction& at = computation.instructions[value];
    const bool passes = at.opcode == "reshape" || at.opcode == "bitcast" || at.opcode == "transpose" ||
                        at.opcode == "copy" || at.opcode == "broadcast" || at.opcode == "custom-call";
    if (groups.kernel[value] != no_kernel || !passes || at.operands.empty()) return value;
    value = at.operands.front();
  }
  return value;
}

}  // namespace assay::hlo
