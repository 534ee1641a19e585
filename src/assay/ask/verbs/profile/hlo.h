// Compiled programs as profiles: HLO and StableHLO text, and layouts of single arrays.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/screen.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/profile/compare/recognition.h"
#include "assay/profile/hlo/liveness.h"
#include "assay/profile/hlo/price.h"

namespace assay::verbs::profile {

/// A program with everything that was found out about it.
struct ProgramQuery {
  hlo::Module module;                               ///< without plain calls, where the compiler has not yet fused it
  std::int64_t computations = 0, instructions = 0;  ///< of its text
  hlo::ProgramKernels kernels;
  hlo::ProgramMemory memory;
  hlo::ProgramMesh mesh;
  compare::RecognisedModel model;
  std::optional<hardware::Cluster> cluster;  ///< of --on
  std::optional<hlo::ProgramPrice> price;
  double share = 1.0;  ///< of the counts that one device has
  std::vector<std::string> notes;

  bool is_model() const;
};

/// What an argument is without a file: text of a program or a shape in quotes.
bool is_program_text(std::string_view argument);

/// What differs between two programs: the first is BEFORE.
void add_changes(const ProgramQuery& before, const ProgramQuery& after, report::Members& out);
/// The answer where the sources are programs; nothing where they are profiles.
Result<std::optional<report::Response>> program_answer(const Request& request, const Context& context,
                                                       const Sources& sources);
/// The answer about the layout of one array.
Result<report::Response> layout_answer(const Request& request, std::string_view text);

/// A program with its kernels, its mesh and the model behind it.
Result<ProgramQuery> recognised_program(std::string text, const std::string& name, const hlo::Calls& calls);
/// The request behind a program of a profile; nothing where it trains no known kind of model.
std::optional<Recovered> recovered_of_program(const std::string& text, const std::string& chip, const Context& context);

/// Prices a program on the cluster of --on, if it is given.
Result<void> price_program(const Request& request, const Context& context, ProgramQuery& query);

void add_program(const ProgramQuery& query, report::Members& out);
/// The model, its distribution and the command that predicts it.
void add_recognised(const ProgramQuery& query, const Context& context, report::Members& out);
draw::Scene program_picture(const ProgramQuery& query);
/// The graph of kernels of a computation: of the one named, else of the entry.
Result<draw::Scene> program_graph(const ProgramQuery& query, std::string_view computation);
std::optional<report::Screen> program_screen(const report::Response& answer);

/// Sums over kernels of one kind.
struct KernelSum {
  double calls = 0.0;
  Flops flops;
  Bytes bytes, operand, received;
  Seconds time;

  /// What a device receives is that of a collective of this kind.
  void add(const ProgramQuery& query, std::size_t kernel, std::optional<program::Collective> kind = {});
};
std::map<hlo::KernelClass, KernelSum> class_sums(const ProgramQuery& query);
/// All kernels, those first that take longest or, without a price, that do most.
std::vector<std::size_t> costliest_kernels(const ProgramQuery& query);

/// What people call a kernel: the operation of the framework, else the instruction.
std::string kernel_label(const ProgramQuery& query, const hlo::ProgramKernel& kernel);

}  // namespace assay::verbs::profile
