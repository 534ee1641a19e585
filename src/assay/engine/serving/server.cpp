#include "assay/engine/serving/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "assay/base/index.h"
#include "assay/engine/program/step.h"
#include "assay/engine/program/tensor_layout.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/model/accounting.h"

namespace assay::engine {
namespace {

lower::Formats all_fp64() { return {Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64}; }

bool has_states(const model::Transformer& model) {
  return model.decoder.any([](const model::Layer& layer) {
    return layer.state_space || (layer.feed_forward && layer.feed_forward->shifted);
  });
}

program::Program lowered(const model::Transformer& model, const lower::StageRules& rules, std::int64_t sequences,
                         std::int64_t queries, std::int64_t keys) {
  lower::Workload work;
  work.sequences = sequences;
  work.queries = queries;
  work.keys = keys;
  work.cached = keys > queries;
  work.expert_load = model::most_expert_load(model);
  return lower::lower_serving(model, rules.mesh, rules.rules, work, all_fp64());
}

/// Ways in which any tensor splits the batch.
std::int64_t batch_ways(const lower::StageRules& rules) {
  program::AxisSet axes = 0;
  for (const auto& of_class : rules.rules.axes)
    axes |= of_class[static_cast<std::size_t>(model::LogicalDim::batch)].set();
  return static_cast<std::int64_t>(program::shard_count(rules.mesh, axes));
}

/// The caches of several sequences, one after the other; the last one is repeated up to `rows`.
ServedSequences stacked(const std::vector<const ServedSequences*>& each, std::size_t rows) {
  if (rows == 1) return *each.front();
  ServedSequences out;
  out.caches.resize(each.front()->caches.size());
  for (std::size_t l = 0; l < out.caches.size(); ++l)
    for (std::size_t i = 0; i < each.front()->caches[l].size(); ++i) {
      std::vector<Array> parts;
      for (std::size_t s = 0; s < rows; ++s) parts.push_back(each[std::min(s, each.size() - 1)]->caches[l][i]);
      out.caches[l].push_back(joined(parts, 0));
    }
  return out;
}

Seconds time_since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

model::Transformer first_layers(model::Transformer model, std::int64_t layers) {
  model::LayerStack kept;
  for (std::int64_t i = 0; i < std::min(layers, model.decoder.layers()); ++i)
    kept.add(model.decoder.kinds[model.decoder.order[at(i)]]);
  model.decoder = std::move(kept);
  return model;
}

Result<void> check_server(const model::Transformer& model, const ServerOptions& options) {
  if (model.encoder)
    return fail("MODEL", fmt::format("{} has an encoder, whose output a run does not make", model.id),
                "serve a decoder-only model");
  if (options.drafts > 0 && has_states(model))
    return fail("--speculate", fmt::format("{} has states, which cannot forget a rejected draft", model.id),
                "leave it out");
  if (options.drafts > 0 && options.draft_layers >= model.decoder.layers())
    return fail("--draft-layers",
                fmt::format("the model has {} layers, all of which would draft", model.decoder.layers()), "give fewer");
  const lower::StageRules rules = lower::serving_stage(options.parallelism, options.scheme, model);
  if (has_states(model) && batch_ways(rules) > 1)
    return fail("run", fmt::format("sequences of {} are served one by one, because it keeps states", model.id),
                "do not split the batch");
  if (options.prefill) {
    ASSAY_CHECK(lower::check_parallelism(*options.prefill, model));
    const lower::StageRules others = lower::serving_stage(*options.prefill, options.scheme, model);
    ASSAY_CHECK(check_divides(lowered(model, others, batch_ways(others), 1, 2)));
    if (has_states(model))
      return fail("--prefill-tp", fmt::format("{} has states, which are not handed over", model.id));
  }
  return check_divides(lowered(model, rules, batch_ways(rules), 1, 2));
}

Server::Side Server::side_of(const model::Transformer& model, const lower::Parallelism& parallelism,
                             const ServerOptions& options) {
  Side side{model, lower::serving_stage(parallelism, options.scheme, model), 1, !has_states(model), {}, {}};
  side.rows = batch_ways(side.rules);
  return side;
}

Server::Server(const model::Transformer& model, const NamedArrays& weights, const ServerOptions& options)
    : options_(options),
      weights_(weights),
      draft_model_(first_layers(model, options.draft_layers)),
      large_(side_of(model, options.parallelism, options)),
      prompts_(side_of(model, options.prefill.value_or(options.parallelism), options)),
      small_(side_of(draft_model_, options.parallelism, options)) {}

void Server::hand_over(const Group& group) {
  for (const Sequence* sequence : group) {
    for (const LayerCache& layer : sequence->large.kept.caches)
      for (const Array& array : layer)
        report_.handed += Bytes(static_cast<double>(array.values.size() * sizeof(double)));
    const std::int64_t values = model::kv_values_per_token(large_.model) * sequence->large.tokens;
    report_.cached += Bytes(static_cast<double>(values) * static_cast<double>(sizeof(double)));
  }
}

std::vector<Server::Group> Server::groups_of(const Side& side, Cached Sequence::*cache, const Group& all) const {
  std::map<std::tuple<std::size_t, std::int64_t, std::size_t>, Group> by_length;
  for (Sequence* sequence : all)
    by_length[{sequence->tokens.size(), (sequence->*cache).tokens, side.groups ? 0 : sequence->request}].push_back(
        sequence);
  std::vector<Group> out;
  for (auto& [length, group] : by_length) out.push_back(std::move(group));
  return out;
}

Result<std::vector<Scores>> Server::advance_elsewhere(Cached Sequence::*cache, const Group& group,
                                                      std::int64_t scored) {
  ServingEngine::Asked asked;
  asked.drafts = cache == &Sequence::small;
  asked.known = (group.front()->*cache).tokens;
  asked.scored = scored;
  asked.greedy = options_.sampling.temperature == 0 && options_.drafts == 0;
  const std::int64_t keys = std::ssize(group.front()->tokens);
  for (Sequence* sequence : group) {
    asked.places.push_back(sequence->place);
    asked.tokens.insert(asked.tokens.end(), sequence->tokens.begin() + asked.known, sequence->tokens.end());
    (sequence->*cache).tokens = keys;
  }
  ASSAY_TRY(made, options_.engine->run(asked));
  report_.moved += made.moved;
  report_.stated += made.stated;
  report_.steps.push_back({asked.drafts, std::ssize(group), keys - asked.known, keys, scored, made.time,
                           std::move(made.by_kind), made.has_clocks});
  return std::move(made.scores);
}

Result<std::vector<Scores>> Server::advance(Side& side, Cached Sequence::*cache, const Group& group,
                                            std::int64_t scored) {
  if (options_.engine) return advance_elsewhere(cache, group, scored);
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t known = (group.front()->*cache).tokens, keys = std::ssize(group.front()->tokens);
  const std::int64_t queries = keys - known;
  const std::int64_t rows = (std::ssize(group) + side.rows - 1) / side.rows * side.rows;
  const auto key = std::tuple(rows, queries, keys);
  auto found = side.programs.find(key);
  if (found == side.programs.end()) {
    side.programs.clear();  // lengths only grow: the others are not needed again soon
    found = side.programs.emplace(key, lowered(side.model, side.rules, rows, queries, keys)).first;
  }
  Array tokens = zeros({rows, queries});
  std::vector<const ServedSequences*> caches;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Sequence& sequence = *group[std::min(at(row), group.size() - 1)];
    for (std::int64_t i = 0; i < queries; ++i) tokens.values[at(row * queries + i)] = sequence.tokens[at(known + i)];
    caches.push_back(&(sequence.*cache).kept);
  }
  ServedSequences kept = stacked(caches, at(rows));
  // Prompts use the same devices as the rest, unless they have their own, or their own thread.
  Side& keeper = &side == &prompts_ && !options_.prefill && !options_.queue ? large_ : side;
  const ServingRun run =
      run_serving(found->second, side.model, weights_, tokens, kept,
                  {.placement = {options_.transport, 0}, .placed = &keeper.placed, .scored = scored});
  report_.moved += run.facts.moved;
  report_.stated += run.facts.stated;
  report_.disagreement = std::max(report_.disagreement, run.facts.disagreement);
  ServedStep done{cache == &Sequence::small, rows, queries, keys, scored, time_since(start), {}, true};
  for (std::size_t i = 0; i < run.clocks.size(); ++i)
    done.by_kind[work_kind(found->second.steps[i])] += run.clocks[i].time;
  report_.steps.push_back(std::move(done));
  std::vector<Scores> scores;
  for (std::size_t s = 0; s < group.size(); ++s) {
    Cached& own = group[s]->*cache;
    own.tokens = keys;
    scores.push_back({part(run.logits, 0, static_cast<std::int64_t>(s), 1), {}});
    if (rows == 1) {
      own.kept = std::move(kept);
      continue;
    }
    own.kept.caches.resize(kept.caches.size());
    for (std::size_t l = 0; l < kept.caches.size(); ++l) {
      own.kept.caches[l].clear();
      for (const Array& all : kept.caches[l])
        own.kept.caches[l].push_back(part(all, 0, static_cast<std::int64_t>(s), 1));
    }
  }
  return scores;
}

void Server::shorten(Cached& cache, std::int64_t tokens) const {
  if (cache.tokens <= tokens) return;
  for (LayerCache& layer : cache.kept.caches)
    for (Array& array : layer) array = part(array, 1, 0, tokens);
  cache.tokens = tokens;
}

Result<void> Server::draft(const Group& all) {
  for (Sequence* sequence : all) sequence->drafted.clear();
  for (std::int64_t i = 0; i < options_.drafts; ++i) {
    Group drafting;  // the last wanted token needs no draft after it
    for (Sequence* sequence : all)
      if (sequence->made + i + 1 < sequence->wanted) drafting.push_back(sequence);
    for (const Group& group : groups_of(small_, &Sequence::small, drafting)) {
      ASSAY_TRY(scores, advance(small_, &Sequence::small, group, 1));
      for (std::size_t s = 0; s < group.size(); ++s) {
        group[s]->drafted.push_back(distribution(scores[s].logits.values, options_.sampling));
        group[s]->tokens.push_back(drawn(group[s]->drafted.back(), group[s]->draws.next()));
        ++report_.drafted;
      }
    }
  }
  return {};
}

void Server::end(Sequence& sequence, std::int64_t added) const {
  const auto ends = [&](int token) { return std::find(options_.ends.begin(), options_.ends.end(), token); };
  const auto last = std::find_if(sequence.tokens.end() - added, sequence.tokens.end(),
                                 [&](int token) { return ends(token) != options_.ends.end(); });
  if (last == sequence.tokens.end()) return;
  sequence.made -= sequence.tokens.end() - last - 1;
  sequence.tokens.erase(last + 1, sequence.tokens.end());
  sequence.wanted = sequence.made;
}

void Server::take(Sequence& sequence, const Scores& scores) {
  if (!scores.best.empty() && scores.logits.values.empty()) {
    sequence.tokens.push_back(scores.best.back());
    ++sequence.made;
    return end(sequence, 1);
  }
  const auto vocabulary = at(scores.logits.shape.back());
  const auto row = [&](std::size_t position) {
    return std::span(scores.logits.values).subspan(position * vocabulary, vocabulary);
  };
  const auto target = [&](std::size_t position) { return distribution(row(position), options_.sampling); };
  const std::size_t drafts = sequence.drafted.size(), before = sequence.tokens.size() - drafts;
  std::size_t kept = 0;
  std::optional<int> next;
  for (; kept < drafts && !next; ++kept) {
    const std::array<double, 2> uniform{sequence.draws.next(), sequence.draws.next()};
    const Verdict verdict = verified(sequence.tokens[before + kept], sequence.drafted[kept], target(kept), uniform);
    if (!verdict.accepted) next = verdict.token;
    report_.accepted += verdict.accepted ? 1 : 0;
    if (next) break;
  }
  sequence.tokens.resize(before + kept);
  shorten(sequence.large, static_cast<std::int64_t>(before + kept));
  shorten(sequence.small, static_cast<std::int64_t>(before + kept));
  sequence.tokens.push_back(next ? *next : drawn(target(kept), sequence.draws.next()));
  sequence.made += static_cast<std::int64_t>(kept) + 1;
  sequence.drafted.clear();
  for (std::size_t i = 0; options_.keeps_logits && i <= kept; ++i)
    sequence.logits.emplace_back(row(i).begin(), row(i).end());
  end(sequence, static_cast<std::int64_t>(kept) + 1);
}

Result<void> Server::step(const Group& all, bool is_prefill) {
  if (all.empty()) return {};
  const auto start = std::chrono::steady_clock::now();
  if (options_.forgets)
    for (Sequence* sequence : all) sequence->large = sequence->small = {};
  if (!is_prefill && options_.drafts > 0) ASSAY_CHECK(draft(all));
  // Sequences with as many drafts and tokens run together.
  std::map<std::size_t, Group> by_drafts;
  for (Sequence* sequence : all) by_drafts[sequence->drafted.size()].push_back(sequence);
  for (const auto& [drafts, some] : by_drafts)
    for (const Group& group : groups_of(large_, &Sequence::large, some)) {
      Side& side = is_prefill ? prompts_ : large_;
      ASSAY_TRY(scores, advance(side, &Sequence::large, group, static_cast<std::int64_t>(drafts) + 1));
      if (is_prefill && options_.prefill) hand_over(group);
      for (std::size_t s = 0; s < group.size(); ++s) take(*group[s], scores[s]);
      ++(is_prefill ? report_.prefills : report_.decodes);
      if (!is_prefill) report_.mean_batch += static_cast<double>(group.size());
    }
  (is_prefill ? report_.prefill_time : report_.decode_time) += time_since(start);
  return {};
}

void Server::seat(const Group& joining) {
  std::sort(free_places_.begin(), free_places_.end(), std::greater<>());
  for (Sequence* sequence : joining) {
    sequence->place = free_places_.back();
    free_places_.pop_back();
  }
}

void Server::record(EngineCall::Kind kind, const Group& group) {
  if (!options_.records) return;
  for (const Sequence* sequence : group) {
    EngineCall call{kind, report_.iterations, sequence->request, sequence->place, std::ssize(sequence->tokens), {}};
    if (kind == EngineCall::Kind::insert)
      for (const LayerCache& layer : sequence->large.kept.caches)
        for (const Array& array : layer) call.cache += storage(Dtype::fp64, static_cast<double>(array.values.size()));
    report_.calls.push_back(call);
  }
}

Result<void> Server::prefill(const Group& joining) {
  seat(joining);
  ASSAY_CHECK(step(joining, true));
  record(EngineCall::Kind::prefill, joining);
  return {};
}

void Server::insert(const Group& joining, Group& running) {
  running.insert(running.end(), joining.begin(), joining.end());
  record(EngineCall::Kind::insert, joining);
}

Result<void> Server::generate(const Group& running) {
  ASSAY_CHECK(step(running, false));
  record(EngineCall::Kind::generate, running);
  return {};
}

std::vector<Server::Sequence> Server::start(const std::vector<Prompt>& prompts) {
  report_ = {};
  free_places_.clear();
  for (std::int64_t place = std::min<std::int64_t>(options_.slots, std::ssize(prompts)); place-- > 0;)
    free_places_.push_back(static_cast<int>(place));
  report_.requests.resize(prompts.size());
  std::vector<Sequence> sequences(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    sequences[i].request = i;
    sequences[i].tokens = prompts[i].tokens;
    sequences[i].wanted = prompts[i].wanted;
    sequences[i].draws = Draws(mixed(options_.seed, i));
  }
  return sequences;
}

void Server::retire(Group& running) {
  std::erase_if(running, [&](Sequence* sequence) {
    if (sequence->made < sequence->wanted) return false;
    ServedRequest& done = report_.requests[sequence->request];
    done.finished = report_.iterations;
    const auto first = sequence->tokens.end() - sequence->made;
    done.tokens.assign(first, sequence->tokens.end());
    done.logits = std::move(sequence->logits);
    sequence->large = sequence->small = {};
    free_places_.push_back(sequence->place);
    return true;
  });
}

void Server::finish(const Group& running) {
  for (const Sequence* sequence : running)  // interrupted
    report_.requests[sequence->request].tokens.assign(sequence->tokens.end() - sequence->made, sequence->tokens.end());
  if (report_.decodes > 0) report_.mean_batch /= static_cast<double>(report_.decodes);
}

Result<ServerReport> Server::serve(const std::vector<Prompt>& prompts) {
  if (options_.queue) return serve_in_threads(prompts);
  std::vector<Sequence> sequences = start(prompts);
  std::size_t waiting = 0;
  Group running;
  while (waiting < sequences.size() || !running.empty()) {
    if (is_any_stopped(options_.transport)) {
      report_.is_interrupted = true;
      break;
    }
    ++report_.iterations;
    Group joining;
    for (; waiting < sequences.size() && std::ssize(running) + std::ssize(joining) < options_.slots; ++waiting) {
      report_.requests[waiting].started = report_.iterations;
      joining.push_back(&sequences[waiting]);
    }
    ASSAY_CHECK(prefill(joining));
    ASSAY_CHECK(generate(running));
    insert(joining, running);
    retire(running);
  }
  finish(running);
  return report_;
}

Flops next_token_flops(const model::Transformer& model, std::int64_t tokens, bool cached) {
  const lower::StageRules rules = lower::serving_stage({}, {}, model);
  Flops sum;
  for (const program::Step& step : lowered(model, rules, 1, cached ? 1 : tokens, tokens).steps) sum += step.flops;
  return sum;
}

double largest_shortfall(const model::Transformer& model, const NamedArrays& weights, std::vector<int> prompt,
                         const std::vector<int>& answer) {
  if (answer.empty()) return 0;
  prompt.insert(prompt.end(), answer.begin(), answer.end() - 1);
  const std::int64_t length = std::ssize(prompt);
  ServedSequences kept;
  const lower::StageRules rules = lower::serving_stage({}, {}, model);
  const ServingRun run =
      run_serving(lowered(model, rules, 1, length, length), model, weights,
                  {{1, length}, {prompt.begin(), prompt.end()}}, kept, {.scored = std::ssize(answer)});
  const auto vocabulary = at(model.vocabulary);
  double most = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const auto row = std::span(run.logits.values).subspan(i * vocabulary, vocabulary);
    most = std::max(most, *std::max_element(row.begin(), row.end()) - row[at(answer[i])]);
  }
  return most;
}

}  // namespace assay::engine
