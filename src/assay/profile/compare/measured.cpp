#include "assay/profile/compare/measured.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "assay/base/text.h"
#include "assay/profile/trace/work.h"

namespace assay::compare {
namespace {

using trace::Event;
using trace::PlacedEvent;
using trace::Ticks;

/// Events of a step, with the stretch of time that it takes.
struct Window {
  std::string name;
  std::vector<PlacedEvent> events;
  Ticks begin = 0, end = 0;
};

Window median_step(const trace::Trace& trace, const trace::Vocabulary& vocabulary, std::int64_t device,
                   const std::vector<PlacedEvent>& events) {
  trace::DeviceSteps found = trace::device_steps(trace, vocabulary, device, events);
  if (found.steps.empty()) {
    Window all{"", events, trace.events[events.front().event].start, 0};
    for (const PlacedEvent& placed : events) all.end = std::max(all.end, trace.events[placed.event].end());
    return all;
  }
  std::vector<std::size_t> by_time(found.steps.size());
  for (std::size_t i = 0; i < by_time.size(); ++i) by_time[i] = i;
  std::stable_sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
    return found.steps[a].end - found.steps[a].begin < found.steps[b].end - found.steps[b].begin;
  });
  trace::StepEvents& step = found.steps[by_time[(by_time.size() - 1) / 2]];
  return {std::move(step.name), std::move(step.events), step.begin, step.end};
}

/// Gives each moment of a step to one event, or to a gap.
class Sweep {
 public:
  Sweep(const trace::Trace& trace, const trace::Vocabulary& vocabulary, const Window& window)
      : trace_(trace), window_(window), alone(window.events.size()), late(window.events.size()) {
    std::vector<std::tuple<Ticks, bool, std::size_t>> turns;  // ends before starts
    for (std::size_t i = 0; i < window.events.size(); ++i) {
      const Event& event = trace.events[window.events[i].event];
      const Ticks start = std::max(event.start, window.begin), end = std::min(event.end(), window.end);
      if (end <= start) continue;
      turns.emplace_back(start, true, i);
      turns.emplace_back(end, false, i);
    }
    std::sort(turns.begin(), turns.end());
    Ticks at = window.begin;
    for (const auto& [time, starts, i] : turns) {
      if (time > at) give(at, time, i);
      at = time;
      auto& running = running_[static_cast<std::size_t>(vocabulary.categories[window.events[i].category].work_class)];
      const std::pair<Ticks, std::size_t> key{trace.events[window.events[i].event].start, i};
      if (starts)
        running.insert(key);
      else
        running.erase(key);
    }
    if (window.end > at) other_gaps += window.end - at;
  }

 private:
  void give(Ticks from, Ticks to, std::size_t next) {
    for (const auto& running : running_)
      if (!running.empty()) return void(alone[running.begin()->second] += to - from);
    const Event& event = trace_.events[window_.events[next].event];
    const Event* launch = trace::launch_of(trace_, event);
    const bool is_late = launch && launch->start > from;
    (is_late ? host_gaps : other_gaps) += to - from;
    if (is_late) late[next] += to - from;
  }

  const trace::Trace& trace_;
  const Window& window_;
  std::set<std::pair<Ticks, std::size_t>> running_[3];  ///< by class of work, the first to begin first

 public:
  std::vector<Ticks> alone, late;  ///< by event
  Ticks host_gaps = 0, other_gaps = 0;
};

class Calls {
 public:
  Calls(const trace::Trace& trace, const trace::Vocabulary& vocabulary) : trace_(trace), vocabulary_(vocabulary) {}

  void add(const PlacedEvent& placed, Ticks alone, Ticks late) {
    const Event& event = trace_.events[placed.event];
    const std::uint32_t operation = called_operation(event);
    const std::uint32_t replay = event.captured != trace::none ? event.parent : trace::none;
    std::size_t at = calls_.size();
    const trace::Category& category = vocabulary_.categories[placed.category];
    // Collectives and copies stand for themselves, whatever starts them.
    const bool grouped = operation != trace::none && category.work_class != trace::WorkClass::communication;
    if (grouped) at = index_.try_emplace({operation, replay}, at).first->second;
    if (at == calls_.size()) calls_.push_back(begun(operation, event));
    MeasuredCall& call = calls_[at];
    if (call.kernels++ == 0 || event.duration > longest_[at]) {
      call.kernel = trace_.name(event);
      call.category = placed.category;
      call.work = category.work_class;
      if (operation == trace::none) call.label = call.kernel;
      longest_.resize(calls_.size());
      longest_[at] = event.duration;
    }
    if (call.kernels == 1) call.started = call.ended = event.start;
    call.ended = std::max(call.ended, event.end());
    if (const Event* launch = trace::launch_of(trace_, event); launch && !call.launched) {
      call.launched = launch->start;
      call.thread = launch->lane;
    }
    call.backward |= placed.recomputed;
    call.handover |= placed.kind == "send-receive";
    call.duration += event.duration;
    call.alone += alone;
    call.late += late;
  }

  std::vector<MeasuredCall> finish() { return std::move(calls_); }

 private:
  /// The call that an event belongs to: products and attention are made of inner operations, others are what is
  /// innermost.
  std::uint32_t called_operation(const Event& event) {
    const std::uint32_t inner = trace::operation_of(trace_, event);
    for (std::uint32_t at = inner; at != trace::none;
         at = trace::enclosing(trace_, trace_.events[at].parent, trace::EventKind::operation))
      if (facts_of(at).kind != MeasuredCall::Kind::other) return at;
    return inner;
  }

  MeasuredCall begun(std::uint32_t operation, const Event& event) {
    MeasuredCall call;
    call.known = operation != trace::none;
    if (!call.known) {
      call.names = lower_case(trace_.name(event));
      call.fused = vocabulary_.role(trace_.name(event)) == trace::MarkRole::compiled;
      return call;
    }
    static_cast<OperationFacts&>(call) = facts_of(operation);
    call.label = trace_.name(trace_.events[operation]);
    call.names = lower_case(call.label);
    call.fused = vocabulary_.role(call.label) == trace::MarkRole::compiled ||
                 vocabulary_.role(trace_.name(event)) == trace::MarkRole::compiled;
    for (std::uint32_t at = trace_.events[operation].parent; at != trace::none; at = trace_.events[at].parent) {
      const std::string& name = trace_.name(trace_.events[at]);
      call.backward |= vocabulary_.role(name) == trace::MarkRole::backward;
      // Other names around it, of regions and graphs, say nothing about what is computed.
      if (trace_.events[at].kind == trace::EventKind::operation && name.find("::") != std::string::npos)
        call.names += " " + lower_case(name);
    }
    return call;
  }

  const OperationFacts& facts_of(std::uint32_t operation) {
    const Event& event = trace_.events[operation];
    const auto [known, is_new] = facts_.try_emplace({event.name, event.inputs});
    if (is_new) known->second = read_facts(event);
    return known->second;
  }

  OperationFacts read_facts(const Event& event) const {
    OperationFacts out;
    if (event.inputs == trace::none) return out;
    const std::vector<trace::InputTensor> inputs = trace::parse_inputs(trace_.names[event.inputs]);
    out.shapes = trace::shapes_text(inputs);
    for (const trace::InputTensor& input : inputs) {
      if (input.listed > out.elements) out.elements = input.listed, out.width = 0.0;  // what is joined
      double elements = input.dims.empty() ? 0.0 : 1.0;
      for (const std::int64_t size : input.dims) elements *= static_cast<double>(size);
      if (elements <= out.elements) continue;
      out.elements = elements;
      out.width = static_cast<double>(input.dims.back());
    }
    const trace::OperationForm* form = vocabulary_.operation(trace_.name(event));
    if (!form) return out;
    const auto work = trace::work_of(*form, inputs, vocabulary_);
    if (!work || !work->matrix) return out;
    out.flops = work->flops;
    if (form->form == trace::Form::product && form->bias >= 0) {
      // Programs count a bias with what follows: without it, 2 k of 2 k + 1 FLOP an element are left.
      const auto inner = static_cast<double>(inputs[static_cast<std::size_t>(form->a)].dims.back());
      if (!inputs[static_cast<std::size_t>(form->bias)].dims.empty()) out.flops *= 2.0 * inner / (2.0 * inner + 1.0);
    }
    out.format = work->format;
    out.kind = form->form == trace::Form::product              ? MeasuredCall::Kind::product
               : form->form == trace::Form::attention          ? MeasuredCall::Kind::attention
               : form->form == trace::Form::attention_gradient ? MeasuredCall::Kind::attention_gradient
                                                               : MeasuredCall::Kind::other;
    const auto size = [&](std::int64_t place) { return inputs[static_cast<std::size_t>(place)].dims; };
    if (out.kind == MeasuredCall::Kind::product) {
      out.dims = {size(form->a), size(form->b)};
      if (form->transposed && out.dims[1].size() >= 2) std::swap(out.dims[1].back(), *(out.dims[1].end() - 2));
    } else if (out.kind != MeasuredCall::Kind::other) {
      out.dims = {size(form->query), size(form->key)};
      if (form->sequence_first)
        for (std::vector<std::int64_t>& dims : out.dims) std::swap(dims[1], dims[2]);
      out.attention = form->kernel;
      out.causal = work->causal;
      out.to_all = work->causal && !form->windows;
    }
    if (out.kind == MeasuredCall::Kind::attention) {
      // A further tensor of four dimensions beside queries, keys and values is a mask.
      // With one query, it only leaves out what a cache does not hold yet.
      const auto tensors = std::count_if(inputs.begin(), inputs.end(),
                                         [](const trace::InputTensor& input) { return input.dims.size() == 4; });
      const std::vector<std::int64_t>& queries = inputs[static_cast<std::size_t>(form->query)].dims;
      out.masked = tensors > 3 && queries[form->sequence_first ? 1 : 2] > 1;
    }
    return out;
  }

  const trace::Trace& trace_;
  const trace::Vocabulary& vocabulary_;
  std::vector<MeasuredCall> calls_;
  std::vector<Ticks> longest_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, OperationFacts> facts_;
};

}  // namespace

MeasuredStep measured_step(const trace::Trace& trace, const trace::Vocabulary& vocabulary, std::int64_t device,
                           const Waits& waits) {
  MeasuredStep out;
  const auto all = trace::device_events(trace, vocabulary);
  const auto found = all.find(device);
  if (found == all.end() || found->second.empty()) return out;
  const Window window = median_step(trace, vocabulary, device, found->second);
  const Sweep sweep(trace, vocabulary, window);
  Calls calls(trace, vocabulary);
  for (std::size_t i = 0; i < window.events.size(); ++i) calls.add(window.events[i], sweep.alone[i], sweep.late[i]);
  out.calls = calls.finish();
  if (!waits.empty()) {
    // Collectives are calls of their own, in the order of their events.
    std::size_t at = 0;
    for (std::size_t i = 0; i < window.events.size(); ++i) {
      const PlacedEvent& placed = window.events[i];
      if (vocabulary.categories[placed.category].work_class != trace::WorkClass::communication) continue;
      while (out.calls[at].work != trace::WorkClass::communication) ++at;
      if (const auto wait = waits.find(placed.event); wait != waits.end())
        out.calls[at].waited = std::min(wait->second, out.calls[at].alone);
      ++at;
    }
  }
  // A call that starts many kernels replays a graph, even where the file does not say so of them.
  std::unordered_map<const Event*, std::int64_t> started;
  const auto launch = [&](const PlacedEvent& placed) { return trace::launch_of(trace, trace.events[placed.event]); };
  for (const PlacedEvent& placed : window.events) ++started[launch(placed)];
  started[nullptr] = 0;
  constexpr std::int64_t many = 8;
  const auto replayed = std::count_if(window.events.begin(), window.events.end(), [&](const PlacedEvent& placed) {
    return trace.events[placed.event].graph || started[launch(placed)] >= many;
  });
  out.replayed = replayed > 0;
  out.replayed_share = static_cast<double>(replayed) / static_cast<double>(window.events.size());
  out.name = window.name;
  out.total = window.end - window.begin;
  out.busy = window.end - trace.events[found->second.front().event].start;
  out.host_gaps = sweep.host_gaps;
  out.other_gaps = sweep.other_gaps;
  return out;
}

}  // namespace assay::compare
