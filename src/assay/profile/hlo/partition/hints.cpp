#include "assay/profile/hlo/partition/hints.h"

#include <algorithm>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

using program::AxisList;
using program::AxisSet;

/// One dimension of one value.
struct Place {
  int value = -1;
  int dim = -1;
};

class Spreading {
 public:
  Spreading(const Module& module, const PartitionGraph& graph, const PartitionMesh& mesh,
            const std::vector<PartitionRows>& rows, const SpreadOrder& order, const PartitionPin* pin)
      : module_(module), graph_(graph), mesh_(mesh), rows_(rows), order_(order), pin_(pin) {
    out_.shardings.resize(graph.values.size());
    out_.stated.assign(graph.values.size(), false);
    closed_.assign(graph.values.size(), 0);
    users_.resize(graph.values.size());
    for (std::size_t i = 0; i < graph.operations.size(); ++i) {
      const PartitionOperation& of = graph.operations[i];
      for (const int value : of.in) users_[at(value)].push_back(static_cast<int>(i));
      for (const int value : of.out) users_[at(value)].push_back(static_cast<int>(i));
      for (const int region : of.regions) {
        for (const int value : graph.regions[at(region)].parameters) users_[at(value)].push_back(static_cast<int>(i));
        for (const int value : graph.regions[at(region)].results) users_[at(value)].push_back(static_cast<int>(i));
      }
    }
  }

  Result<PartitionHints> run() {
    ASSAY_CHECK(take_stated());
    if (!order_.all_at_once) spread(false);
    spread(true);
    return std::move(out_);
  }

 private:
  void state(int value, const Sharding& sharding) {
    const std::size_t rank = graph_.shape(value).dims.size();
    program::Sharding placed = placed_sharding(mesh_, sharding, rank);
    for (AxisList& list : placed.dims) list = without_axes(list, graph_.values[at(value)].manual);
    out_.shardings[at(value)] = placed;
    out_.stated[at(value)] = true;
    for (std::size_t d = 0; d < std::min(rank, program::max_tensor_rank); ++d)
      if (d >= sharding.open.size() || !sharding.open[d]) closed_[at(value)] |= 1u << d;
  }
  Result<void> take_stated() {
    for (const PartitionOperation& of : graph_.operations) {
      using Kind = PartitionOperation::Kind;
      const std::string_view opcode = of.at->opcode;
      const bool manual = !of.at->attribute("manual_axes").empty();
      if ((of.kind == Kind::enter || of.kind == Kind::leave) && manual) {
        ASSAY_TRY(list, sharding_list(module_, *of.at, of.kind == Kind::enter ? "in_shardings" : "out_shardings"));
        if (at(of.number) < list.size()) {
          state(of.out.front(), list[at(of.number)]);
          // Axes that are not manual are found by spreading.
          closed_[at(of.out.front())] = 0;
        }
        continue;
      }
      const bool says = of.kind == Kind::constraint || of.kind == Kind::leave ||
                        (of.kind == Kind::parameter && opcode == "parameter");
      if (!says || of.out.size() != 1) continue;
      ASSAY_TRY(stated, stated_sharding(module_, of.at->attribute("sharding"), of.at->attribute("frontend_attributes"),
                                        *of.at));
      if (stated && stated->kind != Sharding::Kind::manual && stated->kind != Sharding::Kind::unknown)
        state(of.out.front(), *stated);
    }
    state_before_constraints();
    for (const PartitionOperation& of : graph_.operations)
      if (pin_ && of.at == pin_->at && of.out.size() == 1) {
        out_.shardings[at(of.out.front())] = pin_->sharding;
        closed_[at(of.out.front())] = ~0u;
      }
    const std::vector<int>& results = graph_.regions.front().results;
    out_.results.resize(results.size());
    for (std::size_t i = 0; i < std::min(results.size(), module_.result_shardings.size()); ++i) {
      const std::string_view text = module_.result_shardings[i];
      const std::size_t sdy = text.find("#sdy.sharding<");
      ASSAY_TRY(stated,
                stated_sharding(module_, text_after(text, "mhlo.sharding").value_or(""),
                                sdy == std::string_view::npos ? "" : text.substr(sdy, text.find("]>", sdy) + 2 - sdy),
                                module_.entry_computation()->instructions.back()));
      if (!stated || stated->kind == Sharding::Kind::unknown) continue;
      out_.results[i] = placed_sharding(mesh_, *stated, graph_.shape(results[i]).dims.size());
      if (out_.stated[at(results[i])]) continue;
      state(results[i], *stated);
      out_.stated[at(results[i])] = false;
      closed_[at(results[i])] = 0;
    }
    return {};
  }

  /// A value that one constraint wants, and nobody else has said anything about, is made as it wants it.
  void state_before_constraints() {
    std::vector<int> wanted(graph_.values.size(), -1);
    for (const PartitionOperation& of : graph_.operations)
      if (of.kind == PartitionOperation::Kind::constraint && out_.stated[at(of.out.front())])
        wanted[at(of.in.front())] = wanted[at(of.in.front())] == -1 ? of.out.front() : -2;
    for (std::size_t value = 0; value < wanted.size(); ++value) {
      if (wanted[value] < 0 || out_.stated[value]) continue;
      out_.shardings[value] = out_.shardings[at(wanted[value])];
      closed_[value] = closed_[at(wanted[value])];
    }
  }

  void spread(bool through_all) {
    through_all_ = through_all;
    waiting_.assign(graph_.operations.size(), true);
    std::vector<int> order(graph_.operations.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    if (order_.results_first) std::reverse(order.begin(), order.end());
    // Forwards and backwards in turn, so that a sharding crosses the program in one pass.
    while (!order.empty()) {
      for (const int i : order) visit(i);
      order.clear();
      for (std::size_t i = waiting_.size(); i-- > 0;)
        if (waiting_[i]) order.push_back(static_cast<int>(i));
      for (const int i : order) visit(i);
      order.clear();
      for (std::size_t i = 0; i < waiting_.size(); ++i)
        if (waiting_[i]) order.push_back(static_cast<int>(i));
    }
  }

  void visit(int number) {
    if (!waiting_[at(number)]) return;
    waiting_[at(number)] = false;
    const PartitionOperation& of = graph_.operations[at(number)];
    using Kind = PartitionOperation::Kind;
    if (of.kind == Kind::loop) {
      const PartitionRegion &condition = graph_.regions[at(of.regions[0])], &body = graph_.regions[at(of.regions[1])];
      for (std::size_t i = 0; i < of.in.size(); ++i)
        same({of.in[i], condition.parameters[i], body.parameters[i], body.results[i], of.out[i]});
    } else if (of.kind == Kind::branch) {
      for (std::size_t i = 0; i < of.out.size(); ++i) {
        std::vector<int> all{of.out[i]};
        for (const int region : of.regions) all.push_back(graph_.regions[at(region)].results[i]);
        same(all);
      }
    } else if (of.kind == Kind::constraint || of.at->opcode == "optimization-barrier") {
      for (std::size_t i = 0; i < std::min(of.in.size(), of.out.size()); ++i) same({of.in[i], of.out[i]});
    } else if (of.kind == Kind::plain) {
      if (!through_all_ && !passes(of.at->opcode)) return;
      const std::vector<PartitionRow>& rows = rows_[at(number)].rows;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const PartitionRow& row = rows[order_.rows_backwards ? rows.size() - 1 - r : r];
        if (row.kind == PartitionRow::Kind::whole) continue;
        places_.clear();
        for (std::size_t k = 0; k < of.in.size(); ++k)
          if (row.operand[k] >= 0) places_.push_back({of.in[k], row.operand[k]});
        if (row.result >= 0)
          for (const int value : of.out) places_.push_back({value, row.result});
        agree(row.size);
      }
    }
  }

  static bool passes(std::string_view opcode) {
    return opcode != "dot" && opcode != "convolution" && opcode != "gather" && opcode != "scatter" &&
           opcode != "reduce" && opcode != "broadcast" && opcode != "ragged-dot";
  }

  void same(const std::vector<int>& values) {
    const std::size_t rank = graph_.shape(values.front()).dims.size();
    for (std::size_t d = 0; d < std::min(rank, program::max_tensor_rank); ++d) {
      places_.clear();
      for (const int value : values)
        if (graph_.shape(value).dims.size() == rank) places_.push_back({value, static_cast<int>(d)});
      agree(graph_.shape(values.front()).dims[d]);
    }
  }

  AxisList list_of(const Place& place) const {
    return at(place.dim) < program::max_tensor_rank ? out_.shardings[at(place.value)].dims[at(place.dim)] : AxisList();
  }

  /// Whether one list begins as the other one does.
  static bool extends(AxisList longer, AxisList shorter) {
    while (!longer.empty() && longer != shorter) longer = longer.popped();
    return longer == shorter;
  }

  /// The longest list goes to all places that have the beginning of it, as far as it divides and is free there.
  void agree(std::int64_t size) {
    AxisList best;
    for (const Place& place : places_) {
      const AxisList list = list_of(place);
      if (list.axes().size() > best.axes().size()) best = list;
    }
    if (best.empty()) return;
    for (const Place& place : places_) {
      if (at(place.dim) >= program::max_tensor_rank || (closed_[at(place.value)] >> place.dim & 1u)) continue;
      program::Sharding& sharding = out_.shardings[at(place.value)];
      const AxisList own = sharding.dims[at(place.dim)];
      if (own == best || !extends(best, own)) continue;
      AxisList list = own;
      const AxisSet taken = sharding.split_axes() | graph_.values[at(place.value)].manual;
      for (const int axis : best.axes()) {
        if (own.has(axis)) continue;
        const AxisList longer = list.pushed(axis);
        if ((taken & program::axis_bit(axis)) ||
            size % static_cast<std::int64_t>(program::shard_count(mesh_.mesh, longer.set())) != 0)
          break;
        list = longer;
      }
      if (list == own) continue;
      sharding.dims[at(place.dim)] = list;
      for (const int user : users_[at(place.value)]) waiting_[at(user)] = true;
    }
  }

  const Module& module_;
  const PartitionGraph& graph_;
  const PartitionMesh& mesh_;
  const std::vector<PartitionRows>& rows_;
  const SpreadOrder& order_;
  const PartitionPin* pin_;
  PartitionHints out_;
  std::vector<std::uint32_t> closed_;  ///< dimensions that nobody may divide further
  std::vector<std::vector<int>> users_;
  std::vector<bool> waiting_;
  std::vector<Place> places_;
  bool through_all_ = false;
};

}  // namespace

Result<PartitionHints> partition_hints(const Module& module, const PartitionGraph& graph, const PartitionMesh& mesh,
                                       const std::vector<PartitionRows>& rows, const SpreadOrder& order,
                                       const PartitionPin* pin) {
  return Spreading(module, graph, mesh, rows, order, pin).run();
}

std::vector<PartitionPin> partition_pins(const PartitionGraph& graph, const PartitionMesh& over,
                                         const std::vector<program::Sharding>& homes,
                                         const std::vector<double>& moved) {
  const program::Mesh& mesh = over.mesh;
  std::vector<int> order;
  for (std::size_t value = 0; value < moved.size(); ++value)
    if (moved[value] > 0.0) order.push_back(static_cast<int>(value));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return moved[at(a)] > moved[at(b)]; });
  std::vector<PartitionPin> out;
  std::vector<const Instruction*> seen;
  for (const int value : order) {
    const PartitionOperation& of = graph.operations[at(graph.values[at(value)].operation)];
    const Shape& shape = graph.shape(value);
    const bool plain = of.kind == PartitionOperation::Kind::plain && of.out.size() == 1;
    if (!plain || std::find(seen.begin(), seen.end(), of.at) != seen.end()) continue;
    seen.push_back(of.at);
    for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis) {
      if (graph.values[at(value)].manual & program::axis_bit(axis)) continue;
      for (std::size_t d = 0; d <= std::min(shape.dims.size(), program::max_tensor_rank - 1); ++d) {
        PartitionPin pin{of.at, shape, homes[at(value)]};
        pin.sharding.unreduced = 0;
        for (AxisList& list : pin.sharding.dims) list = without_axes(list, program::axis_bit(axis));
        if (d < shape.dims.size()) {
          pin.sharding.dims[d] = pin.sharding.dims[d].pushed(axis);
          const double shards = program::shard_count(mesh, pin.sharding.dims[d].set());
          if (shape.dims[d] % static_cast<std::int64_t>(shards) != 0) continue;
        }
        if (!(pin.sharding == homes[at(value)])) out.push_back(std::move(pin));
      }
    }
  }
  return out;
}

}  // namespace assay::hlo
