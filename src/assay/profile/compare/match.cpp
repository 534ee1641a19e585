#include "assay/profile/compare/match.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

namespace assay::compare {
namespace {

using Kind = MeasuredCall::Kind;
using Place = std::uint32_t;

/// Equal but for rounding.
bool alike(Flops a, Flops b) { return std::abs((a - b).value()) <= 1e-6 * std::max(a, b).value(); }

bool is_anchor(program::Op op) { return op == program::Op::product || program::is_attention(op); }
Kind kind_of(program::Op op) {
  return op == program::Op::product     ? Kind::product
         : op == program::Op::attention ? Kind::attention
                                        : Kind::attention_gradient;
}

/// FLOP to three digits more than shapes can differ by.
std::int64_t rounded(Flops flops) {
  return static_cast<std::int64_t>(std::llround(std::log2(std::max(flops.value(), 1.0)) * 4096.0));
}

/// Products and attention: what order and shapes fix.
class Anchors {
 public:
  Anchors(const MeasuredStep& measured, const Prediction& prediction, Matching& out)
      : measured_(measured), prediction_(prediction), out_(out), state_(out.order.size()) {}

  void find() {
    take_in_order(true);
    take_in_segments();
    take_in_order(false);
    take_parts();
  }

 private:
  /// What is left of a predicted product or of attention.
  struct State {
    bool taken = false, in_parts = false;
    Flops taken_flops;
  };
  struct Key {
    Kind kind;
    std::int64_t size;
    bool backward;
    auto operator<=>(const Key&) const = default;
  };

  const PredictedLine& line_at(Place place) const { return prediction_.lines[out_.order[place]]; }
  bool is_backward(Place place) const { return line_at(place).phase == program::Phase::backward; }
  bool is_open(std::size_t call) const {
    return measured_.calls[call].kind != Kind::other && out_.calls[call].places.empty();
  }
  void take(std::size_t call, Place place) {
    out_.calls[call].places.push_back(place);
    state_[place].taken = true;
  }
  // Attention is found by its kind: what of a square is masked, and is counted, differs between programs.
  static std::int64_t size_of(Kind kind, Flops flops) { return kind == Kind::product ? rounded(flops) : 0; }

  /// Calls and steps of equal kind and FLOP, each with each in order: where there are as many of both in a phase, or
  /// whatever is left.
  void take_in_order(bool as_many) {
    std::map<Key, std::deque<Place>> places;
    std::map<Key, std::size_t> calls;
    for (Place place = 0; place < out_.order.size(); ++place) {
      const PredictedLine& line = line_at(place);
      if (!is_anchor(line.op) || state_[place].taken) continue;
      const Kind kind = kind_of(line.op);
      places[{kind, size_of(kind, line.flops), as_many && is_backward(place)}].push_back(place);
    }
    const auto key_of = [&](const MeasuredCall& call) {
      return Key{call.kind, size_of(call.kind, call.flops), as_many && call.backward};
    };
    for (std::size_t i = 0; i < measured_.calls.size(); ++i)
      if (is_open(i)) ++calls[key_of(measured_.calls[i])];
    std::map<Key, std::deque<Place>> usable;
    for (auto& [key, list] : places)
      if (!as_many || calls[key] == list.size()) usable.emplace(key, std::move(list));
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      if (!is_open(i)) continue;
      const auto found = usable.find(key_of(measured_.calls[i]));
      if (found == usable.end() || found->second.empty()) continue;
      take(i, found->second.front());
      found->second.pop_front();
    }
  }

  /// Between those, first products that are the sum of several, which no single one equals, then the others.
  void take_in_segments() {
    const std::vector<Segment> segments = segments_of();
    for (const bool sums : {true, false})
      for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
        if (!is_open(i)) continue;
        const std::vector<Place> near = open_places(segments[i], measured_.calls[i]);
        const auto single = std::find_if(near.begin(), near.end(), [&](Place place) {
          const PredictedLine& line = line_at(place);
          return kind_of(line.op) == measured_.calls[i].kind &&
                 (line.op != program::Op::product || alike(line.flops, measured_.calls[i].flops));
        });
        if (!sums && single != near.end()) take(i, *single);
        if (sums && single == near.end() && measured_.calls[i].kind == Kind::product) take_sum(i, near);
      }
  }

  /// The places of anchors on both sides of each call.
  struct Segment {
    Place from = 0, to = 0;
  };
  std::vector<Segment> segments_of() const {
    std::vector<Segment> out(measured_.calls.size());
    Place at = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out_.calls[i].places.empty()) at = out_.calls[i].places.front();
      out[i].from = at;
    }
    at = static_cast<Place>(out_.order.size());
    for (std::size_t i = out.size(); i-- > 0;) {
      if (!out_.calls[i].places.empty()) at = out_.calls[i].places.front();
      out[i].to = at;
    }
    return out;
  }
  std::vector<Place> open_places(const Segment& segment, const MeasuredCall& call) const {
    constexpr Place slack = 4, widest = 400;
    const Place low = std::min(segment.from, segment.to), high = std::max(segment.from, segment.to);
    const Place first = low > slack ? low - slack : 0;
    const Place last = std::min<Place>({static_cast<Place>(out_.order.size()), high + slack, first + widest});
    std::vector<Place> out;
    for (Place place = first; place < last; ++place)
      if (is_anchor(line_at(place).op) && !state_[place].taken && (!call.known || call.backward == is_backward(place)))
        out.push_back(place);
    return out;
  }

  /// Two to four products that follow each other, of one tensor with several weights: both of a pass, or the gradients
  /// of weights, or those of activations.
  void take_sum(std::size_t call, const std::vector<Place>& near) {
    const Flops wanted = measured_.calls[call].flops;
    for (const bool of_weights : {false, true}) {
      std::vector<Place> list;
      for (const Place place : near)
        if (line_at(place).op == program::Op::product && line_at(place).weight_gradient == of_weights &&
            !state_[place].taken)
          list.push_back(place);
      constexpr std::size_t most = 4;
      for (std::size_t first = 0; first < list.size(); ++first) {
        Flops sum = line_at(list[first]).flops;
        for (std::size_t n = 1; n < most && first + n < list.size(); ++n) {
          sum += line_at(list[first + n]).flops;
          if (!alike(sum, wanted)) continue;
          for (std::size_t k = 0; k <= n; ++k) take(call, list[first + k]);
          return;
        }
      }
    }
  }

  /// Parts of a product, for instance one for each expert or piece of the vocabulary, and the products of attention
  /// that is not one kernel: to the nearest step that is not complete.
  void take_parts() {
    const std::vector<Segment> segments = segments_of();
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      const MeasuredCall& call = measured_.calls[i];
      if (!is_open(i) || call.kind != Kind::product) continue;
      constexpr Place near = 24;
      const Place from = segments[i].from > near ? segments[i].from - near : 0;
      const Place to = std::min<Place>(static_cast<Place>(out_.order.size()), segments[i].from + near);
      for (Place place = from; place < to; ++place)
        if (may_be_part(call, place)) {
          state_[place].in_parts = true;
          state_[place].taken_flops += call.flops;
          take(i, place);
          break;
        }
    }
  }
  bool may_be_part(const MeasuredCall& call, Place place) const {
    const PredictedLine& line = line_at(place);
    const State& state = state_[place];
    if (!is_anchor(line.op) || (state.taken && !state.in_parts) || call.backward != is_backward(place)) return false;
    constexpr double least = 1e-3, most = 1.02;  // smaller ones are something else; shapes may be padded
    if (call.flops < least * line.flops) return false;
    if (program::is_attention(line.op)) return is_batched(call);
    return state.taken_flops + call.flops <= most * line.flops;
  }
  /// Whether a product is one of many at once, as those of heads are: its first operand has three dimensions.
  static bool is_batched(const MeasuredCall& call) {
    const std::size_t end = std::min(call.shapes.size(), call.shapes.find(']'));
    return std::count(call.shapes.begin(), call.shapes.begin() + static_cast<std::ptrdiff_t>(end), ',') == 2;
  }

  const MeasuredStep& measured_;
  const Prediction& prediction_;
  Matching& out_;
  std::vector<State> state_;
};

/// Kernels between products and attention.
class Between {
 public:
  Between(const MeasuredStep& measured, const Prediction& prediction, const trace::Vocabulary& vocabulary,
          Matching& out)
      : measured_(measured), prediction_(prediction), vocabulary_(vocabulary), out_(out), used_(out.order.size(), 0) {
    for (const PredictedLine& line : prediction.lines) signs_.push_back(vocabulary.step_signs(program::name(line.op)));
  }

  void find() {
    std::vector<Place> after(measured_.calls.size() + 1, static_cast<Place>(out_.order.size()));
    for (std::size_t i = measured_.calls.size(); i-- > 0;)
      after[i] = is_anchored(i) ? out_.calls[i].places.front() : after[i + 1];
    Place before = 0;
    std::optional<Place> last;
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      if (is_anchored(i)) {
        before = out_.calls[i].places.back();
        last = before;
        continue;
      }
      const MeasuredCall& call = measured_.calls[i];
      if (call.work == trace::WorkClass::communication || call.kind != Kind::other || is_update(call)) continue;
      out_.calls[i] = best(call, {before, after[i + 1]}, last);
      for (const Place place : out_.calls[i].places) ++used_[place];
      if (!out_.calls[i].places.empty()) last = out_.calls[i].places.front();
    }
  }

  bool is_update(const MeasuredCall& call) const { return vocabulary_.categories[call.category].optimizer; }

 private:
  struct Segment {
    Place from = 0, to = 0;  ///< anchors on both sides
  };
  struct Scored {
    Place place = 0;
    double score = 0;
    bool by_sign = false;
  };

  bool is_anchored(std::size_t call) const {
    return measured_.calls[call].kind != Kind::other && !out_.calls[call].places.empty();
  }
  static bool any(const std::string& text, const std::vector<std::string>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return text.find(part) != std::string::npos; });
  }

  /// How well a call's largest tensor fits those of a step: 1 equal, 0.5 half or twice; nothing where it does not.
  static std::optional<double> size_fit(const MeasuredCall& call, const PredictedLine& line) {
    if (!(call.elements > 0.0)) return 0.25;  // not known
    if (line.elements.empty()) {
      // Of the bytes of all tensors: two for each element, in most cases. Attention may repeat its keys for all heads.
      const double all = line.bytes.value() / 2.0;
      if (is_anchor(line.op) || call.elements * 8.0 < all) return 0.25;
      return call.elements <= all ? std::optional(0.5) : std::nullopt;
    }
    double most = 0.0;
    for (const double elements : line.elements) {
      if (elements == call.elements) return 1.0;
      most = std::max(most, elements);
    }
    for (const double elements : line.elements)
      if (elements == 2.0 * call.elements || 2.0 * elements == call.elements) return 0.5;
    constexpr double small = 1.0 / 32.0;  // what remains of rows that were summed up
    if (call.elements <= small * most) return 0.1;
    return std::nullopt;
  }

  std::optional<Scored> score(const MeasuredCall& call, Place place, const Segment& segment,
                              std::optional<Place> last) const {
    const PredictedLine& line = prediction_.lines[out_.order[place]];
    const trace::StepSigns* signs = signs_[out_.order[place]];
    if (!signs || line.phase == program::Phase::update || any(call.names, signs->without)) return std::nullopt;
    if (call.known && call.backward != (line.phase == program::Phase::backward)) return std::nullopt;
    const bool by_sign = any(call.names, signs->signs), also = any(call.names, signs->also);
    if (!by_sign && !also) return std::nullopt;
    const Place low = std::min(segment.from, segment.to), high = std::max(segment.from, segment.to);
    const double away = !prediction_.ordered ? 0.0
                        : place < low        ? static_cast<double>(low - place)
                        : place > high       ? static_cast<double>(place - high)
                                             : 0.0;
    const auto fit = size_fit(call, line);
    const bool here = away == 0.0;
    if (signs->exact && (!here || !fit || *fit < (line.elements.empty() ? 0.25 : 1.0))) return std::nullopt;
    if (!by_sign && !(fit && (*fit >= 0.5 || here))) return std::nullopt;
    Scored out{place, 0.0, by_sign};
    // The same operations make other steps, too: a sign says little where tensors have other sizes.
    const double sign = by_sign && fit ? 6.0 : 0.0;
    out.score = sign + (also ? 2.0 : 0.0) + 3.0 * fit.value_or(0.0) - 0.6 * away;
    // Norms of heads and of the whole width may have as many elements: then rows tell them apart.
    const bool norm = line.op == program::Op::norm || line.op == program::Op::norm_grad;
    if (norm && fit && *fit == 1.0 && call.width * line.width > 0.0 && call.width != line.width) out.score -= 3.0;
    if (last && *last == place)
      out.score += 1.0;
    else if (!prediction_.ordered && used_[place] > 0)
      out.score -= 0.5;  // the next of several like it
    if (is_anchor(line.op)) out.score -= 1.5;
    return out;
  }

  /// The step that fits best and, of a kernel that was fused, the best of each kind that it has a sign of.
  CallMatch best(const MeasuredCall& call, const Segment& segment, std::optional<Place> last) const {
    constexpr Place reach = 12, widest = 240;
    const Place low = std::min(segment.from, segment.to), high = std::max(segment.from, segment.to);
    const Place from = low > reach ? low - reach : 0;
    const Place to = std::min<Place>({static_cast<Place>(out_.order.size()), high + reach + 1, from + widest});
    std::optional<Scored> top;
    std::map<std::string_view, Scored> kinds;
    for (Place place = from; place < to; ++place) {
      auto scored = score(call, place, segment, last);
      if (!scored) continue;
      if (call.fused && used_[place] > 0) scored->score -= 1.0;  // another kernel does it already
      if (!top || scored->score > top->score) top = scored;
      if (!call.fused || !scored->by_sign) continue;
      const program::Op op = prediction_.lines[out_.order[place]].op;
      const auto [known, is_new] = kinds.try_emplace(program::name(op), *scored);
      if (!is_new && scored->score > known->second.score) known->second = *scored;
    }
    CallMatch out;
    if (!top) return out;
    if (kinds.size() > 1)
      for (const auto& [kind, scored] : kinds) out.places.push_back(scored.place);
    else
      out.places.push_back(top->place);
    out.around = out.places.size() == 1 && prediction_.lines[out_.order[out.places.front()]].op == program::Op::product;
    return out;
  }

  const MeasuredStep& measured_;
  const Prediction& prediction_;
  const trace::Vocabulary& vocabulary_;
  Matching& out_;
  std::vector<const trace::StepSigns*> signs_;  ///< of each line
  std::vector<int> used_;                       ///< kernels of each place
};

/// Without shapes, kernels of a category are all steps of the classes that it stands for.
void match_by_class(const MeasuredStep& measured, const Prediction& prediction, const trace::Vocabulary& vocabulary,
                    Matching& out) {
  enum { products, attention, update, rest, kinds };
  std::vector<std::vector<Place>>& places = out.groups;
  places.resize(kinds);
  for (Place place = 0; place < out.order.size(); ++place) {
    const program::Op op = prediction.lines[out.order[place]].op;
    places[op == program::Op::product  ? products
           : program::is_attention(op) ? attention
           : op == program::Op::update ? update
                                       : rest]
        .push_back(place);
  }
  const auto is = [&](const MeasuredCall& call, std::string_view id) {
    return vocabulary.categories[call.category].id == id;
  };
  const bool updates = std::any_of(measured.calls.begin(), measured.calls.end(), [&](const MeasuredCall& call) {
    return vocabulary.categories[call.category].optimizer;
  });
  // An update that a compiler fused cannot be told from other element-wise kernels.
  if (!updates) {
    places[rest].insert(places[rest].end(), places[update].begin(), places[update].end());
    places[update].clear();
  }
  for (std::size_t i = 0; i < measured.calls.size(); ++i) {
    const MeasuredCall& call = measured.calls[i];
    if (call.work != trace::WorkClass::computation) continue;
    out.calls[i].group = is(call, "matmul")                               ? products
                         : is(call, "attention")                          ? attention
                         : vocabulary.categories[call.category].optimizer ? update
                                                                          : rest;
  }
}

/// The number near a ratio of times by which the counts of kernels are divisible: each step runs the same ones.
double steps_by_counts(const MeasuredStep& measured, double ratio) {
  constexpr double most_off = 1.4;
  std::map<std::string_view, std::pair<std::int64_t, double>> counts;  // how often, and how long
  for (const MeasuredCall& call : measured.calls) {
    auto& [count, time] = counts[call.kernel];
    count += call.kernels;
    time += static_cast<double>(call.duration);
  }
  double best = ratio, most = 0.0;
  for (double steps = std::ceil(ratio / most_off); steps <= ratio * most_off; ++steps) {
    double divisible = 0.0;
    for (const auto& [name, of] : counts)
      if (std::fmod(static_cast<double>(of.first), std::max(1.0, steps)) == 0.0) divisible += of.second;
    const bool nearer = std::abs(std::log(steps / ratio)) < std::abs(std::log(best / ratio));
    constexpr double alike = 0.02;
    if (divisible > (1.0 + alike) * most || (divisible > (1.0 - alike) * most && nearer)) {
      best = steps;
      most = std::max(most, divisible);
    }
  }
  return best;
}

/// How many predicted steps a profile without marks holds: by its attention, of which each layer has one, by FLOP of
/// its products, or by the time of its kernels where it does not tell what they compute.
double steps_held(const MeasuredStep& measured, const Prediction& prediction, bool by_class) {
  Flops measured_flops, predicted_flops;
  double measured_layers = 0, predicted_layers = 0;
  trace::Ticks computing = 0;
  for (const MeasuredCall& call : measured.calls) {
    if (call.work == trace::WorkClass::computation) computing += call.alone;
    if (call.kind == Kind::product) measured_flops += call.flops;
    if (call.kind == Kind::attention && !call.backward) ++measured_layers;
  }
  Seconds kernels;
  for (const PredictedLine& line : prediction.lines) {
    const auto runs = static_cast<double>(line.runs);
    kernels += runs * line.time;
    if (line.op == program::Op::product) predicted_flops += runs * line.flops;
    if (line.op == program::Op::attention && line.phase == program::Phase::forward) predicted_layers += runs;
  }
  if (by_class) return kernels > Seconds() ? steps_by_counts(measured, trace::seconds(computing) / kernels) : 1.0;
  if (measured_layers * predicted_layers > 0.0) return measured_layers / predicted_layers;
  return predicted_flops > Flops() ? measured_flops / predicted_flops : 1.0;
}

}  // namespace

Matching match(const MeasuredStep& measured, const Prediction& prediction, const trace::Vocabulary& vocabulary) {
  Matching out;
  double unknown = 0, known = 0;
  for (const MeasuredCall& call : measured.calls) {
    if (call.kind == Kind::product) known += static_cast<double>(call.duration);
    if (call.kind == Kind::other && vocabulary.categories[call.category].id == "matmul")
      unknown += static_cast<double>(call.duration);
  }
  out.by_class = unknown >= known;
  if (measured.name.empty() && !prediction.order.empty()) {
    constexpr double most_places = 4e6;
    const double most = std::max(1.0, most_places / static_cast<double>(prediction.order.size()));
    const double ratio = steps_held(measured, prediction, out.by_class);
    out.steps = static_cast<std::int64_t>(std::llround(std::clamp(ratio, 1.0, most)));
  }
  for (std::int64_t step = 0; step < out.steps; ++step)
    out.order.insert(out.order.end(), prediction.order.begin(), prediction.order.end());
  out.calls.resize(measured.calls.size());
  if (out.by_class) {
    match_by_class(measured, prediction, vocabulary, out);
    return out;
  }
  Anchors(measured, prediction, out).find();
  Between between(measured, prediction, vocabulary, out);
  between.find();
  std::vector<Place>& updates = out.groups.emplace_back();
  for (Place place = 0; place < out.order.size(); ++place)
    if (prediction.lines[out.order[place]].op == program::Op::update) updates.push_back(place);
  for (std::size_t i = 0; i < measured.calls.size(); ++i)
    if (between.is_update(measured.calls[i])) out.calls[i].group = 0;
  return out;
}

}  // namespace assay::compare
