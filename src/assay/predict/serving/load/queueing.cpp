#include "assay/predict/serving/load/queueing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "assay/predict/serving/load/batching_chain.h"
#include "assay/predict/serving/steady_state.h"

// Moments and tails of times in plain numbers: seconds and their powers, rates in requests per second.
namespace assay::serving {
namespace {

/// What prompts do to a server: means over their lengths.
struct PromptWork {
  double taken = 0, taken_squared = 0, taken_cubed = 0;  ///< seconds that a prompt takes from decoding, and powers
  double busy = 0, busy_squared = 0;  ///< seconds that a prompt keeps its server busy, and their square
  std::vector<double> own;            ///< seconds from the start of a prompt to its first token; all equally likely
};

PromptWork prompt_work(const LoadedServer& server, double sequences) {
  PromptWork work;
  constexpr std::size_t entries = 128;
  const Lengths prompts = server.lengths.prompt.thinned(server.lengths.prompt.is_fixed() ? 1 : entries);
  const auto table = prompts.table();
  const auto n = static_cast<double>(table.size());
  const double context = server.lengths.context;
  const double decode_only =
      server.policy == BatchingPolicy::chunked ? server.step(std::max(1.0, sequences), context).value() : 0.0;
  const double full =
      server.policy == BatchingPolicy::chunked ? server.mixed(sequences, context, server.chunk).value() : 0.0;
  for (const std::int64_t length : table) {
    const auto tokens = static_cast<double>(length);
    double taken = 0.0, busy = 0.0, own = 0.0;
    if (server.policy == BatchingPolicy::chunked) {
      const double pieces = std::floor(tokens / server.chunk), rest = tokens - pieces * server.chunk;
      const double last = rest > 0.0 ? server.mixed(sequences, context, rest).value() : 0.0;
      own = pieces * full + last;
      taken = pieces * (full - decode_only) + (rest > 0.0 ? last - decode_only : 0.0);
      busy = tokens / server.chunk * full;  // the rest of a chunk goes to the next prompt
    } else {
      own = busy = taken = server.prefill(tokens).value();
      if (server.policy == BatchingPolicy::disaggregated) taken = 0.0;
    }
    work.taken += taken / n;
    work.taken_squared += taken * taken / n;
    work.taken_cubed += taken * taken * taken / n;
    work.busy += busy / n;
    work.busy_squared += busy * busy / n;
    work.own.push_back(own);
  }
  return work;
}

/// Decoding stands still while prompts are worked on, so that all that arrive in such a busy period of an M/G/1 queue
/// start together: batches whose dispersion is E[x^2] / E[x].
double dispersion(const PromptWork& work, double rate) {
  const double used = std::min(0.999, rate * work.taken), left = 1.0 - used;
  const double variance = std::max(0.0, work.taken_squared - work.taken * work.taken);
  return (used + rate * rate * variance) / (left * left) + 1.0 / left;
}

/// How long two sequences that start together stay together, relative to how long one stays; 1/2 if they end at random.
double together(const Lengths& output) {
  const auto table = output.table();  // sorted: the i-th is the shorter one of n - i pairs
  double sum = 0.0;
  const auto n = static_cast<double>(table.size());
  for (std::size_t i = 0; i < table.size(); ++i)
    sum += static_cast<double>(table[i]) * (2.0 * (n - static_cast<double>(i)) - 1.0) / (n * n);
  return sum / output.mean();
}

/// Sequences in a processor-sharing queue whose n members leave at the rate n / (steps x seconds(n)), at most `most` of
/// them at once: means and the variance of those in service. Arrivals that are `peaked` count in lumps of that many
/// (Hayward's approximation).
struct Sharing {
  double sequences = 0, variance = 0, waiting = 0, idle = 1, full = 0;
};

template <class F>
Sharing share_steps(double rate, double steps, double most, double peaked, double full, F seconds) {
  const double lumps = std::max(1.0, std::round(most / peaked)), lump = most / lumps;
  // Products of many ratios: as logarithms, and relative to the largest.
  const auto n = static_cast<std::size_t>(lumps);
  std::vector<double> log{0.0};
  const auto ratio_at = [&](double k) { return rate * steps * seconds(std::max(1.0, k * lump)) / (k * lump); };
  for (std::size_t k = 1; k <= n; ++k) log.push_back(log.back() + std::log(ratio_at(static_cast<double>(k))));
  const double top = *std::max_element(log.begin(), log.end());
  double sum = 0.0, first = 0.0, second = 0.0;
  for (std::size_t k = 0; k <= n; ++k) {
    const double p = std::exp(log[k] - top), x = static_cast<double>(k);
    sum += p;
    first += p * x;
    second += p * x * x;
  }
  // Beyond `most` each that leaves lets one prompt in, and its work is waited for: not a share of the time as before,
  // but all of it. So the number falls by the utilisation of the full server each time.
  const double ratio = rate * full;
  const double last = std::exp(log.back() - top), beyond = last * ratio / (1.0 - ratio);
  sum += beyond;
  first += beyond * lumps;
  second += beyond * lumps * lumps;
  Sharing out;
  out.sequences = lump * first / sum;
  out.variance = lump * lump * std::max(0.0, second / sum - first / sum * first / sum);
  // Clumps decide whether the batch is full; once it is, only the mean rates count.
  out.waiting = beyond / (1.0 - ratio) / sum;
  out.idle = std::exp(-top) / sum;
  out.full = (last + beyond) / sum;
  return out;
}

/// Probability that all of c servers are busy (Erlang C), for whole c; between them along a straight line.
double all_busy(double servers, double load) {
  const auto whole = [&](double c) {
    double blocked = 1.0;  // Erlang B, by its recursion
    for (double k = 1.0; k <= c; k += 1.0) blocked = load * blocked / (k + load * blocked);
    const double used = load / c;
    return used >= 1.0 ? 1.0 : blocked / (1.0 - used * (1.0 - blocked));
  };
  const double low = std::max(1.0, std::floor(servers)), share = std::max(0.0, servers - low);
  return share > 0.0 ? (1.0 - share) * whole(low) + share * whole(low + 1.0) : whole(low);
}

/// A time that is zero except with some probability, and then exponential.
struct Wait {
  double probability = 0, mean = 0;  ///< mean over all requests
  double scale() const { return probability > 0.0 ? mean / probability : 0.0; }
};

/// P(first + second > t) for two independent waits.
double tail(const Wait& first, const Wait& second, double t) {
  if (t < 0.0) return 1.0;
  const auto one = [&](const Wait& w) { return w.scale() > 0.0 ? std::exp(-t / w.scale()) : 0.0; };
  const double a = first.scale(), b = second.scale();
  double both = 0.0;
  if (a > 0.0 && b > 0.0)
    both = std::abs(a - b) < 1e-6 * a ? (1.0 + t / a) * std::exp(-t / a)
                                      : (a * std::exp(-t / a) - b * std::exp(-t / b)) / (a - b);
  return first.probability * (1.0 - second.probability) * one(first) +
         (1.0 - first.probability) * second.probability * one(second) + first.probability * second.probability * both;
}

/// The value at which the falling function `above` crosses 1 - share.
template <class F>
double quantile(double share, double start, F above) {
  double high = std::max(start, 1e-9);
  while (above(high) > 1.0 - share && high < 1e12) high *= 2.0;
  double low = 0.0;
  for (int i = 0; i < 60 && high - low > 1e-5 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (above(middle) > 1.0 - share ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

template <class F>
Spread spread(double mean, F above) {
  const auto at = [&](double share) { return Seconds(quantile(share, mean, above)); };
  return {Seconds(mean), at(0.5), at(0.9), at(0.99)};
}

/// A server that runs steps for others when a request comes, with some probability.
struct Running {
  double busy = 0, step = 0;  ///< the probability; seconds of a step
  double sequences = 1;       ///< of a step, new ones included
};

/// First tokens: two waits, the rest of a running step and those that are prepared, the prompt itself, and the way from
/// and to the client.
void set_first_token(const LoadedServer& server, const PromptWork& work, const Wait& place, const Wait& prompts,
                     const Running& running, LoadedTimes& out) {
  const double busy = running.busy, step = running.step;
  double own = 0.0;
  for (double s : work.own) own += s / static_cast<double>(work.own.size());
  const Seconds one(step), admission = busy * admission_time(Plain{}, server.path, one, one);
  out.first_parts = {front_end_time(Plain{}, server.path, server.lengths.prompt.mean()),
                     Seconds(place.mean + prompts.mean) + admission, Seconds(own),
                     delivery_time(Plain{}, server.path, running.sequences)};
  const double way = (out.first_parts.front_end + out.first_parts.delivery).value(), ahead = server.path.ahead;
  constexpr int parts = 8;
  out.first_token = spread(out.first_parts.time().value(), [&](double total) {
    const double t = total - way;
    double sum = 0.0;
    for (double s : work.own) {
      double rest = (1.0 - busy) * tail(place, prompts, t - s);
      for (int i = 0; i < parts; ++i)
        rest += busy / parts * tail(place, prompts, t - s - step * ((i + 0.5) / parts + ahead));
      sum += rest;
    }
    return sum / static_cast<double>(work.own.size());
  });
}

/// P(x > t) for a gamma distribution of that shape and scale 1: a series for small t, a continued fraction beyond.
double gamma_tail(double shape, double t) {
  if (t <= 0.0) return 1.0;
  const double front = std::exp(shape * std::log(t) - t - std::lgamma(shape));
  if (t < shape + 1.0) {
    double term = 1.0 / shape, sum = term;
    for (double k = shape + 1.0; term > 1e-12 * sum; k += 1.0) sum += term *= t / k;
    return std::max(0.0, 1.0 - front * sum);
  }
  double b = t + 1.0 - shape, c = 1e300, d = 1.0 / b, h = d;
  for (double k = 1.0; k < 1000.0; k += 1.0) {
    const double a = -k * (k - shape);
    b += 2.0;
    d = 1.0 / (a * d + b);
    c = b + a / c;
    h *= d * c;
    if (std::abs(d * c - 1.0) < 1e-12) break;
  }
  return front * h;
}

/// A mean over tokens: P(value > t) from its first three moments (a shifted gamma distribution, normal without skew).
struct TokenMean {
  double tokens, mean, variance, third;  ///< central moments
  double above(double t) const {
    if (variance <= 0.0) return t < mean ? 1.0 : 0.0;
    const double z = (t - mean) / std::sqrt(variance), skew = third / (variance * std::sqrt(variance));
    if (skew < 1e-3) return 1.0 - normal_share(z);
    return gamma_tail(4.0 / (skew * skew), 4.0 / (skew * skew) + 2.0 * z / skew);
  }
};

/// Share of a variance that is left in the mean over `x` correlation times.
double left_in_mean(double x) { return x > 1e-6 ? 2.0 / (x * x) * (x - 1.0 + std::exp(-x)) : 1.0; }

/// Seconds per token: the mean, and how much one more sequence in the batch adds.
struct TokenPace {
  double mean = 0, slope = 0;
};

/// Time per token of a request, over its life: the batch around it changes, and prompts interrupt it. `place` is what
/// it waits after its first token.
Spread per_token(const LoadedServer& server, const Sharing& sharing, const PromptWork& work, double rate,
                 const TokenPace& pace, const Wait& place) {
  const double mean = pace.mean;
  const Lengths output = server.lengths.output.thinned(server.lengths.output.is_fixed() ? 1 : 64);
  // Correlation time of the number of sequences, in steps: the mean rest of an output.
  const double memory = 0.5 * output.mean() * (1.0 + output.squared_variation());
  const double sequences = std::max(1.0, sharing.sequences), context = server.lengths.context;
  // Prompts that go first interrupt a step for a whole busy period, and busy periods start at random: a compound
  // Poisson process. A full batch admits one prompt at a time.
  const double used = std::min(0.999, rate * work.taken), left = 1.0 - (1.0 - sharing.full) * used;
  const double squared = work.taken_squared / (left * left * left);
  const double cubed =
      work.taken_cubed / std::pow(left, 4) + 3.0 * rate * work.taken_squared * work.taken_squared / std::pow(left, 5);
  // A sequence whose prompt is done also waits for those behind it: as many busy periods as an M/G/1 queue is left
  // with.
  const double behind =
      (1.0 - sharing.full) * (used + 0.5 * rate * rate * work.taken_squared / left) * work.taken / left;
  // Pieces of prompts make steps longer by as much each, for as long as there are any.
  const bool in_pieces = server.policy == BatchingPolicy::chunked;
  const double decode_only = in_pieces ? server.step(sequences, context).value() : 0.0;
  const double longer =
      in_pieces ? std::max(1e-12, server.mixed(sequences, context, server.chunk).value() - decode_only) : 0.0;
  const double share = in_pieces ? std::clamp((mean - decode_only) / longer, 0.0, 1.0) : 0.0;
  const double run =
      in_pieces ? work.busy_squared / (2.0 * work.busy * std::max(1e-3, 1.0 - rate * work.busy)) / mean : 1.0;
  struct Group {
    TokenMean mean, ceiling;
  };
  std::vector<Group> groups;
  for (const std::int64_t length : output.table()) {
    const auto n = static_cast<double>(length);
    const double of_batch = pace.slope * pace.slope * sharing.variance * left_in_mean(n / memory);
    if (in_pieces) {
      const double pieces = share * (1.0 - share) * longer * longer * left_in_mean(n / run);
      groups.push_back({{n, mean, of_batch + pieces, 0.0}, {n, mean + (1.0 - share) * longer, of_batch, 0.0}});
    } else {
      const double starts = rate * mean * (1.0 - used);  // per token
      TokenMean one{n, mean, of_batch + starts * squared / n, starts * cubed / (n * n)};
      if (behind > 0.0) {  // nothing, but with probability `used` exponential
        const double twice = 2.0 * behind * behind / used, thrice = 3.0 * twice * behind / used;
        one.mean += behind * (1.0 / n - 1.0 / output.mean());
        one.variance += (twice - behind * behind) / (n * n);
        one.third += (thrice - 3.0 * twice * behind + 2.0 * behind * behind * behind) / (n * n * n);
      }
      groups.push_back({one, one});
    }
  }
  constexpr int parts = 16;
  return spread(mean + place.mean / output.mean(), [&](double t) {
    double sum = 0.0;
    const auto above = [&](const Group& g, double seconds) {
      return std::min(g.mean.above(seconds), g.ceiling.above(seconds));
    };
    for (const Group& g : groups) {
      sum += (1.0 - place.probability) * above(g, t);
      for (int i = 0; place.probability > 0.0 && i < parts; ++i)
        sum += place.probability / parts * above(g, t + place.scale() * std::log1p(-(i + 0.5) / parts) / g.mean.tokens);
    }
    return sum / static_cast<double>(groups.size());
  });
}

/// Steps that a sequence holds a place of the batch: with pieces also those in which its prompt is worked on.
double steps_in_batch(const LoadedServer& server) {
  double steps = server.lengths.output.mean();
  if (server.policy != BatchingPolicy::chunked) return steps;
  const auto prompts = server.lengths.prompt.table();
  for (const std::int64_t tokens : prompts)
    steps += std::ceil(static_cast<double>(tokens) / server.chunk) / static_cast<double>(prompts.size());
  return steps;
}

/// Steps of a server whose `places` are taken all the time, where prompts join them.
struct TakenPlaces {
  double pieces = 1;               ///< steps of a prompt
  double prompt = 0, token = 0;    ///< seconds of a place's prompt, and of each token
  double requests_per_second = 0;  ///< requests that end
};

TakenPlaces taken_places(const LoadedServer& server, double places) {
  const double output = server.lengths.output.mean(), context = server.lengths.context;
  TakenPlaces out;
  out.pieces = steps_in_batch(server) - output;
  const SteadyLoad load = steady_load({places, output, server.lengths.prompt.mean(), server.chunk, out.pieces});
  double mixed = server.mixed(load.sequences, context, load.tokens).value();
  if (load.share < 1.0) {  // pieces of one prompt at a time: whole chunks, and what is left of each prompt
    const PromptWork work = prompt_work(server, load.sequences);
    mixed = std::accumulate(work.own.begin(), work.own.end(), 0.0) / static_cast<double>(work.own.size()) / out.pieces;
  }
  const SteadyTimes times = steady_times(load, Seconds(mixed), server.step(load.alone, context));
  out.prompt = out.pieces * mixed;
  out.token = times.per_token.value();
  out.requests_per_second = load.requests / times.step.value();
  return out;
}

double saturation_of(const LoadedServer& server) {
  if (server.policy == BatchingPolicy::chunked) return taken_places(server, server.most).requests_per_second;
  const PromptWork full = prompt_work(server, server.most);
  const double saturation =
      1.0 /
      (full.taken + steps_in_batch(server) * server.step(server.most, server.lengths.context).value() / server.most);
  if (server.policy == BatchingPolicy::interleaved) return saturation;
  return std::min(saturation, server.prefill_servers / full.busy);
}

/// Time that a request takes of the full server.
struct FullServer {
  double prompt = 0, decoding = 0;  ///< seconds, means
  double prompt_variance = 0;
  double seconds() const { return prompt + decoding; }
  /// Squared variation of these seconds, given the squared variation of outputs.
  double variation(double of_output) const {
    return (prompt_variance + decoding * decoding * of_output) / (seconds() * seconds());
  }
};

FullServer full_server(const LoadedServer& server) {
  const PromptWork work = prompt_work(server, server.most);
  const double decoding =
      steps_in_batch(server) * server.step(server.most, server.lengths.context).value() / server.most;
  const double prompt =
      server.policy == BatchingPolicy::chunked ? std::max(0.0, 1.0 / saturation_of(server) - decoding) : work.taken;
  return {prompt, decoding, work.taken_squared - work.taken * work.taken};
}

/// Sequences and prompts at a server under load.
struct LoadState {
  PromptWork work;
  Sharing sharing;
  double wait_scale = 1;  ///< scales the wait for a place by how regularly places are freed
  double own_place = 0;   ///< share of prompts that follow the one whose place they got: that wait is counted already
};

/// A decode step of n sequences with the time that prompts take from it.
double stretched_step(const LoadedServer& server, const PromptWork& work, double rate, double n) {
  return server.step(n, server.lengths.context).value() / std::max(1e-9, 1.0 - std::min(1.0 - 1e-9, rate * work.taken));
}

/// Prompts go first: the requests at the server are a Markov chain, which assumes that sequences end at random. Where
/// their lengths vary less, clumps last longer, as if there were fewer and larger sequences (Hayward's approximation),
/// and a full batch frees its places more regularly.
void share_interleaved(const LoadedServer& server, double rate, double clumps, double peaked, const FullServer& full,
                       LoadState& state) {
  const double steps = server.lengths.output.mean(), context = server.lengths.context;
  const double lumps = std::max(1.0, std::round(server.most * (1.0 + 0.5 * clumps) / peaked));
  const double lump = server.most / lumps;
  std::vector<Seconds> prompts;
  for (const double seconds : state.work.own) prompts.emplace_back(seconds * lump);
  const ChainTimes chain =
      solve_chain({Hertz(rate / lump), prompts,
                   [&](double k) { return k / (steps * server.step(std::max(1.0, k * lump), context)); }, lumps});
  state.sharing = {lump * chain.sequences, lump * lump * chain.variance, chain.waiting, chain.idle, chain.full};
  state.wait_scale /= 0.5 * (1.0 + full.variation(1.0));
}

/// Chunks of prompts join decode steps: both prompts and decoding hold places, and only decoding counts as sequences.
void share_chunked(const LoadedServer& server, double rate, double peaked, const FullServer& full, LoadState& state) {
  const double steps = server.lengths.output.mean(), context = server.lengths.context;
  Sharing& sharing = state.sharing;
  sharing = share_steps(rate, steps, server.most, peaked, full.seconds(), [&](double n) {
    const TakenPlaces of = taken_places(server, n);
    return of.token + of.prompt / steps;
  });
  const TakenPlaces usual = taken_places(server, std::max(1.0, sharing.sequences));
  sharing.sequences *= steps * usual.token / (usual.prompt + steps * usual.token);
  // Requests whose prompts queue hold no place yet. Chunks meet no more sequences than there are on average, since a
  // full batch takes none: at most the chunks' share of the time is spent in longer steps.
  for (int i = 0; i < 20; ++i) {
    const double sequences = std::max(1.0, sharing.sequences);
    state.work = prompt_work(server, sequences);
    double prompt = 0.0;
    for (double own : state.work.own) prompt += own / static_cast<double>(state.work.own.size());
    const double share = std::min(1.0, rate * prompt);
    const double rates = share * usual.pieces / prompt + (1.0 - share) / server.step(sequences, context).value();
    sharing.sequences = std::min(sharing.sequences, rate * steps / rates);
  }
  const TakenPlaces crowd = taken_places(server, server.most);
  state.own_place = std::min(1.0 / server.most, sharing.full / (rate * (crowd.prompt + steps * crowd.token)));
}

/// The time a prompt takes from decoding depends on the sequences in the batch, and their number on that time.
LoadState load_state(const LoadedServer& server, double rate) {
  const Lengths& output = server.lengths.output;
  const FullServer full = full_server(server);
  LoadState state;
  state.work = prompt_work(server, 1.0);
  state.wait_scale = 0.5 * (1.0 + full.variation(output.squared_variation()));
  const double clumps = dispersion(state.work, rate) - 1.0, peaked = 1.0 + together(output) * clumps;
  switch (server.policy) {
    case BatchingPolicy::interleaved:
      share_interleaved(server, rate, clumps, peaked, full, state);
      break;
    case BatchingPolicy::chunked:
      share_chunked(server, rate, peaked, full, state);
      break;
    case BatchingPolicy::disaggregated:
      state.sharing = share_steps(rate, output.mean(), server.most, peaked, full.seconds(),
                                  [&](double n) { return stretched_step(server, state.work, rate, n); });
      break;
  }
  return state;
}

/// The queue of prompts on servers of their own (M/G/c), and the share of their time that is used.
Wait separate_prompt_queue(const LoadedServer& server, const PromptWork& work, double rate, double& used) {
  const double servers = server.prefill_servers * server.replicas, all = rate * server.replicas;
  const double load = all * work.busy;
  const double squared = work.busy_squared / (work.busy * work.busy);  // one plus the squared variation
  used = load / servers;
  Wait wait;
  wait.probability = all_busy(servers, load);
  wait.mean = wait.probability * work.busy / (servers * (1.0 - used)) * 0.5 * squared;
  return wait;
}

}  // namespace

LoadedTimes loaded_times(const LoadedServer& server, Hertz arriving) {
  const double rate = arriving.value();
  const double steps = server.lengths.output.mean(), context = server.lengths.context;
  LoadedTimes out;
  out.saturation = Hertz(saturation_of(server));
  out.utilisation = arriving / out.saturation;
  out.stable = out.utilisation < 1.0;
  if (!out.stable) return out;
  const LoadState state = load_state(server, rate);
  const auto& [work, sharing, wait_scale, own_place] = state;
  out.sequences = sharing.sequences;
  out.waiting = wait_scale * sharing.waiting;
  const Wait place{sharing.full, out.waiting / rate};
  // A first token that a prefill server makes does not wait for a place among the sequences; the others do.
  const bool separate = server.policy == BatchingPolicy::disaggregated;
  if (separate) {
    const Wait prompts = separate_prompt_queue(server, work, rate, out.prefill_share);
    set_first_token(server, work, Wait{}, prompts, {}, out);
  } else {
    const double others = rate * (1.0 - own_place), used = others * work.busy;
    const Wait prompts{used, others * work.busy_squared / (2.0 * (1.0 - used))};
    out.prefill_share = rate * work.taken;
    const double at_once = std::max(1.0, sharing.sequences);
    set_first_token(server, work, place, prompts, {1.0 - sharing.idle, server.step(at_once, context).value(), at_once},
                    out);
  }
  // Little's law: sequences in decoding over the tokens that leave.
  TokenPace pace{sharing.sequences / (rate * steps), 0.0};
  const double at = std::max(1.0, sharing.sequences), next = std::min(server.most, at + 1.0);
  if (next > at)
    pace.slope = (stretched_step(server, work, rate, next) - stretched_step(server, work, rate, at)) / (next - at);
  out.per_token = per_token(server, sharing, work, rate, pace, separate ? place : Wait{});
  out.last_token = out.first_token.mean + steps * out.per_token.mean + (separate ? server.transfer : Seconds());
  return out;
}

Hertz largest_rate(const LoadedServer& server, Seconds first_token, Seconds per_token) {
  const Hertz saturation(saturation_of(server));
  const auto meets = [&](Hertz rate) {
    const LoadedTimes times = loaded_times(server, rate);
    return times.stable && times.first_token.p99 <= first_token && times.per_token.p99 <= per_token;
  };
  Hertz low = 1e-6 * saturation, high = saturation;
  if (!meets(low)) return {};
  for (int i = 0; i < 24; ++i) {
    const Hertz middle = 0.5 * (low + high);
    (meets(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace assay::serving
