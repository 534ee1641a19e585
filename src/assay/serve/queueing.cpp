#include "assay/serve/queueing.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay {
namespace {

/// What prompts do to a server: means over their lengths.
struct PromptWork {
  double taken = 0, taken_squared = 0;  ///< seconds that a prompt takes from decoding, and the mean of their square
  double busy = 0, busy_squared = 0;    ///< the same of the prompts' server
  std::vector<double> own;              ///< seconds from its start to the first token; each an equal share
};

PromptWork prompt_work(const LoadedServer& server, double sequences) {
  PromptWork work;
  constexpr std::size_t entries = 128;
  const Lengths prompts = server.lengths.prompt.thinned(server.lengths.prompt.is_fixed() ? 1 : entries);
  const auto table = prompts.table();
  const auto n = static_cast<double>(table.size());
  const double context = server.lengths.context;
  const double alone = server.policy == BatchingPolicy::chunked ? server.step(std::max(1.0, sequences), context) : 0.0;
  const double full = server.policy == BatchingPolicy::chunked ? server.mixed(sequences, context, server.chunk) : 0.0;
  for (const std::int64_t length : table) {
    const auto tokens = static_cast<double>(length);
    double taken = 0.0, busy = 0.0, own = 0.0;
    if (server.policy == BatchingPolicy::chunked) {
      const double pieces = std::floor(tokens / server.chunk), rest = tokens - pieces * server.chunk;
      const double last = rest > 0.0 ? server.mixed(sequences, context, rest) : 0.0;
      own = pieces * full + last;
      taken = pieces * (full - alone) + (rest > 0.0 ? last - alone : 0.0);
      busy = tokens / server.chunk * full;  // the rest of a chunk goes to the next prompt
    } else {
      own = busy = taken = server.prefill(tokens);
      if (server.policy == BatchingPolicy::disaggregated) taken = 0.0;
    }
    work.taken += taken / n, work.taken_squared += taken * taken / n;
    work.busy += busy / n, work.busy_squared += busy * busy / n;
    work.own.push_back(own);
  }
  return work;
}

/// How much more the number of sequences varies than if they came at random. Decoding stands still while prompts are
/// worked on, so that all that arrive in such a busy period of an M/G/1 queue start together: batches whose dispersion
/// E[x^2] / E[x] counts for as long as two sequences of a batch stay together.
double peakedness(const LoadedServer& server, const PromptWork& work, double rate) {
  const double used = std::min(0.999, rate * work.taken), left = 1.0 - used;
  const double variance = std::max(0.0, work.taken_squared - work.taken * work.taken);
  const double dispersion = (used + rate * rate * variance) / (left * left) + 1.0 / left;
  const auto table = server.lengths.output.table();  // sorted: the i-th is the shorter one of n - i pairs
  double together = 0.0;
  const auto n = static_cast<double>(table.size());
  for (std::size_t i = 0; i < table.size(); ++i)
    together += static_cast<double>(table[i]) * (2.0 * (n - static_cast<double>(i)) - 1.0) / (n * n);
  return 1.0 + (dispersion - 1.0) * together / server.lengths.output.mean();
}

/// Sequences in a processor-sharing queue whose n members leave at the rate n / (steps x seconds(n)), at most `most` of
/// them at once: means and the variance of those in service. Arrivals that are `peaked` count in lumps of that many
/// (Hayward's approximation).
struct Sharing {
  double sequences = 0, variance = 0, waiting = 0, idle = 1, full = 0;
};

template <class F>
Sharing share_steps(double rate, double steps, double most, double peaked, F seconds) {
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
    sum += p, first += p * x, second += p * x * x;
  }
  // Beyond `most` it falls by the same ratio each time.
  const double ratio = ratio_at(lumps);
  const double last = std::exp(log.back() - top), beyond = last * ratio / (1.0 - ratio);
  sum += beyond, first += beyond * lumps, second += beyond * lumps * lumps;
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

/// Time that is zero but with a probability, and then exponential.
struct Wait {
  double probability = 0, mean = 0;  ///< mean over all requests
  double scale() const { return probability > 0.0 ? mean / probability : 0.0; }
};

/// P(first + second > t) for two independent ones.
double tail(const Wait& first, const Wait& second, double t) {
  if (t < 0.0) return 1.0;
  const auto alone = [&](const Wait& w) { return w.scale() > 0.0 ? std::exp(-t / w.scale()) : 0.0; };
  const double a = first.scale(), b = second.scale();
  double both = 0.0;
  if (a > 0.0 && b > 0.0)
    both = std::abs(a - b) < 1e-6 * a ? (1.0 + t / a) * std::exp(-t / a)
                                      : (a * std::exp(-t / a) - b * std::exp(-t / b)) / (a - b);
  return first.probability * (1.0 - second.probability) * alone(first) +
         (1.0 - first.probability) * second.probability * alone(second) + first.probability * second.probability * both;
}

/// The value that `above`, which falls, crosses at 1 - share.
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
  return {mean, quantile(0.5, mean, above), quantile(0.9, mean, above), quantile(0.99, mean, above)};
}

/// First tokens: two waits, the rest of a step (with a probability), and the prompt itself.
Spread first_token(const PromptWork& work, const Wait& place, const Wait& prompts, double busy, double step) {
  double own = 0.0;
  for (double s : work.own) own += s / static_cast<double>(work.own.size());
  const double mean = place.mean + prompts.mean + busy * step / 2.0 + own;
  constexpr int parts = 8;
  return spread(mean, [&](double t) {
    double sum = 0.0;
    for (double s : work.own) {
      double rest = (1.0 - busy) * tail(place, prompts, t - s);
      for (int i = 0; i < parts; ++i) rest += busy / parts * tail(place, prompts, t - s - step * (i + 0.5) / parts);
      sum += rest;
    }
    return sum / static_cast<double>(work.own.size());
  });
}

/// Time per token of a request, over its life: the number of sequences beside it changes, and prompts come in between.
/// `place` is what it waits after its first token.
Spread per_token(const LoadedServer& server, const Sharing& sharing, const PromptWork& work, double rate, double mean,
                 double slope, const Wait& place) {
  const Lengths output = server.lengths.output.thinned(server.lengths.output.is_fixed() ? 1 : 64);
  // How many steps the number of sequences stays alike: the mean rest of an output.
  const double memory = 0.5 * output.mean() * (1.0 + output.squared_variation());
  struct Group {
    double tokens, deviation;
  };
  std::vector<Group> groups;
  for (const std::int64_t length : output.table()) {
    const auto n = static_cast<double>(length);
    const double x = n / memory;
    const double kept = x > 1e-6 ? 2.0 / (x * x) * (x - 1.0 + std::exp(-x)) : 1.0;
    groups.push_back({n, std::sqrt(slope * slope * sharing.variance * kept + rate * mean * work.taken_squared / n)});
  }
  const auto above = [&](const Group& g, double t) {
    return g.deviation > 0.0 ? 1.0 - normal_share((t - mean) / g.deviation) : (t < mean ? 1.0 : 0.0);
  };
  constexpr int parts = 16;
  return spread(mean + place.mean / output.mean(), [&](double t) {
    double sum = 0.0;
    for (const Group& g : groups) {
      sum += (1.0 - place.probability) * above(g, t);
      for (int i = 0; place.probability > 0.0 && i < parts; ++i)
        sum += place.probability / parts * above(g, t + place.scale() * std::log1p(-(i + 0.5) / parts) / g.tokens);
    }
    return sum / static_cast<double>(groups.size());
  });
}

double saturation_of(const LoadedServer& server) {
  const double steps = server.lengths.output.mean(), context = server.lengths.context;
  const PromptWork full = prompt_work(server, server.most);
  double saturation = 1.0 / (full.taken + steps * server.step(server.most, context) / server.most);
  if (server.policy == BatchingPolicy::chunked) saturation = std::min(saturation, 1.0 / full.busy);
  if (server.policy == BatchingPolicy::disaggregated)
    saturation = std::min(saturation, server.prefill_servers / full.busy);
  return saturation;
}

}  // namespace

LoadedTimes loaded_times(const LoadedServer& server, double rate) {
  const double steps = server.lengths.output.mean(), context = server.lengths.context;
  LoadedTimes out;
  out.saturation = saturation_of(server);
  out.utilisation = rate / out.saturation;
  out.stable = out.utilisation < 1.0;
  if (!out.stable) return out;
  // What a prompt takes from decoding depends on the sequences beside it, and those on what prompts take.
  Sharing sharing;
  PromptWork work = prompt_work(server, 1.0);
  const auto stretched = [&](double n) {
    return server.step(n, context) / std::max(1e-9, 1.0 - std::min(1.0 - 1e-9, rate * work.taken));
  };
  const int rounds = server.policy == BatchingPolicy::chunked ? 30 : 1;
  for (int i = 0; i < rounds; ++i) {
    sharing = share_steps(rate, steps, server.most, peakedness(server, work, rate), stretched);
    if (rounds > 1) work = prompt_work(server, std::max(1.0, sharing.sequences));
  }
  out.sequences = sharing.sequences;
  const double scale = 0.5 * (1.0 + server.lengths.output.squared_variation());
  out.waiting = scale * sharing.waiting;
  const Wait place{sharing.full, out.waiting / rate};
  const bool apart = server.policy == BatchingPolicy::disaggregated;
  Wait prompts;
  double busy = 0.0, step = 0.0;
  if (apart) {
    const double servers = server.prefill_servers * server.replicas, all = rate * server.replicas;
    const double load = all * work.busy, used = load / servers;
    const double variation = work.busy_squared / (work.busy * work.busy);  // one plus the squared variation
    prompts.probability = all_busy(servers, load);
    prompts.mean = prompts.probability * work.busy / (servers * (1.0 - used)) * 0.5 * variation;
    out.prefill_share = used;
  } else {
    const double used = rate * work.busy;
    prompts = {used, rate * work.busy_squared / (2.0 * (1.0 - used))};
    out.prefill_share = rate * work.taken;
    busy = 1.0 - sharing.idle;
    step = server.step(std::max(1.0, sharing.sequences), context);
  }
  // A first token that a prefill server makes does not wait for a place among the sequences; the others do.
  out.first_token = first_token(work, apart ? Wait{} : place, prompts, busy, step);
  // Little's law: sequences in decoding over the tokens that leave.
  const double mean = sharing.sequences / (rate * steps);
  const double at = std::max(1.0, sharing.sequences), next = std::min(server.most, at + 1.0);
  const double slope = next > at ? (stretched(next) - stretched(at)) / (next - at) : 0.0;
  out.per_token = per_token(server, sharing, work, rate, mean, slope, apart ? place : Wait{});
  out.last_token = out.first_token.mean + steps * out.per_token.mean + (apart ? server.transfer : 0.0);
  return out;
}

double largest_rate(const LoadedServer& server, double first_token, double per_token) {
  const double saturation = saturation_of(server);
  const auto meets = [&](double rate) {
    const LoadedTimes times = loaded_times(server, rate);
    return times.stable && times.first_token.p99 <= first_token && times.per_token.p99 <= per_token;
  };
  double low = 1e-6 * saturation, high = saturation;
  if (!meets(low)) return 0.0;
  for (int i = 0; i < 24; ++i) {
    const double middle = 0.5 * (low + high);
    (meets(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace assay
