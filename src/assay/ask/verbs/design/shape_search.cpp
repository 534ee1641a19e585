// assay design --model-shape: which layers, widths and experts a model of a budget has best on a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "assay/ask/report/render.h"
#include "assay/ask/verbs/design/design.h"
#include "assay/ask/verbs/design/shapes.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/parallel.h"
#include "assay/predict/design/loss.h"

namespace assay::verbs::design_verb {
namespace {

/// What the shape is to keep within, and what it is to be best at: the speed at a number of parameters, else the loss.
struct Budget {
  double parameters = 0;
  std::optional<Flops> flops;
  std::optional<Seconds> time, latency;
  double tokens = 0;  ///< that a model of a latency is trained on
  bool is_speed() const { return !flops && !time && !latency; }
};

struct Query {
  std::string model, cluster, batch;
  std::int64_t sequence = 0;
  Budget budget;
  double range = 1.25;  ///< how far fields move from a model that is scaled as a whole
  const design::LossLaw* law = nullptr;
};

/// A shape that was asked about.
struct Tried {
  Shape shape;
  Counted counted;
  std::string why_not;
  double speed = 0;  ///< tokens a second, trained or served
  Seconds step;
  double tokens = 0, loss = 0;
  double score = 0;  ///< the less, the better
};

Result<Query> read_query(const Request& request, const Context& context) {
  Query out;
  const std::string given = request.value("model-shape").value_or("");
  out.model = given.empty() && !request.arguments().empty() ? request.arguments().front() : given;
  if (out.model.empty())
    return fail("--model-shape", "a model of the catalogue is missing",
                "e.g. --model-shape llama-3-8b --on h100-sxm:64", Error::Kind::usage);
  const auto cluster = request.value("on");
  if (!cluster)
    return fail("--on", "the cluster is missing", "e.g. --on h100-sxm:64: the best shape depends on it",
                Error::Kind::usage);
  out.cluster = *cluster;
  ASSAY_SET(out.sequence, count_or(request, "seq", 8192));
  Budget& budget = out.budget;
  ASSAY_CHECK(read_time(request, "time", budget.time));
  ASSAY_CHECK(read_time(request, "latency", budget.latency));
  if (const auto flops = request.value("flops")) ASSAY_SET(budget.flops, parse_as<Flops>(*flops, "--flops"));
  out.batch = request.value("batch").value_or(budget.latency ? "64" : "4Mi");
  ASSAY_TRY(parameters, count_or(request, "parameters", 0));
  budget.parameters = static_cast<double>(parameters);
  ASSAY_TRY(tokens, count_or(request, "tokens", 15'000'000'000'000));
  budget.tokens = static_cast<double>(tokens);
  if (const auto range = request.value("range")) {
    const auto number = parse_number(*range);
    if (!number || *number < 1.0 || *number > 4.0)
      return fail("--range", fmt::format("{} is no factor from 1 to 4", in_quotes(*range)), "1.25 is usual");
    out.range = *number;
  }
  ASSAY_TRY(laws, design::loss_laws(context.catalogue));
  const std::string name = request.value("law").value_or("chinchilla");
  std::vector<std::string> names;
  for (const design::LossLaw& law : *laws) {
    names.push_back(law.name);
    if (law.name == name) out.law = &law;
  }
  if (!out.law) return fail("--law", fmt::format("unknown law {}", in_quotes(name)), "one of " + join(names, ", "));
  return out;
}

/// Asks about shapes, each once.
class Trials {
 public:
  Trials(const Query& query, const ShapeSpace& space, const Context& context)
      : query_(query), space_(space), context_(context) {}

  /// Those that can be asked about and run, of shapes whose parameters fit.
  Result<void> ask(const std::vector<Shape>& shapes) {
    std::vector<Tried> open;
    for (const Shape& shape : shapes) {
      if (known_.contains(shape) || !seen_.insert(shape).second) continue;
      if (auto counted = space_.count(shape)) {
        open.emplace_back().shape = shape;
        open.back().counted = std::move(*counted);
      }
    }
    std::vector<Result<void>> results(open.size());
    parallel_for(open.size(), 1, [&](std::size_t i) {
      const OneOfMany one;
      results[i] = answer(open[i]);
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      ASSAY_CHECK(results[i]);
      known_.emplace(open[i].shape, open[i]);
    }
    return {};
  }
  const Tried* find(const Shape& shape) const {
    const auto found = known_.find(shape);
    return found == known_.end() || !found->second.why_not.empty() ? nullptr : &found->second;
  }
  const std::string& why_not(const Shape& shape) const { return known_.at(shape).why_not; }
  const std::map<Shape, Tried>& all() const { return known_; }

 private:
  Result<void> answer(Tried& tried) const {
    const std::string model = space_.model_text(tried.shape);
    const Budget& budget = query_.budget;
    const std::string line = budget.latency ? fmt::format("serve {} --on {} --batch {} --prompt {} --output 256", model,
                                                          query_.cluster, query_.batch, query_.sequence)
                                            : fmt::format("train {} --on {} --batch {} --seq {}", model, query_.cluster,
                                                          query_.batch, query_.sequence);
    ASSAY_TRY(request, parse_request_text(line));
    ASSAY_TRY(response, ask_within(request, {context_.catalogue, context_.surroundings, true}));
    if (response.outcome != report::Outcome::ok) {
      tried.why_not = response.headline;
      return {};
    }
    const report::Value results(response.results);
    const auto number = [&](const char* path) {
      const auto found = report::find_path(results, path);
      return found ? report::numeric(*found).value_or(0.0) : 0.0;
    };
    tried.speed = number(budget.latency ? "served.output_tokens_per_second" : "tokens_per_second");
    tried.step = Seconds(number(budget.latency ? "decode.step_time.estimate" : "step_time.estimate"));
    tried.tokens = budget.time    ? tried.speed * budget.time->value()
                   : budget.flops ? *budget.flops / tried.counted.training_flops
                                  : budget.tokens;
    const auto& parameters = tried.counted.parameters;
    // Models with experts count the parameters that a token uses.
    tried.loss = design::loss(*query_.law, static_cast<double>(parameters.active), tried.tokens);
    if (budget.latency && tried.step > *budget.latency)
      tried.why_not = fmt::format("a step takes {}", human(tried.step));
    // Fewer parameters are no merit: those that fit count by what they do in a second.
    tried.score = budget.is_speed() ? -std::log(tried.speed * static_cast<double>(parameters.active)) : tried.loss;
    return {};
  }

  const Query& query_;
  const ShapeSpace& space_;
  const Context& context_;
  std::map<Shape, Tried> known_;
  std::set<Shape> seen_;
};

/// Looks for the best shape near a model that is scaled as a whole.
class ShapeSearch {
 public:
  ShapeSearch(const Query& query, const ShapeSpace& space, Trials& trials)
      : query_(query), space_(space), trials_(trials) {}

  Result<const Tried*> run() {
    ASSAY_TRY(start, scaled());
    start_ = start;
    const Tried* best = trials_.find(start);
    for (int round = 0; best && round < most_rounds; ++round) {
      ASSAY_CHECK(trials_.ask(neighbours(best->shape)));
      const Tried* next = best;
      for (const auto& [shape, tried] : trials_.all())
        if (tried.why_not.empty() && within(shape) && fits(tried.counted) && tried.score < next->score) next = &tried;
      if (next == best) break;
      best = next;
    }
    return best;
  }

 private:
  static constexpr int most_rounds = 24;

  bool fits(const Counted& counted) const {
    constexpr double least = 0.98;  // of the parameters that were asked for
    const double share = static_cast<double>(counted.parameters.total) / query_.budget.parameters;
    return !query_.budget.is_speed() || (share <= 1.0 + 1e-9 && share >= least);
  }
  bool within(const Shape& shape) const {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const double ratio = static_cast<double>(shape[i]) / static_cast<double>(start_[i]);
      if (ratio > query_.range + 1e-9 || ratio < 1.0 / query_.range - 1e-9) return false;
    }
    return true;
  }

  /// The model as a whole, scaled to the budget.
  Result<Shape> scaled() {
    if (query_.budget.is_speed()) {
      const auto base = space_.count(space_.base());
      if (base && static_cast<double>(base->parameters.total) == query_.budget.parameters) {
        ASSAY_CHECK(trials_.ask({space_.base()}));
        return space_.base();
      }
      double low = 0.05, high = 20.0;
      for (int i = 0; i < 40; ++i) {
        const double middle = std::sqrt(low * high);
        const auto counted = space_.count(space_.scaled(middle));
        (counted && static_cast<double>(counted->parameters.total) <= query_.budget.parameters ? low : high) = middle;
      }
      Shape shape = filled(space_.scaled(low), space_.fields().size());
      ASSAY_CHECK(trials_.ask({shape}));
      return shape;
    }
    // The best of a coarse scale; what is refined later starts from there.
    std::vector<Shape> shapes;
    for (double factor = 0.125; factor < 8.5; factor *= 1.189207115002721) shapes.push_back(space_.scaled(factor));
    ASSAY_CHECK(trials_.ask(shapes));
    Shape best = space_.base();
    const Tried* least = nullptr;
    for (const Shape& shape : shapes)
      if (const Tried* tried = trials_.find(shape); tried && (!least || tried->score < least->score)) {
        least = tried;
        best = shape;
      }
    return best;
  }

  /// Steps of each field alone; at a number of parameters, another field makes up for them.
  std::vector<Shape> neighbours(const Shape& from) const {
    std::vector<Shape> out;
    const auto& fields = space_.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].usual) continue;
      for (const std::int64_t steps : {-8, -4, -2, -1, 1, 2, 4, 8}) {
        Shape shape = from;
        // Steps are cut to multiples, so that an odd width becomes a round one.
        shape[i] =
            (from[i] / fields[i].step + steps + (steps < 0 && from[i] % fields[i].step != 0 ? 1 : 0)) * fields[i].step;
        if (shape[i] < fields[i].step || !within(shape)) continue;
        if (!query_.budget.is_speed()) {
          out.push_back(std::move(shape));
          continue;
        }
        for (std::size_t other = 0; other < fields.size(); ++other)
          if (other != i && fields[other].usual)
            if (Shape whole = filled(shape, other); within(whole)) {
              const auto counted = space_.count(whole);
              if (counted && fits(*counted)) out.push_back(std::move(whole));
            }
      }
    }
    return out;
  }

  /// With as much of a field as the parameters leave; of the feed-forward width where none is named.
  Shape filled(Shape shape, std::size_t field) const {
    const auto& fields = space_.fields();
    if (field == fields.size())
      for (field = 0; field + 1 < fields.size(); ++field)
        if (fields[field].name == "feed-forward" || fields[field].name == "expert-width") break;
    const std::int64_t step = fields[field].step;
    std::int64_t low = 1, high = 4 * std::max<std::int64_t>(1, shape[field] / step);
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      shape[field] = middle * step;
      const auto counted = space_.count(shape);
      if (counted && static_cast<double>(counted->parameters.total) <= query_.budget.parameters)
        low = middle;
      else
        high = middle - 1;
    }
    shape[field] = low * step;
    return shape;
  }

  const Query& query_;
  const ShapeSpace& space_;
  Trials& trials_;
  Shape start_;
};

report::Members shape_row(const Query& query, const ShapeSpace& space, const Tried& tried, const Tried& than) {
  report::Members row{{"shape", space.text(tried.shape)},
                      {"parameters", tried.counted.parameters.total},
                      {"active", tried.counted.parameters.active},
                      {"tokens_per_second", TokensPerSecond(tried.speed)},
                      {"step_time", tried.step},
                      {"faster", tried.speed / than.speed - 1.0}};
  if (!query.budget.is_speed()) {
    row.emplace_back("tokens", Tokens(tried.tokens));
    row.emplace_back("loss", tried.loss);
  }
  row.emplace_back("model", space.model_text(tried.shape));
  return row;
}

/// What a step of one field changes, all others left alone: what tiles and waves waste.
Result<report::Items> steps_of(const Query& query, const ShapeSpace& space, Trials& trials, const Tried& best) {
  std::vector<std::pair<std::size_t, Shape>> steps;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < space.fields().size(); ++i) {
    const ShapeField& field = space.fields()[i];
    if (!field.usual) continue;
    for (const std::int64_t sign : {-1, 1}) {
      Shape shape = best.shape;
      const std::int64_t rest = shape[i] % field.step;
      shape[i] += rest == 0 ? sign * field.step : sign > 0 ? field.step - rest : -rest;
      if (shape[i] < field.step) continue;
      steps.emplace_back(i, shape);
      shapes.push_back(std::move(shape));
    }
  }
  ASSAY_CHECK(trials.ask(shapes));
  report::Items rows;
  for (const auto& [field, shape] : steps) {
    const Tried* tried = trials.find(shape);
    if (!tried) continue;
    report::Members row{{"field", space.fields()[field].name},
                        {"now", best.shape[field]},
                        {"next", shape[field]},
                        {"faster", tried->speed / best.speed - 1.0},
                        {"parameters", static_cast<double>(tried->counted.parameters.total) /
                                               static_cast<double>(best.counted.parameters.total) -
                                           1.0}};
    if (!query.budget.is_speed()) row.emplace_back("loss", tried->loss - best.loss);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

std::string headline_of(const Query& query, const ShapeSpace& space, const Tried& best, const Tried* base) {
  const std::string shape = space.text(best.shape);
  const auto billions = [](std::int64_t count) { return human_number(static_cast<double>(count) / 1e9) + " B"; };
  if (query.budget.is_speed())
    return base ? fmt::format("{} with {} parameters {} {:.1f} % faster: {}", query.model,
                              billions(best.counted.parameters.total), query.budget.latency ? "decodes" : "trains",
                              100.0 * (best.speed / base->speed - 1.0), shape)
                : fmt::format("{} with {} parameters: {}", query.model, billions(best.counted.parameters.total), shape);
  return fmt::format("loss {:.3f} with {} parameters and {} tokens: {} as {}", best.loss,
                     billions(best.counted.parameters.total), human_number(best.tokens / 1e12) + " T", query.model,
                     shape);
}

}  // namespace

Result<report::Response> model_shapes(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  std::vector<std::string> varied;
  if (const auto fields = request.value("fields")) varied = split(*fields, ',');
  ASSAY_TRY(space, ShapeSpace::make(query.model, varied, query.sequence, context.catalogue));
  const auto base_count = space.count(space.base());
  if (!base_count) return fail("--model-shape", fmt::format("{} has no shape that may vary", query.model));
  if (query.budget.parameters == 0.0) query.budget.parameters = static_cast<double>(base_count->parameters.total);
  if (base_count->experts > 1.0 && !query.budget.is_speed() && !request.has("law"))
    return fail("--law",
                fmt::format("{} has experts, and the laws of the catalogue are those of dense models", query.model),
                "--law chinchilla counts the parameters that a token uses, which is less than experts are worth");
  Trials trials(query, space, context);
  ASSAY_CHECK(trials.ask({space.base()}));
  ShapeSearch search(query, space, trials);
  ASSAY_TRY(best, search.run());
  report::Response response;
  if (!best) {
    response.outcome = report::Outcome::infeasible;
    response.headline =
        fmt::format("no shape of {} runs within the budget; as it is: {}", query.model, trials.why_not(space.base()));
    response.results = {{"search", report::Members{{"evaluated", static_cast<std::int64_t>(trials.all().size())}}}};
    return response;
  }
  const Tried* base = trials.find(space.base());
  std::vector<const Tried*> sorted;
  for (const auto& [shape, tried] : trials.all())
    if (tried.why_not.empty() && tried.score >= best->score) sorted.push_back(&tried);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Tried* a, const Tried* b) { return a->score < b->score; });
  if (query.budget.is_speed())
    std::erase_if(sorted, [&](const Tried* one) {
      return std::abs(static_cast<double>(one->counted.parameters.total) / query.budget.parameters - 0.99) > 0.0101;
    });
  constexpr std::size_t most_rows = 8;
  report::Items rows;
  for (const Tried* one : sorted)
    if (rows.size() < most_rows) rows.emplace_back(shape_row(query, space, *one, base ? *base : *best));
  response.headline = headline_of(query, space, *best, base);
  report::Members best_row = shape_row(query, space, *best, base ? *base : *best);
  ASSAY_TRY(steps, steps_of(query, space, trials, *best));
  response.results = {{"best", std::move(best_row)}, {"shapes", std::move(rows)}, {"steps", std::move(steps)}};
  if (base) response.results.emplace_back("base", shape_row(query, space, *base, *base));
  response.results.emplace_back("search",
                                report::Members{{"evaluated", static_cast<std::int64_t>(trials.all().size())}});
  if (!query.budget.is_speed()) {
    response.results.emplace_back("law", report::Members{{"name", query.law->name}, {"source", query.law->source}});
    response.notes.push_back(
        fmt::format("the loss is that of the law {} ({}), whose data and tokenizer are not yours: differences count, "
                    "not the number; "
                    "it knows size and tokens, not shape",
                    query.law->name, query.law->source));
  }
  response.notes.push_back(
      fmt::format("a search of neighbours from the model scaled as a whole, each field within a factor of {}: a better "
                  "shape further "
                  "away is not excluded",
                  human_number(query.range)));
  response.table_key = "shapes";
  return response;
}

}  // namespace assay::verbs::design_verb
