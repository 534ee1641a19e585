#include "assay/profile/hlo/execute/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "assay/profile/hlo/execute/evaluate.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

using program::AxisSet;
using Split = program::Sharding;
using Held = std::shared_ptr<const Array>;

/// What all devices have of a value in one sharding.
struct HeldForm {
  std::vector<Held> parts;
  bool combined = false;  ///< of partial maxima and their like: each device has the whole one already
};

struct FormKey {
  int value;
  Split sharding;
  bool operator<(const FormKey& other) const {
    if (value != other.value) return value < other.value;
    if (sharding.unreduced != other.sharding.unreduced) return sharding.unreduced < other.sharding.unreduced;
    for (std::size_t d = 0; d < program::max_tensor_rank; ++d)
      if (sharding.dims[d] != other.sharding.dims[d]) return sharding.dims[d].bits() < other.sharding.dims[d].bits();
    return false;
  }
};

class Execution {
 public:
  Execution(const Module& module, const PartitionPricing& pricing, const std::vector<Array>& inputs)
      : module_(module),
        pricing_(pricing),
        graph_(pricing.graph()),
        mesh_(pricing.mesh()),
        inputs_(inputs),
        devices_(static_cast<std::size_t>(mesh_.mesh.devices())) {}

  Result<std::vector<ExecutedResult>> run(const PartitionedProgram& plan) {
    ASSAY_CHECK(follow(plan.steps));
    std::vector<ExecutedResult> out;
    for (std::size_t i = 0; i < plan.results.size(); ++i) {
      const int value = graph_.regions.front().results[i];
      ASSAY_TRY(form, form_of(value, plan.results[i].sharding));
      out.push_back({plan.results[i].name, {}});
      for (std::size_t device = 0; device < devices_; ++device) {
        Array whole = *gathered(value, plan.results[i].sharding, *form, device, 0);
        if (device == 0 || whole.values != out.back().copies.front().values)
          out.back().copies.push_back(std::move(whole));
      }
    }
    return out;
  }

 private:
  std::int64_t coordinate(std::size_t device, int axis) const {
    return static_cast<std::int64_t>(device) / mesh_.strides[at(axis)] % mesh_.mesh.axes[at(axis)].size;
  }
  /// What a device has of a dimension that axes split.
  std::pair<std::int64_t, std::int64_t> range(std::int64_t size, program::AxisList axes, std::size_t device) const {
    std::int64_t number = 0, count = 1;
    for (const int axis : axes.axes()) {
      number = number * mesh_.mesh.axes[at(axis)].size + coordinate(device, axis);
      count *= mesh_.mesh.axes[at(axis)].size;
    }
    const std::int64_t part = (size + count - 1) / count;
    return {std::min(size, number * part), std::min(size, (number + 1) * part)};
  }
  Block block(const Dims& dims, const Split& sharding, std::size_t device) const {
    Block out;
    for (std::size_t d = 0; d < dims.size(); ++d)
      out.push_back(d < program::max_tensor_rank ? range(dims[d], sharding.dims[d], device) : std::pair(0L, dims[d]));
    return out;
  }

  Result<const HeldForm*> form_of(int value, const Split& sharding) const {
    const auto known = forms_.find({value, sharding});
    if (known == forms_.end())
      throw InternalError(fmt::format("{}: a plan uses a value that it does not have",
                                      graph_.operations[at(graph_.values[at(value)].operation)].at->name));
    return &known->second;
  }
  void keep(int value, const Split& sharding, HeldForm form) { forms_[{value, sharding}] = std::move(form); }

  /// A whole value, from the parts that devices have of it; sums over `ended` axes come to their end.
  Held gathered(int value, const Split& sharding, const HeldForm& form, std::size_t device, AxisSet ended) const {
    const bool sums = ended != 0 && !form.combined;
    const AxisSet over = sharding.split_axes() | (sums ? ended : 0);
    if (over == 0) return form.parts[device];
    const Shape& shape = graph_.shape(value);
    Array out = Array::of(shape);
    for (std::size_t source = 0; source < devices_; ++source) {
      bool takes = true;
      for (int axis = 0; takes && axis < static_cast<int>(mesh_.mesh.axes.size()); ++axis)
        takes = (over & program::axis_bit(axis)) != 0 || coordinate(source, axis) == coordinate(device, axis);
      if (takes) paste(out, *form.parts[source], block(shape.dims, sharding, source), sums);
    }
    if (sums && shape.element && !shape.element->is_float)
      for (double& number : out.values) number = held(*shape.element, number);
    return std::make_shared<const Array>(std::move(out));
  }

  Result<void> follow(const std::vector<PartitionStep>& steps) {
    for (const PartitionStep& step : steps) {
      using Kind = PartitionStep::Kind;
      switch (step.kind) {
        case Kind::parameter:
          give(step);
          break;
        case Kind::move:
          ASSAY_CHECK(move(step));
          break;
        case Kind::rename: {
          ASSAY_TRY(form, form_of(step.source, step.from));
          keep(step.value, step.to, *form);
          break;
        }
        case Kind::compute:
          ASSAY_CHECK(compute(step));
          break;
        case Kind::loop:
          ASSAY_CHECK(loop(step));
          break;
        case Kind::branch:
          ASSAY_CHECK(branch(step));
          break;
      }
    }
    return {};
  }

  void give(const PartitionStep& step) {
    const Array& whole = inputs_[at(step.operation)];
    HeldForm form;
    for (std::size_t device = 0; device < devices_; ++device)
      form.parts.push_back(std::make_shared<const Array>(cut(whole, block(whole.shape, step.to, device))));
    keep(step.value, step.to, std::move(form));
  }

  Result<void> move(const PartitionStep& step) {
    ASSAY_TRY(from, form_of(step.value, step.from));
    const Dims& dims = graph_.shape(step.value).dims;
    HeldForm form;
    for (std::size_t device = 0; device < devices_; ++device) {
      const Held whole = gathered(step.value, step.from, *from, device, step.from.unreduced & ~step.to.unreduced);
      form.parts.push_back(std::make_shared<const Array>(cut(*whole, block(dims, step.to, device))));
    }
    form.combined = from->combined;
    keep(step.value, step.to, std::move(form));
    return {};
  }

  // --- operations
  /// How a device sees one operand: the whole array with only its own elements in it.
  struct Operand {
    const HeldForm* form;
    Split split;
    std::vector<int> row;  ///< of each dimension; -1: of none
  };

  /// Along a summed dimension these compute what a part has; others need the whole size, and zeros for what is
  /// elsewhere.
  static bool sums_parts(std::string_view opcode) {
    return opcode == "reduce" || opcode == "dot" || opcode == "ragged-dot" || opcode == "scatter";
  }
  /// What sums begin with enters on one of the devices that each sum a part.
  static bool is_start(const Instruction& instruction, std::size_t k, std::size_t operands) {
    return (instruction.opcode == "scatter" && k == 0) || (instruction.opcode == "reduce" && k >= operands / 2);
  }

  Held seen(const PartitionStep& step, const PartitionRows& rows, const Operand& operand, std::size_t k,
            std::size_t device) const {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    const int value = of.in[k];
    const Held& own = operand.form->parts[device];
    AxisSet summed = 0;
    for (std::size_t r = 0; r < rows.rows.size(); ++r)
      if (rows.rows[r].kind == PartitionRow::Kind::summed) summed |= step.division.rows[r].set();
    bool first = true;
    for (int axis = 0; axis < static_cast<int>(mesh_.mesh.axes.size()); ++axis)
      if (summed & program::axis_bit(axis)) first = first && coordinate(device, axis) == 0;
    const bool empty = !first && rows.adds && is_start(*of.at, k, of.in.size());
    if (operand.split.split_axes() == 0 && !empty) return own;
    const Dims& dims = graph_.shape(value).dims;
    const Block mine = block(dims, operand.split, device);
    Block there = mine, size;  // whose elements the device has, and what the operation sees of the array
    std::vector<bool> zeros(dims.size(), false);
    bool halo = false;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const int r = operand.row[d];
      size.emplace_back(0, dims[d]);
      if (r < 0 || step.division.rows[at(r)].empty()) continue;
      const PartitionRow& row = rows.rows[at(r)];
      if (row.halo > 1 && k == 0) {
        there[d] = {std::max<std::int64_t>(0, mine[d].first - row.halo + 1),
                    std::min(dims[d], mine[d].second + row.halo - 1)};
        halo = true;
      }
      if (row.kind == PartitionRow::Kind::summed && sums_parts(of.at->opcode))
        size[d] = mine[d];
      else
        zeros[d] = row.kind != PartitionRow::Kind::kept;
    }
    const Held source = halo ? gathered(value, operand.split, *operand.form, device, 0) : own;
    Array out{{}, own->element};
    for (const auto& [from, to] : size) out.shape.push_back(to - from);
    out.values.reserve(as_size(element_count(out.shape)));
    const Dims strides = strides_of(source->shape);
    for (Indices index(out.shape); !index.done(); index.next()) {
      bool has = true, zero = false;
      std::int64_t place = 0;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        const std::int64_t i = size[d].first + index.at[d];
        const bool inside = i >= there[d].first && i < there[d].second;
        has = has && inside;
        zero = zero || (!inside && zeros[d]);
        place += (i - (halo ? 0 : mine[d].first)) * strides[d];
      }
      out.values.push_back(empty && has ? 0.0
                           : has        ? source->values[static_cast<std::size_t>(place)]
                           : zero       ? 0.0
                                        : absent());
    }
    return std::make_shared<const Array>(std::move(out));
  }

  Result<void> compute(const PartitionStep& step) {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    const PartitionRows& rows = pricing_.rows()[at(step.operation)];
    std::vector<Operand> operands;
    for (std::size_t k = 0; k < of.in.size(); ++k) {
      const Split split = pricing_.operand_split(step.operation, step.division, k);
      ASSAY_TRY(form, form_of(of.in[k], split));
      Operand operand{form, split, std::vector<int>(graph_.shape(of.in[k]).dims.size(), -1)};
      for (std::size_t r = 0; r < rows.rows.size(); ++r)
        if (rows.rows[r].operand[k] >= 0) operand.row[at(rows.rows[r].operand[k])] = static_cast<int>(r);
      operands.push_back(std::move(operand));
    }
    std::vector<Shape> shapes;
    for (const int value : of.out) shapes.push_back(graph_.shape(value));
    if (of.at->opcode == "partition-id" || (collective_kind(of.at->opcode) && of.at->opcode != "ragged-all-to-all"))
      return communicate(step, operands);
    std::vector<HeldForm> made(of.out.size());
    std::vector<Held> last_in;
    std::vector<Array> last;
    for (std::size_t device = 0; device < devices_; ++device) {
      std::vector<Held> in;
      Arrays arrays;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        in.push_back(seen(step, rows, operands[k], k, device));
        arrays.push_back(in.back().get());
      }
      if (device == 0 || in != last_in) {
        ASSAY_TRY(results, evaluate({module_, *of.at}, arrays, shapes));
        last = std::move(results);
        last_in = std::move(in);
      }
      for (std::size_t i = 0; i < of.out.size(); ++i) {
        Array part = cut(last[i], block(shapes[i].dims, step.to, device));
        if (std::any_of(part.values.begin(), part.values.end(), is_absent))
          throw InternalError(fmt::format("{}: {}: device {} computes it from elements that it does not have",
                                          module_.where(*of.at), of.at->opcode, device));
        made[i].parts.push_back(std::make_shared<const Array>(std::move(part)));
      }
    }
    if (!rows.adds && step.to.unreduced != 0) ASSAY_CHECK(combine(step, made));
    for (std::size_t i = 0; i < of.out.size(); ++i) keep(of.out[i], step.to, std::move(made[i]));
    return {};
  }

  /// Partial maxima and their like end together, with what belongs to them (the places of an arg-max).
  Result<void> combine(const PartitionStep& step, std::vector<HeldForm>& made) const {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    ASSAY_TRY(body, Body::of({module_, *of.at}));
    if (body.results() != made.size()) throw InternalError("partial results of another number than their body makes");
    std::vector<HeldForm> out(made.size());
    std::vector<double> both(2 * made.size());
    for (std::size_t device = 0; device < devices_; ++device) {
      std::vector<Array> sums;
      for (std::size_t source = 0; source < devices_; ++source) {
        bool takes = true;
        for (int axis = 0; takes && axis < static_cast<int>(mesh_.mesh.axes.size()); ++axis)
          takes = (step.to.unreduced & program::axis_bit(axis)) || coordinate(source, axis) == coordinate(device, axis);
        if (!takes) continue;
        if (sums.empty()) {
          for (const HeldForm& form : made) sums.push_back(*form.parts[source]);
          continue;
        }
        for (std::size_t i = 0; i < sums.front().values.size(); ++i) {
          for (std::size_t n = 0; n < made.size(); ++n) {
            both[n] = sums[n].values[i];
            both[made.size() + n] = made[n].parts[source]->values[i];
          }
          const std::vector<double>& results = body(both);
          for (std::size_t n = 0; n < made.size(); ++n) sums[n].values[i] = results[n];
        }
      }
      for (std::size_t n = 0; n < made.size(); ++n) out[n].parts.push_back(std::make_shared<const Array>(sums[n]));
    }
    for (HeldForm& form : out) form.combined = true;
    made = std::move(out);
    return {};
  }

  // --- what devices do together in manual computations
  /// The group of each device, in order.
  Result<std::vector<std::vector<std::size_t>>> groups_of(const Instruction& instruction) const {
    ASSAY_TRY(groups, parse_replica_groups(instruction.attribute("replica_groups"), module_.where(instruction)));
    std::vector<std::vector<std::size_t>> out(devices_);
    for (const auto& list : groups.lists)
      for (const std::int64_t device : list)
        if (device >= 0 && static_cast<std::size_t>(device) < devices_)
          for (const std::int64_t member : list)
            out[static_cast<std::size_t>(device)].push_back(static_cast<std::size_t>(member));
    if (!groups.lists.empty()) return out;
    // Along axes: devices whose numbers differ in them alone.
    const auto others = [&](std::size_t device) {
      std::int64_t stride = static_cast<std::int64_t>(devices_), rest = 0;
      for (const NamedAxis& axis : groups.mesh) {
        stride /= std::max<std::int64_t>(1, axis.second);
        if (std::find(groups.axes.begin(), groups.axes.end(), axis.first) == groups.axes.end())
          rest += static_cast<std::int64_t>(device) / std::max<std::int64_t>(1, stride) % axis.second * stride;
      }
      return rest;
    };
    for (std::size_t device = 0; device < devices_; ++device)
      for (std::size_t member = 0; member < devices_; ++member)
        if (groups.mesh.empty() || others(device) == others(member)) out[device].push_back(member);
    return out;
  }

  Result<void> communicate(const PartitionStep& step, const std::vector<Operand>& operands) {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    const Instruction& instruction = *of.at;
    const std::string_view opcode = instruction.opcode;
    const Evaluated here{module_, instruction};
    std::vector<HeldForm> out(of.out.size());
    if (opcode == "partition-id") {
      for (std::size_t device = 0; device < devices_; ++device)
        out[0].parts.push_back(
            std::make_shared<const Array>(Array::of(graph_.shape(of.out[0]), static_cast<double>(device))));
      keep(of.out[0], step.to, std::move(out[0]));
      return {};
    }
    if (operands.size() != of.out.size()) return here.fault("a collective of other results than operands");
    for (std::size_t n = 0; n < of.out.size(); ++n) {
      const std::vector<Held>& parts = operands[n].form->parts;
      const Shape& shape = graph_.shape(of.out[n]);
      if (opcode == "collective-permute") {
        ASSAY_TRY(pairs, parse_pairs(instruction.attribute("source_target_pairs"), module_.where(instruction)));
        out[n].parts.assign(devices_, std::make_shared<const Array>(Array::of(shape)));
        for (const auto& [from, to] : pairs) {
          if (from < 0 || to < 0 || std::max(from, to) >= static_cast<std::int64_t>(devices_))
            return here.fault("a device that the mesh does not have");
          out[n].parts[static_cast<std::size_t>(to)] = parts[static_cast<std::size_t>(from)];
        }
        continue;
      }
      ASSAY_TRY(groups, groups_of(instruction));
      for (std::size_t device = 0; device < devices_; ++device) {
        const std::vector<std::size_t>& group = groups[device];
        const auto place = std::find(group.begin(), group.end(), device);
        if (place == group.end()) return here.fault("a device that is in no group");
        ASSAY_TRY(made, together(here, parts, group, static_cast<std::size_t>(place - group.begin()), shape));
        out[n].parts.push_back(std::make_shared<const Array>(std::move(made)));
      }
    }
    for (std::size_t n = 0; n < of.out.size(); ++n) keep(of.out[n], step.to, std::move(out[n]));
    return {};
  }

  /// A part of an array cut into equal ones along a dimension.
  static Block piece(const Dims& dims, std::int64_t along, std::size_t number, std::size_t count) {
    Block out;
    for (const std::int64_t size : dims) out.emplace_back(0, size);
    const std::int64_t size = out.at(at(static_cast<int>(along))).second / static_cast<std::int64_t>(count);
    out[at(static_cast<int>(along))] = {static_cast<std::int64_t>(number) * size,
                                        static_cast<std::int64_t>(number + 1) * size};
    return out;
  }

  /// What one device of a group gets.
  Result<Array> together(const Evaluated& here, const std::vector<Held>& parts, const std::vector<std::size_t>& group,
                         std::size_t place, const Shape& shape) const {
    const std::string_view opcode = here.at.opcode;
    const auto dimension = [&](std::string_view key) -> std::optional<std::int64_t> {
      const Dims found = here.numbers(key);
      const bool one = found.size() == 1 && found[0] >= 0 && found[0] < static_cast<std::int64_t>(shape.dims.size());
      return one ? std::optional(found[0]) : std::nullopt;
    };
    if (opcode == "collective-broadcast") return *parts[group.front()];
    if (opcode == "all-reduce" || opcode == "reduce-scatter") {
      ASSAY_TRY(body, Body::of(here));
      Array sum = *parts[group.front()];
      for (std::size_t i = 1; i < group.size(); ++i)
        for (std::size_t e = 0; e < sum.values.size(); ++e) {
          const std::vector<double>& made = body({sum.values[e], parts[group[i]]->values.at(e)});
          sum.values[e] = made.front();
        }
      if (opcode == "all-reduce") return sum;
      const auto along = dimension("dimensions");
      if (!along) return here.fault("a reduce-scatter names a dimension");
      return cut(sum, piece(sum.shape, *along, place, group.size()));
    }
    const bool gathers = opcode == "all-gather";
    const auto joined = dimension(gathers ? "dimensions" : "concat_dimension"),
               divided = gathers ? joined : dimension("split_dimension");
    if (!joined || !divided) return here.fault("a collective names its dimensions");
    Array out = Array::of(shape);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Array& part = *parts[group[i]];
      paste(out, gathers ? part : cut(part, piece(part.shape, *divided, place, group.size())),
            piece(shape.dims, *joined, i, group.size()), false);
    }
    return out;
  }

  // --- regions
  /// The number of a scalar that all devices agree on.
  Result<double> scalar(int value) const {
    ASSAY_TRY(form, form_of(value, Split{}));
    return form->parts.front()->values.at(0);
  }

  Result<void> loop(const PartitionStep& step) {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    const PartitionRegion &test = graph_.regions[at(of.regions[0])], &body = graph_.regions[at(of.regions[1])];
    constexpr int most_rounds = 100'000;
    const auto carry = [&](const std::vector<int>& from, const std::vector<int>& to) {
      std::vector<HeldForm> forms;  // of all, before the first one changes
      for (std::size_t i = 0; i < to.size(); ++i) forms.push_back(forms_.at({from[i], step.carried[i]}));
      for (std::size_t i = 0; i < to.size(); ++i) keep(to[i], step.carried[i], std::move(forms[i]));
    };
    carry(of.in, body.parameters);
    for (int round = 0; round < most_rounds; ++round) {
      carry(body.parameters, test.parameters);
      ASSAY_CHECK(follow(step.inside[0]));
      ASSAY_TRY(goes_on, scalar(test.results.front()));
      if (goes_on == 0.0) {
        carry(body.parameters, of.out);
        return {};
      }
      ASSAY_CHECK(follow(step.inside[1]));
      carry(body.results, body.parameters);
    }
    return Evaluated{module_, *of.at}.fault(fmt::format("a loop of more than {} rounds", most_rounds));
  }

  Result<void> branch(const PartitionStep& step) {
    const PartitionOperation& of = graph_.operations[at(step.operation)];
    ASSAY_TRY(index, scalar(of.in.front()));
    const Shape& shape = graph_.shape(of.in.front());
    const auto last = static_cast<std::int64_t>(of.regions.size()) - 1;
    const bool truth = shape.element && shape.element->name == "pred";
    const auto whole = static_cast<std::int64_t>(index);
    const std::int64_t which = truth ? (index != 0.0 ? 0 : 1) : whole < 0 || whole > last ? last : whole;
    ASSAY_CHECK(follow(step.inside[static_cast<std::size_t>(which)]));
    const PartitionRegion& taken = graph_.regions[at(of.regions[static_cast<std::size_t>(which)])];
    for (std::size_t i = 0; i < of.out.size(); ++i) {
      ASSAY_TRY(form, form_of(taken.results[i], step.carried[i]));
      keep(of.out[i], step.carried[i], *form);
    }
    return {};
  }

  const Module& module_;
  const PartitionPricing& pricing_;
  const PartitionGraph& graph_;
  const PartitionMesh& mesh_;
  const std::vector<Array>& inputs_;
  std::size_t devices_;
  std::map<FormKey, HeldForm> forms_;
};

}  // namespace

Result<std::vector<ExecutedResult>> execute(const Module& module, const PartitionPricing& pricing,
                                            const PartitionedProgram& plan, const std::vector<Array>& inputs) {
  try {
    return Execution(module, pricing, inputs).run(plan);
  } catch (const std::out_of_range&) {
    return fail(module.file, "sizes of arrays contradict each other", "write the whole module");
  }
}

}  // namespace assay::hlo
