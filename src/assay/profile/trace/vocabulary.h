// What names in profiles mean: files of catalogue/kernels and catalogue/profilers. No name of a library, a framework or
// a device stands in the code.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/program/form/mesh.h"

namespace assay::trace {

/// What a category of work occupies: exposed communication is communication while nothing computes, exposed copies are
/// copies while nothing computes or communicates.
enum class WorkClass { computation, communication, copy };

/// Names that contain one of `any` and none of `without`, whatever their case.
struct NameRule {
  std::vector<std::string> any, without;
  std::string kind;  ///< within the category, e.g. all-reduce; may be empty

  bool holds(std::string_view lower_case_name) const;
};

/// One file of catalogue/kernels.
struct Category {
  std::string id, name;
  WorkClass work_class = WorkClass::computation;
  std::int64_t order = 0;            ///< categories are tried in this order
  bool fills = false;                ///< memory is set, nothing is computed
  bool optimizer = false;            ///< also what computes inside of a mark of the optimizer
  std::vector<std::string> without;  ///< parts of names that no rule of it holds for
  std::vector<NameRule> rules;
};

/// How FLOP and bytes follow from the shapes of an operation.
enum class Form { product, attention, attention_gradient, convolution, convolution_gradient, element_wise };

/// An operation of a framework. Places count its inputs from 0; -1: it has no such input.
struct OperationForm {
  std::vector<std::string> names;
  Form form = Form::element_wise;
  std::int64_t a = 0, b = 1, bias = -1;  ///< of a product; b of [N, K] where it is transposed
  bool transposed = false;
  std::int64_t query = 0, key = 1, value = 2;  ///< of attention
  std::int64_t causal = -1;                    ///< the input that says whether attention is causal
  bool sequence_first = false;  ///< [batch, sequence, heads, dim] instead of [batch, heads, sequence, dim]
  bool windows = false;         ///< of attention: it can be limited to the tokens nearby
  std::string kernel;           ///< of attention: as --attention-kernel names it; may be empty
  std::int64_t stride = -1, padding = -1, dilation = -1,
               turned = -1;  ///< of a convolution: lists, and whether transposed
};

/// What a named range of the host says, or the name of an operation.
enum class MarkRole { step, optimizer, recompute, backward, compiled };
struct Mark {
  MarkRole role = MarkRole::step;
  std::vector<std::string> all;  ///< the name contains each of them
};

/// What a named line of a device holds.
enum class LineRole { work, nested_work, steps };
struct DeviceLine {
  LineRole role = LineRole::work;
  std::vector<std::string> names, prefixes;
};

/// What steps of a predicted program run as: parts of names of operations, in lower case.
struct StepSigns {
  std::vector<std::string> steps;  ///< names of operations of a program
  std::vector<std::string> signs;  ///< each says on its own that it is such a step
  std::vector<std::string> also;   ///< says so only beside it, with tensors of its sizes
  std::vector<std::string> without;
  bool exact = false;  ///< only with tensors of its sizes, and in its place in the program
};

/// How the host of a framework starts kernels while its profiler is on.
struct HostHabits {
  std::int64_t ahead = 0;  ///< kernels that wait for the device before the host has to; 0: any number
  Seconds pause;           ///< what lasts longer between two launches is no launch: waiting, or preparing a kernel
  Seconds latency;         ///< from a launch to the start of its kernel on an idle device
  Seconds between;         ///< between two kernels that are both launched in time
};

/// How the clock of a chip falls under power when work begins after a pause.
struct ClockHabits {
  Seconds settles;  ///< until most of the fall has happened
  /// The part of the fall in the mean over a stretch of work.
  double settled(Seconds busy) const {
    if (!(settles > Seconds(0)) || !(busy > Seconds(0))) return 1.0;
    const double over = busy / settles;
    return 1.0 - (1.0 - std::exp(-over)) / over;
  }
};

/// Kernels that update as many weights each, whatever tensors these are of.
struct UpdateKernels {
  std::string name;          ///< part of it
  std::int64_t weights = 0;  ///< of one kernel; 0: not known
};

/// How frameworks describe groups of ranks along one axis of a mesh, in lower case.
struct GroupNames {
  program::Role role = program::Role::data;
  std::vector<std::string> names;
};

/// A change to a program that may save time, and how people make it.
struct RemedyText {
  std::string id, change;
  std::string lines;                 ///< of code, or options of its software; may be empty
  std::string compiled;              ///< the same where a compiler makes whole programs; empty: not offered there
  std::vector<std::string> set;      ///< options of a request that mean the change: "fusion=compiled"; may be empty
  std::vector<std::string> leaves;   ///< classes of steps that it is not asked for
  std::vector<std::string> kernels;  ///< parts of names of kernels that are not needed with it
  std::vector<std::string> without;  ///< parts of names of kernels that have the change already
};

struct Vocabulary {
  std::vector<Category> categories;  ///< in their order; the last one holds for every name
  std::vector<OperationForm> operations;
  std::vector<Mark> marks;
  std::vector<DeviceLine> lines;
  std::vector<StepSigns> steps;
  std::vector<RemedyText> remedies;
  std::vector<GroupNames> groups;
  HostHabits host;
  ClockHabits clock;
  UpdateKernels update;
  std::vector<std::pair<std::string, std::string>> devices;  ///< name in a profile, id of the chip
  std::vector<std::pair<std::string, Dtype>> types;          ///< name in a profile, number format

  /// Indices of the category and, where the rule has one, its rule; categories.size() - 1 where none holds.
  struct Found {
    std::size_t category = 0;
    std::string_view kind;
  };
  Found category(std::string_view name) const;
  const OperationForm* operation(std::string_view name) const;
  std::optional<MarkRole> role(std::string_view mark) const;
  std::optional<LineRole> line_role(std::string_view line) const;
  std::optional<std::string_view> chip(std::string_view device) const;
  std::optional<Dtype> dtype(std::string_view type) const;
  std::size_t optimizer_category() const;
  const StepSigns* step_signs(std::string_view step) const;
  const RemedyText* remedy(std::string_view id) const;
};

/// Of the catalogue, read once.
Result<const Vocabulary*> vocabulary_of(const hardware::Catalogue& catalogue);

}  // namespace assay::trace
