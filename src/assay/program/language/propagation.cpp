#include "assay/program/language/propagation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "assay/base/text.h"
#include "assay/program/language/rows.h"
#include "assay/program/plan/bounded.h"

namespace assay::language {
namespace {

constexpr std::size_t beam_width = 64, most_options = 16;
constexpr double tie = 1e-6;  // weight of the bytes that a device holds: between equal costs, split more
// Bytes that a FLOP is worth where prices are bytes: so many that no device multiplies what another one does, just to
// save communication.
constexpr double bytes_per_flop = 1e3;
constexpr double impossible = std::numeric_limits<double>::infinity();

using program::AxisList;
using program::AxisSet;
using program::Sharding;

std::string key_of(const Sharding& sharding, std::size_t rank) {
  std::string key;
  const auto add = [&](std::uint32_t word) { key.append(reinterpret_cast<const char*>(&word), sizeof word); };
  for (std::size_t d = 0; d < rank; ++d) add(sharding.dims[d].bits());
  add(sharding.unreduced);
  return key;
}

/// One way to compute a value, with its cost.
struct Option {
  Choice choice;
  double cost = 0;
  double moved = 0;                 ///< the part of it that forward movements are
  std::vector<Sharding> gradients;  ///< of the operands, where they have one, as the operation makes them
};

/// A choice in the history of a state.
struct Link {
  int before = -1;
  Choice choice;
};

/// A value that later ones use.
struct Live {
  std::size_t value = 0;
  std::vector<Sharding> held;      ///< as it is kept, then as it was moved
  std::vector<Sharding> returned;  ///< of gradients that move back; sums in one sharding move once
};

struct State {
  double cost = 0;
  double pending = 0;  ///< what it will take at least to end the partial sums that are held
  int history = -1;
  std::vector<Live> live;  ///< in the order of values

  const Live& of(int value) const {
    return *std::find_if(live.begin(), live.end(),
                         [&](const Live& one) { return one.value == static_cast<std::size_t>(value); });
  }
};

/// A state and what to do next in it.
struct Candidate {
  const State* state = nullptr;
  Option option;
  double rank = 0;
};

class Propagation {
 public:
  Propagation(const Source& source, const Graph& graph, const plan::Prices& prices)
      : source_(source), graph_(graph), prices_(prices), planner_(graph.mesh) {
    last_use_.assign(graph.values.size(), -1);
    for (std::size_t v = 0; v < graph.values.size(); ++v)
      for (int id : graph.values[v].in) last_use_[at(id)] = static_cast<int>(v);
    differentiates_.assign(graph.values.size(), false);
    if (graph.loss < 0) return;
    last_use_[at(graph.loss)] = static_cast<int>(graph.values.size());
    differentiates_[at(graph.loss)] = true;
    for (int v = graph.loss; v >= 0; --v)
      for (int id : graph.value(v).in)
        if (differentiates_[at(v)] && !graph.value(id).has_whole_numbers) differentiates_[at(id)] = true;
  }

  Result<Choices> run() {
    std::vector<State> states(1);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      std::vector<Candidate> candidates;
      states_ = states.size();
      for (const State& state : states) {
        ASSAY_TRY(options, options_of(v, state));
        for (Option& option : options) {
          const double rank = state.cost + option.cost + pending_after(state, v, option.choice.kept);
          candidates.push_back({&state, std::move(option), rank});
        }
      }
      states = best_of(std::move(candidates), v);
    }
    const State& best = states.front();
    Choices out{std::vector<Choice>(graph_.values.size()), best.cost};
    int link = best.history;
    for (std::size_t v = graph_.values.size(); v-- > 0; link = links_[at(link)].before)
      out.values[v] = links_[at(link)].choice;
    return out;
  }

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }

  bool dies(int id, std::size_t v) const { return last_use_[at(id)] <= static_cast<int>(v); }

  double pending_after(const State& state, std::size_t v, const Sharding& kept) const {
    double pending = state.pending;
    const std::vector<int>& in = graph_.values[v].in;
    for (std::size_t k = 0; k < in.size(); ++k)
      if (dies(in[k], v) && std::find(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(k), in[k]) ==
                                in.begin() + static_cast<std::ptrdiff_t>(k))
        pending -= ending_cost(at(in[k]), state.of(in[k]).held.front());
    return dies(static_cast<int>(v), v) ? pending : pending + ending_cost(v, kept);
  }

  State extended(const Candidate& candidate, std::size_t v) {
    State out = *candidate.state;
    const Option& option = candidate.option;
    const Value& value = graph_.values[v];
    out.pending = pending_after(out, v, option.choice.kept);
    out.cost += option.cost;
    for (std::size_t k = 0; k < value.in.size(); ++k)
      for (Live& one : out.live) {
        if (one.value != at(value.in[k])) continue;
        if (std::find(one.held.begin(), one.held.end(), option.choice.in[k]) == one.held.end())
          one.held.push_back(option.choice.in[k]);
        if (k < option.gradients.size()) one.returned.push_back(option.gradients[k]);
      }
    std::erase_if(out.live, [&](const Live& one) { return dies(static_cast<int>(one.value), v); });
    if (!dies(static_cast<int>(v), v)) out.live.push_back({v, {option.choice.kept}, {}});
    links_.push_back({candidate.state->history, option.choice});
    out.history = static_cast<int>(links_.size()) - 1;
    return out;
  }

  /// Partial sums are scattered, at least, and their gradients gathered.
  double ending_cost(std::size_t v, const Sharding& sharding) const {
    if (sharding.unreduced == 0) return 0.0;
    const double scatter =
        prices_(program::Collective::reduce_scatter, sharding.unreduced, Bytes(bytes_of(graph_.values[v], sharding)));
    return differentiates_[v] ? 2.0 * scatter : scatter;
  }

  /// The cheapest states; of those that hold the same, one.
  std::vector<State> best_of(std::vector<Candidate> candidates, std::size_t v) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    std::vector<State> out;
    std::map<std::string, bool> seen;
    for (const Candidate& candidate : candidates) {
      State state = extended(candidate, v);
      std::string key;
      for (const Live& one : state.live)
        for (const Sharding& held : one.held)
          key += fmt::format("{}:", one.value) + key_of(held, graph_.values[one.value].dims.size());
      if (!seen.emplace(std::move(key), true).second) {
        links_.pop_back();
        continue;
      }
      out.push_back(std::move(state));
      if (out.size() == beam_width) break;
    }
    return out;
  }

  double bytes_of(const Value& value, const Sharding& sharding) const {
    double elements = 1.0;
    for (std::size_t d = 0; d < value.dims.size(); ++d)
      elements *= static_cast<double>(program::local_size(graph_.mesh, value.dims[d].size, sharding.dims[d]));
    return storage(graph_.dtype, elements).value();
  }

  double move_cost(const Value& value, const Sharding& from, const Sharding& to) {
    if (from == to) return 0.0;
    if (to.unreduced & ~from.unreduced) return impossible;
    std::string key;
    for (const Dim& dim : value.dims) key += fmt::format("{},", dim.size);
    key += key_of(from, value.dims.size()) + key_of(to, value.dims.size());
    if (const auto known = move_costs_.find(key); known != move_costs_.end()) return known->second;
    const double cost = planner_.reshard(tensor_of(graph_, value, from), to, prices_).cost;
    move_costs_.emplace(std::move(key), cost);
    return cost;
  }

  // --- what an operation can do
  bool divides(const Row& row, AxisSet axes) const {
    return row.size % static_cast<std::int64_t>(program::shard_count(graph_.mesh, axes)) == 0;
  }

  /// Everything that one state makes of one value.
  struct Setting {
    const Value& value;
    std::vector<Row> rows;
    std::vector<const std::vector<Sharding>*> held, returned;  ///< of the operands
    AxisSet axes = 0;                                          ///< that split an operand or, by the line, the result
    std::vector<AxisList> lists;                               ///< orders of axes in use
  };
  Setting setting(std::size_t v, const State& state) const {
    Setting out{graph_.values[v], rows_of(graph_, graph_.values[v]), {}, {}, 0, {}};
    const auto note = [&](const Sharding& sharding) {
      out.axes |= sharding.used_axes();
      for (const AxisList list : sharding.dims)
        if (!list.empty()) out.lists.push_back(list);
    };
    for (int id : out.value.in) {
      const Live& one = state.of(id);
      out.held.push_back(&one.held);
      out.returned.push_back(&one.returned);
      for (const Sharding& sharding : one.held) note(sharding);
    }
    if (out.value.pinned) note(*out.value.pinned);
    return out;
  }

  /// The cost of a split: operands move, then each device computes; impossible where they cannot.
  Option priced(const Setting& with, const Split& split) {
    Option option;
    for (std::size_t k = 0; k < with.value.in.size(); ++k) {
      const Sharding needed = operand_sharding(with.rows, split, k);
      const auto& held = *with.held[k];
      const bool there = std::find(held.begin(), held.end(), needed) != held.end();
      option.moved += there ? 0.0 : move_cost(graph_.value(with.value.in[k]), held.front(), needed);
      option.gradients.push_back(gradient_sharding(with, split, k, needed));
      option.cost += gradient_cost(with, k, option.gradients.back());
      option.choice.in.push_back(needed);
    }
    option.choice.made = result_sharding(with.rows, split);
    if (!with.value.in.empty()) end_within(with, option);
    option.choice.kept = option.choice.made;
    option.cost += option.moved;
    if (!with.value.ends && with.value.op == program::Op::product)
      option.cost +=
          (prices_.per_flop > 0.0 ? prices_.per_flop : bytes_per_flop) * local_flops(graph_, with.rows, split).value();
    return option;
  }

  /// Maxima and softmaxes over split dimensions end what they reduce by themselves, before anybody reads their result:
  /// a maximum by one AllReduce, a softmax by one of maxima and one of sums. Their gradients sum once more.
  void end_within(const Setting& with, Option& option) {
    const Value& operand = graph_.value(with.value.in[0]);
    const AxisSet axes = axes_within(with.value, operand.dims, option.choice.in[0]);
    if (axes == 0) return;
    option.choice.made.unreduced = 0;
    const bool is_softmax = with.value.op == program::Op::softmax;
    double bytes = bytes_of(with.value, option.choice.made);
    if (is_softmax) {
      const auto d = at(with.value.detail);
      bytes /= static_cast<double>(program::local_size(graph_.mesh, operand.dims[d].size, option.choice.in[0].dims[d]));
    }
    const double each = prices_(program::Collective::all_reduce, axes, Bytes(bytes));
    option.moved += is_softmax ? 2.0 * each : each;
    if (differentiates(with.value)) option.cost += each;
  }

  /// The gradient of an operand is a partial sum over the axes that split what the operand lacks.
  static Sharding gradient_sharding(const Setting& with, const Split& split, std::size_t k, const Sharding& needed) {
    Sharding gradient = needed;
    gradient.unreduced = 0;
    for (std::size_t r = 0; r < with.rows.size(); ++r)
      if (with.rows[r].operand[k] < 0) gradient.unreduced |= split.rows[r].set();
    return gradient;
  }
  /// It moves back to where the operand is kept, once for all operations that make it in one sharding.
  double gradient_cost(const Setting& with, std::size_t k, const Sharding& gradient) {
    const int operand = with.value.in[k];
    if (!differentiates_[at(operand)] || !differentiates(with.value)) return 0.0;
    const auto& known = *with.returned[k];
    if (std::find(known.begin(), known.end(), gradient) != known.end()) return 0.0;
    Sharding home = with.held[k]->front();
    home.unreduced = 0;
    return move_cost(graph_.value(operand), gradient, home);
  }
  bool differentiates(const Value& value) const {
    return differentiates_[static_cast<std::size_t>(&value - graph_.values.data())];
  }

  /// Adds the ways to keep what a split makes.
  void add_kept(const Setting& with, const Option& made, std::vector<Option>& out) {
    if (made.cost == impossible) return;
    const auto keep = [&](const Sharding& kept) {
      Option option = made;
      option.choice.kept = kept;
      const double moving = move_cost(with.value, made.choice.made, kept);
      option.moved += moving;
      option.cost += moving;
      if (option.cost == impossible) return;
      if (differentiates(with.value)) {
        Sharding arriving = kept, used = made.choice.made;
        arriving.unreduced = used.unreduced = 0;
        option.cost += move_cost(with.value, arriving, used);
      }
      // Bytes have the unit of the prices only where those are bytes.
      const double weight = prices_.per_flop > 0.0 ? tie * prices_.per_flop : tie;
      option.cost += weight * bytes_of(with.value, kept);
      out.push_back(std::move(option));
    };
    const Sharding& sharding = made.choice.made;
    if (with.value.pinned && with.value.given == Value::Given::no) return keep(*with.value.pinned);
    if (sharding.unreduced == 0 || !with.value.ends) keep(sharding);
    if (sharding.unreduced == 0) return;
    Sharding whole = sharding;
    whole.unreduced = 0;
    keep(whole);
    for (std::size_t d = 0; d < with.value.dims.size(); ++d) {
      Sharding scattered = whole;
      AxisList& list = scattered.dims[d];
      for (int axis = 0; axis < static_cast<int>(graph_.mesh.axes.size()); ++axis)
        if (sharding.unreduced & program::axis_bit(axis)) list = list.pushed(axis);
      const auto ways = static_cast<std::int64_t>(program::shard_count(graph_.mesh, list.set()));
      if (with.value.dims[d].size % ways == 0) keep(scattered);
    }
  }

  /// Whether an operand, or the line, has this axis on a row.
  bool is_at_home(const Setting& with, const Row& row, AxisSet bit) const {
    if (with.value.pinned && row.result >= 0 && (with.value.pinned->dims[at(row.result)].set() & bit)) return true;
    for (std::size_t k = 0; k < with.value.in.size(); ++k)
      if (row.operand[k] >= 0 && (with.held[k]->front().dims[at(row.operand[k])].set() & bit)) return true;
    return false;
  }

  /// Calls back with every split of the rows by the axes in use. Of many axes at most one leaves the rows that an
  /// operand or the line has it on for another: the splits of all are exponentially many.
  template <class F>
  void each_split(const Setting& with, F&& visit) {
    std::vector<int> axes;
    for (int axis = 0; axis < static_cast<int>(graph_.mesh.axes.size()); ++axis)
      if (with.axes & program::axis_bit(axis)) axes.push_back(axis);
    std::vector<AxisSet> sets(with.rows.size(), 0);
    Split split;
    split.rows.resize(with.rows.size());
    const bool many = axes.size() > static_cast<std::size_t>(plan::most_exact_axes);
    int left = many ? std::max(64, 8192 / static_cast<int>(states_)) : 4096, away = 0;
    const auto descend = [&](const auto& self, std::size_t i) -> void {
      if (left <= 0) return;
      if (i == axes.size()) {
        --left;
        for (std::size_t r = 0; r < sets.size(); ++r)
          split.rows[r] = program::ordered(graph_.mesh, sets[r], with.lists);
        visit(split);
        return;
      }
      const AxisSet bit = program::axis_bit(axes[i]);
      const auto try_rows = [&](bool at_home) {
        for (std::size_t r = 0; r < with.rows.size(); ++r) {
          if (!with.rows[r].splits || !divides(with.rows[r], sets[r] | bit)) continue;
          if (many && is_at_home(with, with.rows[r], bit) != at_home) continue;
          sets[r] |= bit;
          self(self, i + 1);
          sets[r] &= ~bit;
        }
      };
      if (many) try_rows(true);  // first, since not all are tried
      self(self, i + 1);
      if (many && away == 0) {
        ++away;
        try_rows(false);
        --away;
      }
      if (!many) try_rows(false);
      const auto is_partial = [&](std::size_t k) { return (with.held[k]->front().unreduced & bit) != 0; };
      const bool all = with.value.op == program::Op::add && !with.value.ends;
      for (std::size_t k = 0; k < with.value.in.size(); ++k) {
        if (!is_linear_in(with.value, k) || !is_partial(k)) continue;
        if (all && (k > 0 || !is_partial(1))) continue;
        for (std::size_t other = 0; other < with.value.in.size(); ++other)
          if (all || other == k) split.partial[other] |= bit;
        self(self, i + 1);
        for (AxisSet& partial : split.partial) partial &= ~bit;
      }
    };
    descend(descend, 0);
  }

  Result<std::vector<Option>> options_of(std::size_t v, const State& state) {
    const Value& value = graph_.values[v];
    if (value.given != Value::Given::no) {
      const Sharding sharding = value.pinned.value_or(Sharding{});
      return std::vector<Option>{{{{}, sharding, sharding}, 0.0, 0.0, {}}};
    }
    const Setting with = setting(v, state);
    std::vector<Option> out;
    const bool follows = graph_.mode == Mode::explicit_types && !value.pinned;
    if (const auto natural = follows ? natural_split(with) : std::nullopt) {
      Option option = priced(with, *natural);
      // Sums end where they are made; a line that wants less says so.
      option.choice.kept.unreduced = 0;
      option.cost += move_cost(value, option.choice.made, option.choice.kept);
      return std::vector<Option>{std::move(option)};
    }
    each_split(with, [&](const Split& split) { add_kept(with, priced(with, split), out); });
    std::stable_sort(out.begin(), out.end(), [](const Option& a, const Option& b) { return a.cost < b.cost; });
    if (follows) return ambiguous(with, out);
    std::vector<Option> best;
    for (Option& option : out) {
      const bool known = std::any_of(best.begin(), best.end(), [&](const Option& other) {
        return other.choice.kept == option.choice.kept && other.choice.in == option.choice.in;
      });
      if (!known) best.push_back(std::move(option));
      if (best.size() == most_options) break;
    }
    if (best.empty())
      return source_.error(value.at, "the sharding of the result cannot be made of its operands",
                           "a partial sum comes from a split dimension that is summed");
    return best;
  }

  // --- explicit programs
  /// The split that the operands' own shardings mean, if they mean just one.
  std::optional<Split> natural_split(const Setting& with) const {
    Split split;
    split.rows.resize(with.rows.size());
    AxisSet used = 0;
    for (std::size_t r = 0; r < with.rows.size(); ++r) {
      const Row& row = with.rows[r];
      AxisList list;
      std::size_t split_operands = 0;
      for (std::size_t k = 0; k < with.value.in.size(); ++k) {
        if (row.operand[k] < 0) continue;
        const AxisList own = with.held[k]->front().dims[at(row.operand[k])];
        if (own.empty()) continue;
        if (!list.empty() && !(list == own)) return std::nullopt;
        list = own;
        ++split_operands;
      }
      if (list.empty() || !row.splits) continue;  // a dimension that is needed whole is gathered
      const bool is_summed = !with.value.ends && with.value.op == program::Op::product && row.result < 0;
      if (is_summed && split_operands < 2) continue;  // the other operand has it whole: weights of FSDP are gathered
      if ((used & list.set()) || is_summed) return std::nullopt;
      used |= list.set();
      split.rows[r] = list;
    }
    return split;
  }

  tl::unexpected<Error> ambiguous(const Setting& with, const std::vector<Option>& options) const {
    std::string choices;
    std::vector<Sharding> named;
    for (const Option& option : options) {
      const Sharding& kept = option.choice.kept;
      if (std::find(named.begin(), named.end(), kept) != named.end()) continue;
      named.push_back(kept);
      const program::Tensor tensor = tensor_of(graph_, with.value, kept);
      const std::string text = program::tensor_text(graph_.mesh, tensor);
      choices +=
          fmt::format("{}{}{} ({})", choices.empty() ? "" : ", ", text, kept.used_axes() == 0 ? " {}" : "",
                      prices_.per_flop > 0.0 ? human(Seconds(option.moved)) : human(Bytes(option.moved)) + " received");
      if (named.size() == 4) break;
    }
    std::string operands;
    for (std::size_t k = 0; k < with.value.in.size(); ++k)
      operands += fmt::format(
          "{}{}",
          k == 0                          ? ""
          : k + 1 == with.value.in.size() ? " and "
                                          : ", ",
          program::tensor_text(graph_.mesh, tensor_of(graph_, graph_.value(with.value.in[k]), with.held[k]->front())));
    return source_.error(with.value.at,
                         fmt::format("ambiguous: the shardings of {} do not say how the result is sharded", operands),
                         fmt::format("give its sharding on the left: {}", choices));
  }

  const Source& source_;
  const Graph& graph_;
  const plan::Prices& prices_;
  plan::BoundedPlanner planner_;
  std::vector<int> last_use_;
  std::vector<bool> differentiates_;  ///< by value: the program asks for its gradient, or for one that needs it
  std::vector<Link> links_;
  std::size_t states_ = 1;  ///< of the value at hand
  std::unordered_map<std::string, double> move_costs_;
};

}  // namespace

Result<Choices> choose_shardings(const Source& source, const Graph& graph, const plan::Prices& prices) {
  return Propagation(source, graph, prices).run();
}

}  // namespace assay::language
