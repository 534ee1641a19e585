#include "assay/predict/serving/load/replica.h"

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

std::int64_t pages_of(std::int64_t tokens, std::int64_t page) { return (tokens + page - 1) / page; }

/// Keys of what sequences leave: no path has them.
std::int64_t key_of_left(const FleetRequest& request) { return -((request.id + 1) << 24); }

}  // namespace

double ready_time(const FleetRequest& request, const LoadedServer& server) {
  if (request.prefilled) return request.prefilled->here;
  return request.arrival + front_end_time(Plain{}, server.path, static_cast<double>(request.prompt)).value();
}

ReplicaModel::ReplicaModel(const LoadedServer& server, std::int64_t block)
    : server_(server),
      places_(std::max<std::int64_t>(1, static_cast<std::int64_t>(server.most))),
      page_(std::max<std::int64_t>(1, server.lengths.page)),
      pages_(server.lengths.page > 0 ? static_cast<std::int64_t>(server.cache_tokens) / page_ : 0),
      block_pages_(std::max<std::int64_t>(1, pages_of(block, page_))),
      budget_(std::max<std::int64_t>(1, static_cast<std::int64_t>(server.chunk))) {
  for (std::int64_t n = 0; n <= places_; ++n) {
    if (n == 0) {
      steps_.emplace_back();
      continue;
    }
    const auto sequences = static_cast<double>(n);
    const double none = server.step(sequences, 0.0).value(), some = server.step(sequences, 1024.0).value();
    steps_.push_back({none, (some - none) / 1024.0});
  }
}

bool ReplicaModel::holds(std::int64_t prompt, std::int64_t output) const {
  return pages_ == 0 || pages_of(prompt + output, page_) + block_pages_ <= pages_;
}

double ReplicaModel::mixed(std::int64_t sequences, double context, std::int64_t tokens, double before) const {
  const auto n = static_cast<double>(sequences), t = static_cast<double>(tokens);
  const double time = server_.mixed(n, context, t).value() + server_.further.value() * (before - t * server_.before);
  return std::max(time, step(sequences).fixed + step(sequences).each * context);
}

Replica::Replica(const ReplicaModel& model, const Watchers& watchers, std::int64_t index)
    : model_(model),
      watchers_(watchers),
      index_(index),
      pool_(model.pages(), model.block_pages()),
      crossings_(at(model.page()), 0) {}

std::int32_t Replica::unused_slot() {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::int32_t>(sequences_.size()));
    sequences_.emplace_back();
  }
  const std::int32_t slot = unused_.back();
  unused_.pop_back();
  sequences_[at(slot)] = Sequence();
  return slot;
}

void Replica::queue(std::int32_t slot) {
  const double since = sequences_[at(slot)].since;
  auto before = incoming_.end();
  while (before != incoming_.begin() && sequences_[at(*(before - 1))].since > since) --before;
  incoming_.insert(before, slot);
}

void Replica::add(const FleetRequest& request, std::vector<std::int64_t> path, std::int64_t block) {
  const std::int32_t slot = unused_slot();
  Sequence& s = sequences_[at(slot)];
  s.of.request = request;
  s.of.replica = index_;
  s.of.scheduled = -1.0;
  s.of.ready = s.since = ready_time(request, model_.server());
  s.path = std::move(path);
  s.block = block;
  queue(slot);
}

void Replica::add(MovedRequest moved, double moment) {
  const std::int32_t slot = unused_slot();
  Sequence& s = sequences_[at(slot)];
  s.of = std::move(moved.of);
  s.of.replica = index_;
  s.path = std::move(moved.path);
  s.block = moved.block, s.made = moved.made, s.thrown_out = moved.thrown_out;
  s.since = std::max(moment, moved.since);
  if (s.thrown_out < 0.0) s.of.scheduled = -1.0, s.of.for_replica += s.since - moved.since;
  queue(slot);
}

std::vector<MovedRequest> Replica::lose(double moment) {
  now_ = started_ = std::max(now_, moment);
  std::vector<std::pair<std::int64_t, std::int32_t>> slots;
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i].stamp > 0) slots.emplace_back(0, static_cast<std::int32_t>(i));
  for (const auto* from : {&waiting_, &incoming_})
    for (const std::int32_t slot : *from) slots.emplace_back(0, slot);
  for (auto& [id, slot] : slots) id = sequences_[at(slot)].of.request.id;
  std::sort(slots.begin(), slots.end());
  std::vector<MovedRequest> out;
  for (const auto& [id, slot] : slots) {
    Sequence& s = sequences_[at(slot)];
    if (s.stamp > 0) s.made = now_made(s), s.thrown_out = now_;
    ++s.of.moves;
    out.push_back({s.of, std::move(s.path), s.block, s.made, s.thrown_out, s.since});
  }
  sequences_.clear(), unused_.clear(), incoming_.clear(), waiting_.clear(), ends_.clear(), joined_.clear();
  pool_ = BlockPool(model_.pages(), model_.block_pages());
  std::fill(crossings_.begin(), crossings_.end(), 0);
  running_ = 0, ended_now_ = 0, context_ = 0.0;
  return out;
}

/// Until when requests may have come to join the next step: it is prepared while the last one runs, if any does.
double Replica::prepared() const {
  const bool runs = running_ > 0 || !waiting_.empty();
  return model_.server().path.ahead > 0.0 && runs ? started_ : now_;
}

void Replica::admit_ready() {
  while (!incoming_.empty() && sequences_[at(incoming_.front())].since <= prepared()) {
    Sequence& s = sequences_[at(incoming_.front())];
    s.places_before = waited_places_, s.cache_before = waited_cache_, s.prompts_before = waited_prompts_;
    waiting_.push_back(incoming_.front());
    incoming_.pop_front();
  }
}

void Replica::advance(double until) {
  while (true) {
    admit_ready();
    if (running_ == 0 && waiting_.empty()) {
      if (incoming_.empty()) return;
      const double next = sequences_[at(incoming_.front())].since;
      if (next >= until) return;
      now_ = started_ = std::max(now_, next);
      continue;
    }
    if (now_ >= until) return;
    waiting_.empty() ? steps_of_sequences(until, false) : step_with_prompts(until);
  }
}

std::int64_t Replica::own_tokens(const Sequence& s) const {
  return (s.path.empty() ? s.of.request.prompt : 0) + now_made(s);
}
std::int64_t Replica::own_pages(const Sequence& s) const { return pages_of(own_tokens(s), model_.page()); }

/// Gives a sequence its pages, and what of its tokens is still in them.
void Replica::place(Sequence& s) {
  const std::int64_t prompt = s.of.request.prompt, blocks = static_cast<std::int64_t>(pool_.cached(s.path));
  s.done = std::min(blocks * s.block, prompt - 1);
  if (s.left > 0) {
    const std::int64_t left = pool_.take_back(key_of_left(s.of.request), s.left);
    const std::int64_t own = left * model_.block_pages() * model_.page();
    if (blocks == std::ssize(s.path)) s.done = std::min((s.path.empty() ? 0 : prompt) + own, prompt + s.made - 1);
    s.left = 0;
  }
  if (s.of.request.prefilled && s.thrown_out < 0.0) s.done = prompt;
  if (s.thrown_out < 0.0 && s.of.scheduled < 0.0) {
    s.of.cached = s.of.request.prefilled ? s.of.request.prefilled->cached : s.done;
    s.of.scheduled = now_;
    s.of.for_places = waited_places_ - s.places_before;
    s.of.for_cache = waited_cache_ - s.cache_before;
    s.of.for_prompts = waited_prompts_ - s.prompts_before;
  }
  pool_.hold(s.path, own_pages(s));
  s.has_pages = true;
}

void Replica::step_with_prompts(double until) {
  const bool whole = model_.server().policy != BatchingPolicy::chunked;
  std::int64_t tokens = 0;
  double before = 0.0;
  Wait wait = Wait::none;
  complete_.clear();
  while (!waiting_.empty() && wait == Wait::none) {
    const std::int32_t slot = waiting_.front();
    Sequence& s = sequences_[at(slot)];
    const std::int64_t room = whole ? (tokens == 0 ? s.of.request.prompt + s.made : 0) : model_.budget() - tokens;
    if (room <= 0) {
      wait = Wait::prompts;
      break;
    }
    if (!s.has_pages) {
      if (running_ + std::ssize(complete_) >= model_.places()) {
        wait = Wait::places;
        break;
      }
      // A sequence alone always runs: it would never start otherwise.
      if (running_ + std::ssize(complete_) > 0 && !pool_.has_room(s.path, own_pages(s))) {
        wait = Wait::cache;
        break;
      }
      place(s);
    }
    const std::int64_t all = s.of.request.prompt + s.made, take = std::min(all - s.done, room);
    tokens += take;
    before += static_cast<double>(take) * (static_cast<double>(s.done) + 0.5 * static_cast<double>(take));
    s.done += take;
    if (s.done < all) {
      wait = Wait::prompts;
      break;
    }
    complete_.push_back(slot);
    waiting_.pop_front();
  }
  if (tokens == 0 && !complete_.empty()) {
    // Caches that came from other servers take no time here.
    for (const std::int32_t slot : complete_) join(slot, now_);
    return throw_out_until_it_fits();
  }
  if (tokens == 0) {
    // Nothing joins until a sequence ends: `steps_of_sequences` says how long that is.
    const double start = now_;
    steps_of_sequences(until, true);
    (wait == Wait::places ? waited_places_ : waited_cache_) += now_ - start;
    return;
  }
  const auto n = static_cast<double>(running_);
  const double context = running_ > 0 ? context_ / n : model_.server().lengths.context;
  double time = 0.0, prompts = 0.0;
  if (whole) {
    time = prompts = model_.server().prefill(static_cast<double>(tokens)).value();
  } else {
    const ReplicaModel::Step& alone = model_.step(running_);
    time = model_.mixed(running_, context, tokens, before);
    prompts = running_ > 0 ? time - alone.fixed - alone.each * context : time;
  }
  const auto sequences = running_ + std::ssize(complete_);
  (wait == Wait::places  ? waited_places_
   : wait == Wait::cache ? waited_cache_
                         : waited_prompts_) += wait == Wait::none ? 0.0 : time;
  pass(1, time, time, prompts, wait == Wait::places || wait == Wait::cache);
  if (!whole) end_step(1);
  const double delivered = now_ + delivery(sequences);
  for (const std::int32_t slot : complete_) join(slot, delivered);
  throw_out_until_it_fits();
}

std::int64_t Replica::steps_until(double moment, double first, double more) const {
  std::int64_t steps = std::max<std::int64_t>(1, ends_.front().step - steps_);
  const auto time = [&](double k) { return k * first + more * k * (k - 1.0) / 2.0; };
  if (now_ + time(static_cast<double>(steps)) <= moment || steps == 1) return steps;
  const double left = moment - now_, linear = first - more / 2.0;
  double k =
      more > 0.0 ? (std::sqrt(linear * linear + 2.0 * more * std::max(0.0, left)) - linear) / more : left / linear;
  k = std::clamp(std::ceil(k - 1e-9), 1.0, static_cast<double>(steps));
  return static_cast<std::int64_t>(k);
}

std::int64_t& Replica::crossings(std::int64_t step) {
  return crossings_[at(((step % model_.page()) + model_.page()) % model_.page())];
}

std::int64_t Replica::steps_until_full(std::int64_t steps) const {
  if (!pool_.is_bounded()) return steps;
  std::int64_t left = pool_.free_for_sequences();
  if (left >= running_ * (steps / model_.page() + 1)) return steps;
  for (std::int64_t k = 0; k < steps; ++k) {
    left -= crossings_[at((steps_ + k) % model_.page())];
    if (left < 0) return k + 1;
  }
  return steps;
}

void Replica::steps_of_sequences(double until, bool is_full) {
  forget_dead();
  const auto n = static_cast<double>(running_);
  const ReplicaModel::Step& step = model_.step(running_);
  const double first = step.fixed + step.each * context_ / n, more = step.each;
  const double moment = incoming_.empty() ? until : std::min(until, sequences_[at(incoming_.front())].since);
  const std::int64_t steps = steps_until_full(steps_until(moment, first, more));
  const auto k = static_cast<double>(steps);
  pass(steps, k * first + more * k * (k - 1.0) / 2.0, first + more * (k - 1.0), 0.0, is_full);
  end_step(steps);
  throw_out_until_it_fits();
}

/// Ends of sequences that were thrown out come up first, or not at all.
void Replica::forget_dead() {
  while (!ends_.empty() && !is_running(ends_.front().slot, ends_.front().stamp)) {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
  }
}

double Replica::next_start() const {
  if (running_ > 0 || !waiting_.empty()) return now_;
  return incoming_.empty() ? Traffic::never : std::max(now_, sequences_[at(incoming_.front())].since);
}

double Replica::soonest_end() const {
  if (running_ == 0 || !waiting_.empty() || !incoming_.empty()) return next_start();
  const ReplicaModel::Step& step = model_.step(running_);
  const auto k = static_cast<double>(std::max<std::int64_t>(1, ends_.front().step - steps_));
  const double first = step.fixed + step.each * context_ / static_cast<double>(running_);
  return now_ + (k * first + step.each * k * (k - 1.0) / 2.0);
}

void Replica::pass(std::int64_t steps, double time, double last, double for_prompts, bool is_full) {
  if (watchers_.passed)
    watchers_.passed(
        {index_, now_, now_ + time, steps, last, running_, std::ssize(waiting_), pool_.taken(), for_prompts, is_full});
  now_ += time;
  started_ = now_ - last;
  ended_now_ = 0;
}

double Replica::delivery(std::int64_t sequences) const {
  return delivery_time(Plain{}, model_.server().path, static_cast<double>(sequences)).value();
}

/// Each running sequence got a token in each of so many steps.
void Replica::end_step(std::int64_t steps) {
  if (running_ == 0) return;
  if (pool_.is_bounded()) {
    std::int64_t more = steps / model_.page() * running_;
    for (std::int64_t i = 0; i < steps % model_.page(); ++i) more += crossings(steps_ + i);
    if (more > 0) pool_.grow(more);
  }
  steps_ += steps;
  context_ += static_cast<double>(steps * running_);
  const double delivered = now_ + delivery(running_);
  while (!ends_.empty() && ends_.front().step <= steps_) {
    const End end = ends_.front();
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
    if (is_running(end.slot, end.stamp)) finish(end.slot, delivered);
  }
}

bool Replica::is_running(std::int32_t slot, std::int64_t stamp) const { return sequences_[at(slot)].stamp == stamp; }

void Replica::join(std::int32_t slot, double delivered) {
  Sequence& s = sequences_[at(slot)];
  if (s.thrown_out < 0.0) {
    s.of.prompted = now_;
    s.of.first = s.of.request.prefilled ? s.of.request.prefilled->first : delivered;
  } else {
    s.of.preempted += now_ - s.thrown_out;
    s.thrown_out = -1.0;
  }
  // The step of a prompt makes its next token, too.
  if (pool_.is_bounded() && own_tokens(s) % model_.page() == 0) pool_.grow(1);
  ++s.made;
  s.joined = steps_;
  s.stamp = ++stamps_;
  ++running_;
  context_ += static_cast<double>(s.of.request.prompt + s.made);
  if (pool_.is_bounded()) ++crossings(steps_ - own_tokens(s));
  if (s.made >= s.of.request.output) return finish(slot, delivered);
  const End end{steps_ + s.of.request.output - s.made, s.stamp, slot};
  ends_.push_back(end);
  std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
  if (!pool_.is_bounded()) return;
  joined_.push_back(end);
  if (std::ssize(joined_) > 2 * running_ + 64)
    std::erase_if(joined_, [&](const End& one) { return !is_running(one.slot, one.stamp); });
}

/// Takes a sequence out of the batch, and its cache with it.
void Replica::leave(Sequence& s) {
  context_ -= static_cast<double>(s.of.request.prompt + now_made(s));
  if (pool_.is_bounded()) --crossings(steps_ - own_tokens(s));
  pool_.release(s.path, own_pages(s));
  s.made = now_made(s);
  s.stamp = 0;
  s.has_pages = false;
  --running_;
}

void Replica::finish(std::int32_t slot, double delivered) {
  Sequence& s = sequences_[at(slot)];
  leave(s);
  s.of.decoded = now_;
  s.of.end = delivered;
  unused_.push_back(slot);
  ++ended_now_;
  if (watchers_.ended) watchers_.ended(s.of);
}

/// Out of memory: the last to join goes back to the head of the queue. A prompt that is worked on came last.
void Replica::throw_out_until_it_fits() {
  const auto is_full = [&] { return pool_.is_bounded() && pool_.held() > pool_.pages(); };
  if (!waiting_.empty() && is_full()) {
    if (Sequence& s = sequences_[at(waiting_.front())]; s.has_pages) {
      pool_.release(s.path, own_pages(s));
      s.has_pages = false;
    }
  }
  while (running_ > 1 && is_full()) {
    while (!is_running(joined_.back().slot, joined_.back().stamp)) joined_.pop_back();
    const std::int32_t slot = joined_.back().slot;
    joined_.pop_back();
    Sequence& s = sequences_[at(slot)];
    leave(s);
    s.left = own_pages(s) / model_.block_pages();
    pool_.keep(key_of_left(s.of.request), s.left);
    s.thrown_out = now_;
    ++s.of.preemptions;
    ++preemptions_;
    waiting_.push_front(slot);
  }
}

}  // namespace assay::serving
