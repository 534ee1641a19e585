#include "assay/predict/serving/load/batching_chain.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::serving {
namespace {

constexpr double negligible = 1e-10;

/// Arrivals during one prompt: Poisson for each length of it.
std::vector<double> arrivals_of(const ChainServer& server) {
  std::vector<double> out;
  const double share = 1.0 / static_cast<double>(server.prompts.size());
  std::vector<double> now;
  for (const Seconds prompt : server.prompts) now.push_back(share * std::exp(-server.rate * prompt));
  double left = 1.0;
  for (std::size_t k = 0; k < 4000 && left > negligible; ++k) {
    double sum = 0.0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      sum += now[i];
      now[i] *= server.rate * server.prompts[i] / static_cast<double>(k + 1);
    }
    out.push_back(sum);
    left -= sum;
  }
  return out;
}

/// Work on prompts that one arrival starts, with room for `room` of them: how many requests came until it ended, as the
/// probability of more than each number; and how many prompts were worked on.
struct Clump {
  std::vector<double> more;     ///< more[j]: probability that the number is above j
  std::vector<double> reached;  ///< reached[i]: probability that prompt i + 1 is worked on
};

/// Clumps for every room from 1 on, until more room makes no difference.
std::vector<Clump> clumps_of(const std::vector<double>& arrivals, std::size_t most) {
  std::vector<Clump> out;
  std::vector<double> queue{0.0, 1.0};  // probability of so many that wait for work, with work still going on
  std::vector<double> ended{0.0};       // ended[j]: all were done after j prompts
  std::vector<double> reached;
  for (std::size_t room = 1; room <= most; ++room) {
    double going = 0.0;
    for (double p : queue) going += p;
    reached.push_back(going);
    std::vector<double> next(queue.size() + arrivals.size() - 1, 0.0);
    for (std::size_t q = 1; q < queue.size(); ++q)
      for (std::size_t k = 0; k < arrivals.size(); ++k) next[q - 1 + k] += queue[q] * arrivals[k];
    while (next.size() > 1 && next.back() < negligible * 1e-3) next.pop_back();
    // Here work ends, with next[q] that still wait; those that were done earlier are in `ended`.
    std::vector<double> number = ended;
    number.resize(room + next.size(), 0.0);
    for (std::size_t q = 0; q < next.size(); ++q) number[room + q] += next[q];
    Clump clump;
    clump.reached = reached;
    clump.more.assign(number.size(), 0.0);
    double above = 0.0;
    for (std::size_t j = number.size(); j-- > 0;) clump.more[j] = above, above += number[j];
    out.push_back(std::move(clump));
    ended.push_back(next[0]);
    next[0] = 0.0;
    queue = std::move(next);
    if (going < negligible) break;
  }
  return out;
}

}  // namespace

ChainTimes solve_chain(const ChainServer& server) {
  const auto most = static_cast<std::size_t>(server.most);
  const std::vector<double> arrivals = arrivals_of(server);
  const std::vector<Clump> clumps = clumps_of(arrivals, most);
  const auto clump_at = [&](std::size_t n) -> const Clump& { return clumps[std::min(most - n, clumps.size()) - 1]; };
  std::vector<double> came_more{};  // probability of more arrivals than k during a prompt
  double above = 1.0;
  for (double p : arrivals) came_more.push_back(above -= p);
  Seconds prompt;
  for (const Seconds one : server.prompts) prompt += one / static_cast<double>(server.prompts.size());
  const Hertz full_rate = server.leave(server.most);
  const double used = server.rate * (prompt + 1.0 / full_rate);

  // The flow up from n equals the flow down from n + 1. All relative to an empty server; rescaled where large.
  std::vector<double> at{1.0};
  double largest = 1.0;
  // Beyond a full batch, each level is lower by about the utilisation: this many reach e^-40 of the first, with a cap
  // close to saturation.
  constexpr double falls = 40.0, least_room = 1e-3;
  const auto longest = most + static_cast<std::size_t>(std::ceil(falls / std::max(least_room, 1.0 - used))) + 50;
  std::vector<Hertz> up;  // up[n]: crosses from n and below to above n
  for (std::size_t n = 0; n < longest; ++n) {
    // Spread what leaves n upwards over the levels that it crosses.
    if (n < most) {
      const Clump& clump = clump_at(n);
      if (up.size() < n + clump.more.size()) up.resize(n + clump.more.size());
      for (std::size_t j = 0; j < clump.more.size(); ++j) up[n + j] += at[n] * server.rate * clump.more[j];
    } else {
      if (up.size() < n + came_more.size() + 1) up.resize(n + came_more.size() + 1);
      up[n] += at[n] * server.rate;
      if (n > most)
        for (std::size_t k = 1; k < came_more.size(); ++k) up[n + k - 1] += at[n] * full_rate * came_more[k];
    }
    const std::size_t next = n + 1;
    const Hertz down = next <= most ? server.leave(static_cast<double>(next)) : full_rate * arrivals.front();
    at.push_back(up[n] / down);
    if (at.back() > 1e200) {
      for (double& p : at) p *= 1e-200;
      for (Hertz& flow : up) flow *= 1e-200;
      largest *= 1e-200;
    }
    largest = std::max(largest, at.back());
    if (next > most && at.back() < 1e-9 * largest) break;
  }

  // Decoding counts as it is; the work on prompts that starts at each level comes on top.
  ChainTimes out;
  double time = 0.0, squares = 0.0;
  const auto add = [&](double seconds, double sequences, double waiting, bool is_full) {
    time += seconds;
    out.sequences += seconds * sequences;
    squares += seconds * sequences * sequences;
    out.waiting += seconds * waiting;
    if (is_full) out.full += seconds;
  };
  for (std::size_t n = 0; n < at.size(); ++n) {
    const auto sequences = static_cast<double>(std::min(n, most)), waiting = static_cast<double>(n) - sequences;
    add(at[n], sequences, waiting, n >= most);
    if (n == 0) out.idle = at[n];
    if (n < most) {
      const Clump& clump = clump_at(n);
      for (std::size_t i = 0; i < clump.reached.size(); ++i)
        add(at[n] * server.rate * prompt * clump.reached[i], sequences + static_cast<double>(i), 0.0, false);
    } else if (n > most) {
      add(at[n] * full_rate * prompt, sequences - 1.0, waiting - 1.0 + 0.5 * server.rate * prompt, true);
    }
  }
  out.sequences /= time;
  out.waiting /= time;
  out.full /= time;
  out.idle /= time;
  out.variance = std::max(0.0, squares / time - out.sequences * out.sequences);
  return out;
}

}  // namespace assay::serving
