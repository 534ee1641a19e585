// The mesh behind a program's shardings, and how each parameter lies on it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/profile/hlo/module.h"
#include "assay/profile/hlo/sharding.h"

namespace assay::hlo {

/// An axis of the mesh: `size` devices, `stride` apart.
struct ProgramAxis {
  std::string name;  ///< of the program, else "A0" and so on, the outermost first
  std::int64_t size = 1, stride = 1;
};

/// The sharding that an instruction states as GSPMD or shardy writes it, if any.
Result<std::optional<Sharding>> stated_sharding(const Module& module, std::string_view gspmd, std::string_view shardy,
                                                const Instruction& at);
/// Places where the axes of a sharding begin and end, as steps of device numbers.
void add_cuts(const Sharding& sharding, std::set<std::int64_t>& cuts);
/// Axes of so many devices that are cut there, the outermost first.
std::vector<ProgramAxis> axes_between(const std::set<std::int64_t>& cuts, std::int64_t devices);

/// A parameter of the program as the whole mesh has it.
struct WholeParameter {
  std::string name;  ///< "state.params['decoder']['norm']"; empty where the program does not say
  const ElementType* element = nullptr;
  std::vector<std::int64_t> dims;              ///< of all devices together
  std::vector<std::int64_t> local;             ///< of one device
  std::vector<std::vector<std::size_t>> axes;  ///< of each dimension, by their place in the mesh
  bool guessed = false;  ///< from the collectives that gather it, where the program has no sharding for it

  double elements() const;
};

struct ProgramMesh {
  std::vector<ProgramAxis> axes;  ///< of more than one device, the outermost first
  std::vector<WholeParameter> parameters;
  bool partitioned = true;  ///< shapes are of one device
};

Result<ProgramMesh> program_mesh(const Module& module);

}  // namespace assay::hlo
