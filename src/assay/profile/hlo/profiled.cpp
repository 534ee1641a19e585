#include "assay/profile/hlo/profiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "assay/profile/hlo/proto.h"
#include "assay/profile/hlo/trips.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

using trace::Event;
using trace::none;

/// An instruction of a module.
struct RunPlace {
  std::uint32_t computation = 0, instruction = 0;
  friend auto operator<=>(const RunPlace&, const RunPlace&) = default;
};

/// Kernels of a compiler are named after instructions, with other signs than letters and digits made "_".
std::string name_of_kernel(std::string_view instruction) {
  std::string out(instruction);
  for (char& c : out)
    if (c == '.' || c == '-') c = '_';
  return out;
}

/// Without the number that tells it from others: "add" of add.12, "loop_add_fusion" of loop_add_fusion_4.
std::string_view base_name(std::string_view name) {
  const std::size_t letters = name.find_last_not_of("0123456789._");
  return letters == std::string_view::npos ? name : name.substr(0, letters + 1);
}

/// A program of a profile.
class ProfiledProgram {
 public:
  explicit ProfiledProgram(Module module) : module_(std::move(module)) {
    for (std::uint32_t c = 0; c < module_.computations.size(); ++c) {
      if (module_.computations[c].fused) continue;
      for (std::uint32_t i = 0; i < module_.computations[c].instructions.size(); ++i)
        places_.emplace(module_.computations[c].instructions[i].name, RunPlace{c, i});
    }
  }

  const Module& module() const { return module_; }
  const Instruction& at(RunPlace place) const {
    return module_.computations[place.computation].instructions[place.instruction];
  }
  std::optional<RunPlace> find(std::string_view instruction) const {
    const auto known = places_.find(instruction);
    return known == places_.end() ? std::nullopt : std::optional(known->second);
  }
  /// Instructions that make kernels, in the order in which one run of the program runs them.
  const std::vector<RunPlace>& sequence() {
    if (sequence_.empty() && module_.entry != no_computation) add_sequence(module_.entry, sequence_, 0);
    return sequence_;
  }
  const Arithmetic& work(RunPlace place) {
    const auto [known, is_new] = work_.try_emplace(place);
    if (is_new) known->second = arithmetic(module_, module_.computations[place.computation], at(place));
    return known->second;
  }

 private:
  void add_sequence(std::uint32_t number, std::vector<RunPlace>& out, int depth) {
    constexpr std::size_t longest = 1'000'000;
    constexpr int deepest = 50;
    const Computation& computation = module_.computations[number];
    if (depth > deepest || looks_left_-- <= 0) return;
    for (std::uint32_t i = 0; i < computation.instructions.size() && out.size() < longest; ++i) {
      const Instruction& at = computation.instructions[i];
      if (at.opcode == "while") {
        const double trips = trip_count(module_, computation, at).value_or(1.0);
        std::size_t before = out.size() + 1;  // turns without kernels are not counted
        for (double trip = 0; trip < trips && out.size() < longest && before != out.size(); ++trip) {
          before = out.size();
          for (const std::uint32_t callee : at.callees) add_sequence(callee, out, depth + 1);
        }
      } else if (at.opcode == "call" || at.opcode == "conditional") {
        for (const std::uint32_t callee : at.callees) add_sequence(callee, out, depth + 1);
      } else if (!is_free(at)) {
        out.push_back({number, i});
      }
    }
  }

  Module module_;
  std::unordered_map<std::string_view, RunPlace> places_;
  std::vector<RunPlace> sequence_;
  int looks_left_ = 1'000'000;  ///< at computations: a program that takes more is made to waste time
  std::map<RunPlace, Arithmetic> work_;
};

/// What a kernel and an instruction are compared by.
struct Likeness {
  enum class Library : std::uint8_t { none, product, attention };
  std::uint32_t name = 0, base = 0;  ///< in Trace::names
  Library library = Library::none;

  /// Equal instructions share a kernel, which has the name of one of them.
  int score(const Likeness& other) const {
    if (library != Library::none || other.library != Library::none) return library == other.library ? 30 : 0;
    return name == other.name ? 40 : base == other.base ? 10 : 0;
  }
};

/// Of two lists in their order, which of the second each of the first is: the alignment with the largest score. What it
/// jumps over inside of the second one counts against it, so that kernels of one turn of a loop stay in that turn.
std::vector<std::optional<std::size_t>> aligned(const std::vector<Likeness>& ran,
                                                const std::vector<Likeness>& planned) {
  std::vector<std::optional<std::size_t>> out(ran.size());
  constexpr double most_cells = 1e8;
  if (static_cast<double>(ran.size()) * static_cast<double>(planned.size()) > most_cells) return out;
  enum Way : std::uint8_t { skip_ran, skip_planned, take };
  std::vector<std::uint8_t> ways(ran.size() * planned.size());
  std::vector<int> below(planned.size() + 1, 0), here = below;  // the best score of what follows
  for (std::size_t i = ran.size(); i-- > 0; std::swap(below, here))
    for (std::size_t j = planned.size(); j-- > 0;) {
      std::uint8_t& way = ways[i * planned.size() + j];
      way = below[j] >= here[j + 1] - 1 ? skip_ran : skip_planned;
      here[j] = std::max(below[j], here[j + 1] - 1);
      if (const int score = ran[i].score(planned[j]); score > 0 && score + below[j + 1] >= here[j]) {
        here[j] = score + below[j + 1];
        way = take;
      }
    }
  std::size_t j = static_cast<std::size_t>(std::max_element(below.begin(), below.end()) - below.begin());
  for (std::size_t i = 0; i < ran.size() && j < planned.size();) {
    const std::uint8_t way = ways[i * planned.size() + j];
    if (way == take) out[i] = j;
    i += way != skip_planned ? 1 : 0;
    j += way != skip_ran ? 1 : 0;
  }
  return out;
}

/// Inputs as Event::inputs names them; the last one, without a shape, is a truth.
std::string listed(const std::vector<std::vector<double>>& dims, std::string_view type, bool truth = false) {
  std::string shapes, types, values;
  for (const std::vector<double>& one : dims) {
    shapes += fmt::format("[{}],", fmt::join(one, ","));
    types += fmt::format("\"{}\",", type);
    values += "\"\",";
  }
  return fmt::format("[{}[]]\x1f[{}\"\"]\x1f[{}\"{}\"]", shapes, types, values, truth ? "True" : "");
}

class Adoption {
 public:
  Adoption(trace::Trace& trace, const trace::Vocabulary& vocabulary, const Calls& calls)
      : trace_(trace), vocabulary_(vocabulary), calls_(calls) {}

  std::int64_t adopt() {
    std::stable_sort(trace_.program_events.begin(), trace_.program_events.end(), [&](const auto& a, const auto& b) {
      const Event &left = trace_.events[a.event], &right = trace_.events[b.event];
      return left.lane != right.lane ? left.lane < right.lane : left.start < right.start;
    });
    const std::vector<trace::ProgramEvent>& all = trace_.program_events;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      const Event& first = trace_.events[all[i].event];
      while (end < all.size() && all[end].program == all[i].program && all[end].instruction == all[i].instruction &&
             trace_.events[all[end].event].lane == first.lane &&
             trace_.events[all[end].event].correlation == first.correlation && first.correlation >= 0)
        ++end;
      if (ProfiledProgram* program = program_of(all[i].program))
        adopt_launch(*program, program->find(trace_.names[all[i].instruction]), i, end);
      i = end;
    }
    return adopted_;
  }

 private:
  /// Null where the profile lacks the program, or where it cannot be read.
  ProfiledProgram* program_of(std::uint32_t name) {
    const auto [known, is_new] = programs_.try_emplace(name);
    if (!is_new) return known->second.get();
    const auto held = std::find_if(trace_.programs.begin(), trace_.programs.end(),
                                   [&](const trace::Program& program) { return program.name == trace_.names[name]; });
    if (held == trace_.programs.end()) return nullptr;
    Result<Module> module = read_module(hlo_text(held->message), held->name, calls_);
    if (module) known->second = std::make_unique<ProfiledProgram>(std::move(*module));
    return known->second.get();
  }

  /// Events of one launch. What is no instruction is a part of the program that a graph replays.
  void adopt_launch(ProfiledProgram& program, std::optional<RunPlace> place, std::size_t from, std::size_t to) {
    if (place && program.at(*place).opcode != "call" && program.at(*place).opcode != "while") {
      for (std::size_t i = from; i < to; ++i) adopt_kernel(program, *place, trace_.program_events[i].event);
      return;
    }
    std::vector<Likeness> ran;
    for (std::size_t i = from; i < to; ++i) ran.push_back(likeness(trace_.program_events[i].event));
    const std::vector<RunPlace>& sequence = program.sequence();
    std::vector<Likeness>& planned = planned_[&program];
    if (planned.empty())
      for (const RunPlace& one : sequence) planned.push_back(likeness(program, one));
    std::vector<std::optional<std::size_t>> found = aligned(ran, planned);
    std::optional<std::size_t> last;                  // that a library ran
    std::map<std::size_t, std::uint32_t> operations;  // by the place in the sequence
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool library = ran[i].library != Likeness::Library::none;
      // Several kernels of one call.
      if (library && !found[i] && last && ran[i].library == planned[*last].library) found[i] = last;
      if (library && found[i]) last = found[i];
      if (!found[i]) continue;
      const RunPlace of = sequence[*found[i]];
      const std::uint32_t event = trace_.program_events[from + i].event;
      const auto [known, is_new] = operations.try_emplace(*found[i]);
      if (is_new) known->second = begun(program, of, trace_.events[event].start);
      attach(program, of, event, known->second, is_new);
    }
    call_.reset();
  }

  Likeness likeness(std::uint32_t event) {
    using Library = Likeness::Library;
    const std::string& name = trace_.name(trace_.events[event]);
    const std::string& category = vocabulary_.categories[vocabulary_.category(name).category].id;
    const std::string plain = name_of_kernel(name);
    Likeness out{trace_.names.id(plain), trace_.names.id(base_name(plain))};
    if (category == "attention") out.library = Library::attention;
    // The compiler's own products have names of instructions.
    if ((category == "matmul" || category == "convolution") && name.find("fusion") == std::string::npos)
      out.library = Library::product;
    return out;
  }
  Likeness likeness(ProfiledProgram& program, RunPlace place) {
    using Library = Likeness::Library;
    const std::string name = name_of_kernel(program.at(place).name);
    const Arithmetic& work = program.work(place);
    const bool product = program.at(place).call && !work.products.empty();
    return {trace_.names.id(name), trace_.names.id(base_name(name)),
            work.attention ? Library::attention
            : product      ? Library::product
                           : Library::none};
  }

  /// Several kernels may run one instruction; a kernel that runs again is a further call of it.
  void adopt_kernel(ProfiledProgram& program, RunPlace place, std::uint32_t event) {
    const bool same = call_ && program_ == &program && *call_ == place && lane_ == trace_.events[event].lane;
    const bool more = same && (fills(event) || kernels_.insert(trace_.events[event].name).second);
    if (!more) {
      operation_ = begun(program, place, trace_.events[event].start);
      program_ = &program;
      call_ = place;
      kernels_ = {trace_.events[event].name};
      lane_ = trace_.events[event].lane;
    }
    attach(program, place, event, operation_, !more);
  }

  /// Work counts with the first kernel of a call.
  void attach(ProfiledProgram& program, RunPlace place, std::uint32_t event, std::uint32_t operation, bool first) {
    ++adopted_;
    Event& kernel = trace_.events[event];
    if (first && kernel.bytes < Bytes(0)) {
      const Arithmetic& work = program.work(place);
      kernel.bytes = traffic(program.module(), program.module().computations[place.computation], program.at(place));
      if (kernel.flops < Flops(0)) kernel.flops = work.matrix() + work.element_wise;
    }
    if (kernel.parent == none) {
      kernel.parent = operation;
      return;
    }
    std::uint32_t& around = trace_.events[kernel.parent].parent;
    if (around == none && !kernel.graph) around = operation;
    if (around != operation) kernel.captured = operation;
  }

  bool fills(std::uint32_t event) const {
    return vocabulary_.categories[vocabulary_.category(trace_.name(trace_.events[event])).category].fills;
  }

  /// A call of an instruction: an operation in Trace::events.
  std::uint32_t begun(ProfiledProgram& program, RunPlace place, trace::Ticks start) {
    const auto [known, is_new] = named_.try_emplace({&program, place});
    if (is_new) known->second = named(program, place);
    Event operation = known->second;
    operation.start = start;
    trace_.events.push_back(operation);
    return static_cast<std::uint32_t>(trace_.events.size() - 1);
  }

  /// The operation of an instruction, inside of its scope.
  Event named(ProfiledProgram& program, RunPlace place) {
    const Instruction& at = program.at(place);
    if (lanes_ == none) {
      lanes_ = static_cast<std::uint32_t>(trace_.lanes.size());
      trace_.lanes.push_back({"programs", "", -1});
    }
    Event out{.lane = lanes_, .kind = trace::EventKind::operation};
    const std::string_view scope = at.op_name();
    const std::size_t slash = scope.rfind('/');
    std::string name(scope.empty() ? base_name(at.name) : scope.substr(slash == scope.npos ? 0 : slash + 1));
    std::string inputs = operands(program, place);
    const Arithmetic& work = program.work(place);
    if (work.attention) {
      const FusedAttention& of = *work.attention;
      constexpr double whole_gradient = 2.5;  // in forward passes; kernels of parts of it have no form
      if (!of.backward()) name = "attention";
      if (of.backward() && of.forward_passes == whole_gradient) name = "attention gradient";
      const std::vector<double> queries{of.batch, of.heads, of.queries, of.head_dim},
          keys{of.batch, of.kv_heads, of.keys, of.head_dim};
      inputs = listed({queries, keys, keys}, assay::name(of.query), of.causal);
    } else if (work.products.size() == 1) {
      const Product& of = work.products.front();
      name = "dot";
      std::vector<double> a{of.m, of.k}, b{of.k, of.n};
      if (of.batch > 1.0) a.insert(a.begin(), of.batch), b.insert(b.begin(), of.batch);
      inputs = listed({a, b}, of.format ? assay::name(*of.format) : "");
    }
    out.name = trace_.names.id(name);
    out.inputs = trace_.names.id(inputs);
    if (!scope.empty()) out.parent = mark(std::string(scope));
    return out;
  }

  std::string operands(const ProfiledProgram& program, RunPlace place) const {
    std::vector<std::vector<double>> dims;
    for (const std::uint32_t operand : program.at(place).operands) {
      const Shape& shape = program.module().computations[place.computation].instructions[operand].shape;
      if (shape.element) dims.emplace_back(shape.dims.begin(), shape.dims.end());
    }
    return listed(dims, "");
  }

  std::uint32_t mark(const std::string& scope) {
    const auto [known, is_new] = scopes_.try_emplace(scope, static_cast<std::uint32_t>(trace_.events.size()));
    if (is_new)
      trace_.events.push_back({.name = trace_.names.id(scope), .lane = lanes_, .kind = trace::EventKind::mark});
    return known->second;
  }

  trace::Trace& trace_;
  const trace::Vocabulary& vocabulary_;
  const Calls& calls_;
  std::map<std::uint32_t, std::unique_ptr<ProfiledProgram>> programs_;
  std::map<std::pair<const ProfiledProgram*, RunPlace>, Event> named_;
  std::map<std::string, std::uint32_t> scopes_;
  std::map<const ProfiledProgram*, std::vector<Likeness>> planned_;
  std::int64_t adopted_ = 0;
  std::uint32_t lanes_ = none;
  // The call that is being adopted.
  const ProfiledProgram* program_ = nullptr;
  std::optional<RunPlace> call_;
  std::set<std::uint32_t> kernels_;  ///< their names
  std::uint32_t lane_ = 0, operation_ = none;
};

}  // namespace

std::int64_t adopt_programs(trace::Trace& trace, const trace::Vocabulary& vocabulary, const Calls& calls) {
  return Adoption(trace, vocabulary, calls).adopt();
}

std::string main_program(const trace::Trace& trace, std::int64_t device) {
  std::map<std::uint32_t, double> times;
  for (const trace::ProgramEvent& one : trace.program_events) {
    const Event& event = trace.events[one.event];
    if (trace.lanes[event.lane].device == device) times[one.program] += static_cast<double>(event.duration);
  }
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == times.end()) return "";
  for (const trace::Program& program : trace.programs)
    if (program.name == trace.names[most->first]) return hlo_text(program.message);
  return "";
}

}  // namespace assay::hlo
