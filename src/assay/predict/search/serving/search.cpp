#include "assay/predict/search/serving/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <string>

#include "assay/base/parallel.h"
#include "assay/predict/search/divisors.h"
#include "assay/predict/serving/bounds.h"

namespace assay::search {
namespace {

/// Sizes that heads, widths and experts allow.
struct Limits {
  std::int64_t heads = 0, width = 0, experts = 0;
};

Limits limits_of(const model::Transformer& model) {
  Limits limits;
  for (const model::Layer& layer : model.decoder.kinds) {
    if (layer.attention) limits.heads = std::gcd(limits.heads, layer.attention->heads);
    if (!layer.feed_forward) continue;
    limits.width = std::gcd(limits.width, layer.feed_forward->width);
    if (layer.feed_forward->experts > 0) limits.experts = std::gcd(limits.experts, layer.feed_forward->experts);
  }
  return limits;
}

class ServingSearcher {
 public:
  ServingSearcher(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                  const ServingChoices& choices, ServingGoal goal, serving::KnownProfiles& profiles)
      : question_(question),
        cluster_(cluster),
        choices_(choices),
        goal_(goal),
        profiles_(profiles),
        limits_(limits_of(*question.setup.model)),
        linker_(cluster, question.setup.collectives ? &*question.setup.collectives : nullptr,
                training::routing_of(*question.setup.model, question.setup.dispatch)) {}

  Result<ServingSearch> run() {
    // Strategies whose weights alone do not fit are tried only if no other one fits: the closest is one of them.
    const serving::ServingProfile one = profiles_.decode(serving::ServingStrategy{});
    all_weights_ = question_.weight_scale * one.weights;
    if (goal_ >= ServingGoal::meets) floors_.emplace(question_.setup, one, profiles_.prefill({}).profile);
    serving::ServingMemoryOf<Plain> runtime;
    serving::add_runtime(Plain{}, question_.setup.effects.memory, {question_.capacity}, runtime);
    left_ = question_.capacity - runtime.runtime();
    bool any = enumerate(true);
    price_all();
    if (any && !found_.fits && goal_ == ServingGoal::best) {
      enumerate(false);
      price_all();
    }
    if (!any)
      return fail("strategy",
                  fmt::format("{} does not multiply to {}", given_text(),
                              cluster_.chips() == 1 ? "one chip" : fmt::format("{} chips", cluster_.chips())),
                  "--tp x --weights-2d x --pp x --dp must equal the chips, and --ep divide --dp, or --tp x --dp with "
                  "--ep-over tp; leave one of them out to have it chosen");
    finish_front();
    return std::move(found_);
  }

 private:
  /// The fixed choices as options: "--tp 4 --dp 3".
  std::string given_text() const {
    std::string text;
    const auto add = [&](std::string_view option, const std::optional<std::int64_t>& n) {
      if (n) text += fmt::format("{}--{} {}", text.empty() ? "" : " ", option, *n);
    };
    add("tp", choices_.tensor);
    add("weights-2d", choices_.second);
    add("pp", choices_.pipeline);
    add("dp", choices_.data);
    add("ep", choices_.expert);
    return text;
  }

  /// Lists the shardings whose weights may fit, or those whose cannot; whether there are any of either.
  bool enumerate(bool may_fit) {
    const std::int64_t chips = cluster_.chips();
    bool any = false;
    for (std::int64_t tensor : divisors(chips)) {
      if (choices_.tensor ? *choices_.tensor != tensor
                          : (limits_.heads > 0 && limits_.heads % tensor != 0) ||
                                (limits_.width > 0 && limits_.width % tensor != 0))
        continue;
      for (std::int64_t pipeline : divisors(chips / tensor)) {
        if (choices_.pipeline ? *choices_.pipeline != pipeline : pipeline > question_.setup.model->decoder.layers())
          continue;
        for (std::int64_t second : divisors(chips / tensor / pipeline)) {
          if (choices_.second ? *choices_.second != second
                              : second > 1 && choices_.weights.value_or(lower::WeightScheme::two_dimensions) ==
                                                  lower::WeightScheme::one_dimension)
            continue;
          const std::int64_t data = chips / tensor / pipeline / second;
          if (choices_.data && *choices_.data != data) continue;
          serving::ServingStrategy strategy;
          strategy.tensor = tensor;
          strategy.pipeline = pipeline;
          strategy.second = second;
          strategy.data = data;
          any |= split_experts(strategy, may_fit);
        }
      }
    }
    return any;
  }

  /// Experts over some of the replicas, and over tensor-parallel devices or not.
  bool split_experts(serving::ServingStrategy strategy, bool may_fit) {
    bool any = false;
    for (const lower::ExpertAxes over : {lower::ExpertAxes{}, lower::ExpertAxes{true, false}}) {
      if (choices_.expert_over && *choices_.expert_over != over) continue;
      if (over.tensor && strategy.tensor == 1) continue;
      strategy.expert_over = over;
      for (std::int64_t part : divisors(strategy.data)) {
        strategy.expert = part * (over.tensor ? strategy.tensor : 1);
        if (choices_.expert ? *choices_.expert != strategy.expert
                            : strategy.expert > 1 && (limits_.experts == 0 || limits_.experts % strategy.expert != 0))
          continue;
        // Experts on more devices divide the same weights as many ways, and their tokens travel twice a layer
        // however many devices there are; a second direction adds a gather and a sum to every product.
        if (strategy.second > 1 && strategy.expert > 1) continue;
        any = true;
        const auto ways = static_cast<double>(strategy.tensor * strategy.second * strategy.pipeline * part);
        if ((all_weights_ / ways <= left_) == may_fit) shardings_.push_back(strategy);
      }
    }
    return any;
  }

  /// Prices the listed shardings; if the fastest one is searched, those with the lowest floors first.
  void price_all() {
    std::vector<std::size_t> order(shardings_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (goal_ >= ServingGoal::first_token) {
      std::vector<Seconds> floors;
      for (const serving::ServingStrategy& sharding : shardings_) floors.push_back(floor_of(sharding));
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return floors[a] < floors[b]; });
    }
    // Fewer are not worth starting threads and trying batches that earlier ones would have ruled out.
    constexpr std::size_t many = 96;
    const std::size_t cores = OneOfMany::here() || goal_ != ServingGoal::best ? 1 : core_count();
    if (cores > 1 && shardings_.size() >= many) {
      price_on(cores);
      order.clear();
    }
    for (const std::size_t i : order) {
      if (enough()) break;
      if (goal_ >= ServingGoal::meets && hopeless(shardings_[i])) continue;
      place_ = i;
      vary(shardings_[i]);
    }
    shardings_.clear();
  }

  /// What a core found in a sharding before its turn: all points that the search may ask for then.
  struct Ahead {
    struct Placement {
      serving::ServingStrategy strategy;
      double unit = 1;
      std::vector<serving::ServingPoint> points;
    };
    std::vector<Placement> placed;
    ServingSearch found;  ///< its counts, and most prompts per second
  };

  /// Prices a sharding for a search that knows so much: as only its usual batches raise what a batch between them has
  /// to beat, none is left out that the search tries.
  Ahead price_ahead(const serving::ServingStrategy& sharding, TokensPerSecond most_tokens,
                    const std::optional<serving::ServingPoint>& best) {
    Ahead out;
    ahead_ = &out;
    most_tokens_ = most_tokens;
    found_ = {};
    found_.best = best;
    vary(sharding);
    out.found = std::move(found_);
    return out;
  }

  /// Takes what was priced ahead, as if it were priced now.
  void take_ahead(const Ahead& ahead) {
    found_.strategies += ahead.found.strategies;
    found_.placements += ahead.found.placements;
    found_.dropped += ahead.found.dropped;
    if (const auto& most = ahead.found.most_prompts;
        most && (!found_.most_prompts || most->prompts_per_second() > found_.most_prompts->prompts_per_second()))
      found_.most_prompts = most;
    for (const auto& [strategy, unit, points] : ahead.placed)
      batches(strategy, unit, [&, &known = points](double batch) {
        const auto point = std::find_if(known.begin(), known.end(), [&](const auto& p) { return p.batch == batch; });
        if (point == known.end()) throw InternalError("a batch was not priced ahead");
        return *point;
      });
  }

  /// Prices the listed shardings on several cores, and takes them in their order: the answer does not depend on them.
  void price_on(std::size_t cores) {
    constexpr std::size_t at_once = 16;  // of a core: later ones know what earlier ones found, and try less
    std::deque<serving::KnownProfiles> profiles;
    std::vector<std::unique_ptr<ServingSearcher>> others;
    for (std::size_t c = 0; c < cores; ++c)
      others.push_back(
          std::make_unique<ServingSearcher>(question_, cluster_, choices_, goal_, profiles.emplace_back(question_)));
    // Shardings that share profiles are priced on the same core.
    std::vector<serving::ServingStrategy> groups;
    std::vector<std::size_t> core_of;
    for (const serving::ServingStrategy& sharding : shardings_) {
      const auto known = std::find(groups.begin(), groups.end(), serving::one_group(sharding));
      core_of.push_back(static_cast<std::size_t>(known - groups.begin()) % cores);
      if (known == groups.end()) groups.push_back(serving::one_group(sharding));
    }
    for (std::size_t first = 0; first < shardings_.size(); first += at_once * cores) {
      std::vector<Ahead> ahead(std::min(at_once * cores, shardings_.size() - first));
      parallel_for(cores, 1, [&](std::size_t c) {
        for (std::size_t i = 0; i < ahead.size(); ++i)
          if (core_of[first + i] == c)
            ahead[i] = others[c]->price_ahead(shardings_[first + i], most_tokens_, found_.best);
      });
      for (std::size_t i = 0; i < ahead.size(); ++i) {
        place_ = first + i;
        take_ahead(ahead[i]);
      }
    }
  }

  bool enough() const {
    return (goal_ == ServingGoal::fits && found_.fits) || (goal_ == ServingGoal::meets && found_.best);
  }
  Seconds floor_of(const serving::ServingStrategy& strategy) const {
    return goal_ == ServingGoal::first_token ? floors_->first_token(strategy) : floors_->next_token(strategy);
  }
  /// Whether the floors of a strategy are above the limits, or above the fastest one so far.
  bool hopeless(const serving::ServingStrategy& strategy) const {
    if (goal_ == ServingGoal::meets)
      return floors_->first_token(strategy) > choices_.first_token.value_or(no_limit) ||
             floors_->next_token(strategy) > choices_.per_token.value_or(no_limit);
    const auto& prompt = found_.fastest_prompt;
    const auto& token = found_.fastest_token;
    if (goal_ == ServingGoal::first_token) return prompt && floor_of(strategy) > prompt->prefill.estimate;
    return token && floor_of(strategy) > token->served.per_token;
  }

  /// An order of the mesh axes, with the links that it gives them.
  struct Placed {
    collective::AxisLayout layout;
    training::StageLinks links;
  };

  /// All orders, with the links of these sets of axes.
  std::vector<Placed> placements(const serving::ServingStrategy& strategy, training::RoleSets sets) {
    std::vector<Placed> out;
    const lower::Parallelism parallelism = strategy.parallelism();
    const auto layouts = collective::axis_layouts(training::whole_mesh_sizes(parallelism), cluster_);
    out.reserve(layouts.size());  // links are large
    for (const collective::AxisLayout& layout : layouts) {
      const auto placed = linker_.place_links(parallelism, layout, sets);
      if (!placed) continue;
      Placed& one = out.emplace_back();
      one.layout = layout;
      linker_.fill(parallelism, *placed, one.links);
    }
    return out;
  }

  /// What a sharding asks of the network: kinds of collectives over sets of axes.
  using Used = std::array<std::array<bool, training::StageLinks::kinds>, 32>;
  static void mark(const serving::ServingProfile& profile, Used& used) {
    for (const serving::ServingProfile::Block& block : *profile.blocks)
      for (const serving::ServedCollective& collective : block.collectives)
        used[collective.over][training::StageLinks::line_of(collective.kind)] = true;
  }

  /// Whether every collective takes at most as long on `a` as on `b`, whatever its bytes.
  static bool covers(const Placed& a, const Placed& b, const Used& used) {
    const auto below = [](const collective::CollectiveLine& x, const collective::CollectiveLine& y) {
      return x.rate <= y.rate && x.floor <= y.floor;
    };
    for (std::size_t set = 0; set < used.size(); ++set)
      for (std::size_t kind = 0; kind < training::StageLinks::kinds; ++kind) {
        if (!used[set][kind]) continue;
        if (!below(a.links.lines[set][kind], b.links.lines[set][kind]) ||
            !collective::never_slower(a.links.forms[set][kind], b.links.forms[set][kind]))
          return false;
      }
    return below(a.links.between_stages, b.links.between_stages);
  }

  void vary(serving::ServingStrategy strategy) {
    strategy.scheme.weights = choices_.weights      ? *choices_.weights
                              : strategy.second > 1 ? lower::WeightScheme::two_dimensions
                                                    : lower::WeightScheme::one_dimension;
    using enum lower::CacheScheme;
    std::vector<lower::CacheScheme> caches{heads};
    if (strategy.tensor * strategy.second > 1) caches = {heads, batch, sequence};
    if (choices_.cache) caches = {*choices_.cache};
    if (!choices_.cache_by_heads) price_caches(strategy, caches);
    strategy.cache_ways = serving::key_copies(*question_.setup.model, strategy.tensor);
    if (strategy.cache_ways == 1 || (choices_.cache && !choices_.cache_by_heads)) return;
    std::erase(caches, heads);
    price_caches(strategy, caches);
  }

  /// The profiles of a strategy, the ways to prefill, and what they ask of the network.
  struct Profiled {
    serving::ServingProfiles profiles;
    std::vector<serving::PrefillOption> prompts;
    Used used{};
  };
  Profiled profiled(const serving::ServingStrategy& strategy) {
    Profiled out;
    out.profiles.decode = profiles_.decode(strategy);
    mark(out.profiles.decode, out.used);
    for (const lower::ServingScheme& scheme : serving::prefill_schemes(strategy)) {
      serving::ServingStrategy way = strategy;
      way.scheme = scheme;
      out.prompts.push_back(profiles_.prefill(way));
      mark(out.prompts.back().profile, out.used);
      if (scheme.cache != strategy.scheme.cache)
        out.used[training::role_bit(training::Role::tensor) | training::role_bit(training::Role::fsdp)]
                [training::StageLinks::line_of(program::Collective::all_to_all)] = true;
    }
    out.profiles.joined = profiles_.joined(strategy, out.prompts.front());
    return out;
  }

  void price_caches(serving::ServingStrategy strategy, const std::vector<lower::CacheScheme>& caches) {
    std::vector<std::pair<lower::CacheScheme, Profiled>> ways;
    training::RoleSets sets = 0;
    for (lower::CacheScheme cache : caches) {
      strategy.scheme.cache = cache;
      if (choices_.refuses && !choices_.refuses(strategy, cluster_).empty()) continue;
      const Used& used = ways.emplace_back(cache, profiled(strategy)).second.used;
      for (std::size_t set = 0; set < used.size(); ++set)
        if (used[set] != Used::value_type{}) sets |= training::RoleSets{1} << set;
    }
    if (ways.empty()) return;
    const std::vector<Placed> placed = placements(strategy, sets);
    if (placed.empty()) return;
    for (auto& [cache, way] : ways) {
      strategy.scheme.cache = cache;
      price(strategy, way, placed);
    }
  }

  void price(serving::ServingStrategy strategy, Profiled& of, const std::vector<Placed>& placed) {
    serving::ServingProfiles& profiles = of.profiles;
    const Used& used = of.used;
    std::vector<const serving::PrefillOption*> options;
    for (const serving::PrefillOption& option : of.prompts) options.push_back(&option);
    ++found_.strategies;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      ++found_.placements;
      bool dropped = false;
      for (std::size_t j = 0; j < placed.size() && !dropped; ++j)
        dropped = j != i && covers(placed[j], placed[i], used) && (j < i || !covers(placed[i], placed[j], used));
      found_.dropped += dropped;
      if (dropped) continue;
      strategy.layout = placed[i].layout;
      if (goal_ == ServingGoal::best)
        for (const serving::PrefillOption* option : options) only_prompts(strategy, *option, placed[i].links);
      if (choices_.prompts_only) continue;
      serving::choose_prefill(question_, strategy, placed[i].links, options, profiles);
      if (ahead_) ahead_->placed.push_back({strategy, profiles.decode.unit, {}});
      batches(strategy, profiles.decode.unit, [&](double batch) {
        serving::ServingPoint point = serving::serving_point(question_, strategy, profiles, placed[i].links, batch);
        if (ahead_) ahead_->placed.back().points.push_back(point);
        return point;
      });
    }
  }

  void only_prompts(serving::ServingStrategy strategy, const serving::PrefillOption& option,
                    const training::StageLinks& links) {
    strategy.scheme = option.scheme;
    const serving::ServingProfile& p = option.profile;
    const double unit = p.unit * static_cast<double>(strategy.pipeline);
    const bool given = choices_.prompts_only && choices_.batch;
    const double first = given ? static_cast<double>(*choices_.batch) : unit;
    const double most = given ? first : (choices_.prompts_only ? 1024.0 : 16.0) * unit;
    for (double prompts = first; prompts <= most; prompts *= 4.0) {
      PrefillPoint point{strategy, prompts, {}, {}};
      const numbers::RuntimeMemory& runtime = question_.setup.effects.memory;
      serving::ServingMemoryOf<Plain> memory;
      serving::add_runtime(Plain{}, runtime, {question_.capacity, p.together}, memory);
      const double at_once = point.prompts / static_cast<double>(strategy.pipeline);  // prompts in a stage
      const Bytes space = runtime.activations * p.widest * at_once + p.gathered;
      point.memory =
          question_.weight_scale * p.weights + point.prompts * p.cache + runtime.reserved * space + memory.runtime();
      if (point.memory > question_.capacity) return;
      point.time = serving::serving_time(question_.setup, strategy, p, links, point.prompts);
      if (choices_.first_token && point.time.estimate > *choices_.first_token) return;
      if (!found_.most_prompts || point.prompts_per_second() > found_.most_prompts->prompts_per_second())
        found_.most_prompts = point;
      found_.fits |= choices_.prompts_only;
    }
  }

  /// Tries batches of a placement in steps of `unit`; `point_at` prices one.
  template <class F>
  void batches(const serving::ServingStrategy& strategy, double unit, const F& point_at) {
    const auto at = [&](double units) {
      ++found_.points;
      return point_at(units * unit);
    };
    if (choices_.batch) {
      ++found_.points;
      take(point_at(static_cast<double>(*choices_.batch)));
      return;
    }
    const serving::ServingPoint first = at(1.0);
    if (take(first); first.memory.total() > question_.capacity || goal_ != ServingGoal::best) return;
    // Tries batches from one unit up to what fits: powers of two, the points between them, and the last one.
    std::vector<Tried> tried{tried_at(1.0, first)};
    const double allowed = choices_.most_batch ? static_cast<double>(*choices_.most_batch) : HUGE_VAL;
    const double most = std::floor(std::min(first.memory.max_batch, allowed) / unit);
    const auto try_units = [&](double units) {
      if (units > most || units <= tried.back().units) return;
      const serving::ServingPoint point = at(units);
      tried.push_back(tried_at(units, point));
      take(point);
    };
    for (double units = 2.0; units <= 2.0 * most; units *= 2.0) {
      if (units > 2.0) try_units(0.75 * units);
      try_units(units);
    }
    try_units(most);
    const auto tokens_of_step = [&](double units) {
      const serving::SteadyServer server = serving::steady_server(question_, strategy, units * unit);
      return Tokens(units * unit / server.places * serving::load_of(question_, server).requests * server.output);
    };
    refine(tried, no_limit, most_tokens_, tokens_of_step, [&](double units) {
      const serving::ServingPoint point = at(units);
      if (!ahead_ && point.served.tokens_per_second > most_tokens_) take(point);
      return tried_at(units, point);
    });
    if (!(choices_.per_token || choices_.first_token) || !meets_prompts(first)) return;
    // Refines also among points that meet the latency limits, in addition to the points that all questions share.
    TokensPerSecond best = found_.best ? found_.best->served.tokens_per_second : TokensPerSecond();
    const auto wanted = [&](double units) {
      const serving::ServingPoint point = at(units);
      if (!ahead_) take_best(point);
      if (found_.best) best = found_.best->served.tokens_per_second;
      return tried_at(units, point);
    };
    const Seconds limit = choices_.per_token.value_or(no_limit);
    // More sequences never take less time: find the largest batch that meets the limits between the last point that
    // does and the next.
    const auto beyond = std::find_if(tried.begin(), tried.end(), [&](const Tried& t) { return t.per_token > limit; });
    if (beyond == tried.begin()) return;
    if (beyond != tried.end()) {
      Tried some = *(beyond - 1);
      double many = beyond->units;
      while (many - some.units > 1.0) {
        const Tried middle = tried_at(std::floor((some.units + many) / 2.0), at(std::floor((some.units + many) / 2.0)));
        if (middle.per_token <= limit)
          some = middle;
        else
          many = middle.units;
      }
      tried.erase(beyond, tried.end());
      if (some.units > tried.back().units) tried.push_back(wanted(some.units));
    }
    refine(tried, limit, best, tokens_of_step, wanted);
  }

  /// A batch, in units, the mean time of its steps and the time of a token.
  struct Tried {
    double units = 1;
    Seconds step, per_token;
  };
  static Tried tried_at(double units, const serving::ServingPoint& point) {
    const serving::ServedRate& served = point.served;
    return {units, served.replicas * served.load.requests / served.requests_per_second, served.per_token};
  }

  /// The whole number between two others with the most factors of two: step times jump where a tile of rows begins.
  static double roundest_between(double low, double high) {
    double power = 1.0;
    while (std::floor((high - 1.0) / (2.0 * power)) * 2.0 * power > low) power *= 2.0;
    return std::floor((high - 1.0) / power) * power;
  }

  /// Tries batches between those tried. More sequences never take less time, so a batch between two others yields at
  /// most the tokens of the larger in the time of the smaller: nothing better than `best` by more than the tolerance is
  /// left out.
  template <class Made, class Try>
  static void refine(const std::vector<Tried>& tried, Seconds limit, const TokensPerSecond& best, Made tokens_of_step,
                     Try attempt) {
    constexpr double tolerance = 0.002;  // relative, in tokens per second; a tenth of it takes ten times the points
    std::vector<std::pair<Tried, Tried>> open;
    for (std::size_t i = 0; i + 1 < tried.size(); ++i) open.emplace_back(tried[i], tried[i + 1]);
    while (!open.empty()) {
      const auto [low, high] = open.back();
      open.pop_back();
      if (high.units - low.units <= 1.0 || low.per_token > limit) continue;
      if (tokens_of_step(high.units - 1.0) / low.step <= best * (1.0 + tolerance)) continue;
      const Tried middle = attempt(roundest_between(low.units, high.units));
      open.emplace_back(low, middle);
      open.emplace_back(middle, high);
    }
  }

  bool meets_prompts(const serving::ServingPoint& point) const {
    return point.prefill.estimate <= choices_.first_token.value_or(no_limit);
  }

  void take(const serving::ServingPoint& point) {
    if (point.batch < 1.0) return;
    if (point.memory.total() > question_.capacity) {
      if (!found_.fits && (!found_.closest || point.memory.total() < found_.closest->memory.total()))
        found_.closest = point;
      return;
    }
    if (!found_.fits) found_.closest.reset();
    found_.fits = true;
    if (ahead_) {
      most_tokens_ = std::max(most_tokens_, point.served.tokens_per_second);
      return take_best(point);
    }
    keep_fastest(point, point.served.per_token, found_.fastest_token, fastest_token_);
    keep_fastest(point, point.prefill.estimate, found_.fastest_prompt, fastest_prompt_);
    most_tokens_ = std::max(most_tokens_, point.served.tokens_per_second);
    found_.front.push_back(point);
    if (found_.front.size() > 4096) thin_front();
    take_best(point);
  }

  /// The fastest point so far, the first in the order of shardings among equals.
  struct Fastest {
    Seconds time{HUGE_VAL};
    std::size_t place = 0;
  };
  void keep_fastest(const serving::ServingPoint& point, Seconds time, std::optional<serving::ServingPoint>& kept,
                    Fastest& fastest) const {
    if (!(time < fastest.time || (time == fastest.time && place_ < fastest.place))) return;
    fastest = {time, place_};
    kept = point;
  }

  void take_best(const serving::ServingPoint& point) {
    const bool meets = meets_prompts(point) && point.served.per_token <= choices_.per_token.value_or(no_limit);
    if (!meets) {
      if (!found_.closest || miss(point) < miss(*found_.closest)) found_.closest = point;
      return;
    }
    // A given batch is served as fast as possible; otherwise as many tokens as possible.
    const bool better =
        !found_.best || (choices_.batch ? point.decode.estimate < found_.best->decode.estimate
                                        : point.served.tokens_per_second > found_.best->served.tokens_per_second);
    if (better) found_.best = point;
  }

  /// How far a point misses the latency limits: the worse of both, as a ratio.
  double miss(const serving::ServingPoint& point) const {
    double worst = 0.0;
    if (choices_.first_token) worst = std::max(worst, point.prefill.estimate / *choices_.first_token);
    if (choices_.per_token) worst = std::max(worst, point.served.per_token / *choices_.per_token);
    return worst;
  }

  void thin_front() {
    const std::vector<serving::ServingPoint>& all = found_.front;
    std::vector<std::size_t> order(all.size());  // points are large
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
      const serving::ServedRate &a = all[i].served, &b = all[j].served;
      return a.per_token != b.per_token ? a.per_token < b.per_token : a.tokens_per_second > b.tokens_per_second;
    });
    std::vector<serving::ServingPoint> kept;
    for (const std::size_t i : order)
      if (kept.empty() || all[i].served.tokens_per_second > kept.back().served.tokens_per_second)
        kept.push_back(all[i]);
    found_.front = std::move(kept);
  }
  void finish_front() { thin_front(); }

  static constexpr Seconds no_limit{HUGE_VAL};
  const serving::ServingQuestion& question_;
  const hardware::Cluster& cluster_;
  const ServingChoices& choices_;
  ServingGoal goal_;
  serving::KnownProfiles& profiles_;
  Limits limits_;
  training::StageLinker linker_;
  Bytes all_weights_;
  Bytes left_;                                    ///< memory of a chip that its driver leaves free
  std::optional<serving::LatencyFloors> floors_;  ///< where the goal needs them
  std::vector<serving::ServingStrategy> shardings_;
  std::size_t place_ = 0;  ///< of the sharding that is priced
  Fastest fastest_token_, fastest_prompt_;
  Ahead* ahead_ = nullptr;       ///< set where another search takes the points later
  TokensPerSecond most_tokens_;  ///< most tokens per second of all points that fit
  ServingSearch found_;
};

}  // namespace

Result<ServingSearch> search_serving(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                     const ServingChoices& choices, ServingGoal goal, serving::KnownProfiles* known) {
  std::optional<serving::KnownProfiles> own;
  serving::KnownProfiles& profiles = known ? *known : own.emplace(question);
  ASSAY_TRY(found, ServingSearcher(question, cluster, choices, goal, profiles).run());
  if (found.fits || (question.chip_memory <= question.capacity && question.cache_share == 1.0)) return found;
  serving::ServingQuestion whole = question;
  whole.capacity = std::max(question.capacity, question.chip_memory);
  whole.cache_share = 1.0;
  ASSAY_TRY(tight, ServingSearcher(whole, cluster, choices, goal, profiles).run());
  return tight.fits ? std::move(tight) : std::move(found);
}

}  // namespace assay::search
