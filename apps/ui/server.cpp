#include "ui/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assay/ask/report/render.h"
#include "assay/base/text.h"
#include "ui/access.h"
#include "ui/channel.h"
#include "ui/form.h"
#include "ui/http.h"
#include "ui/routes.h"
#include "ui/worker.h"

namespace assay::ui {
namespace {

using Clock = std::chrono::steady_clock;
using Id = std::uint64_t;
using namespace std::chrono_literals;

constexpr int default_port = 8017;
constexpr std::size_t most_connections = 256, most_waiting = 128;
// Bodies with files: how much of them is held at once, and how fast they have to come.
constexpr std::size_t most_held = 256 << 20, least_rate = 1 << 20;
// How long a client may take to send a request, to send nothing, to take a response, and to notice that it is refused.
constexpr auto sending_time = 10s, idle_time = 75s, taking_time = 30s, parting_time = 2s;
constexpr auto forever = std::chrono::seconds(24h * 365);
constexpr auto stopping_time = 2s;  ///< for answers that are under way when the server is to stop

struct Connection {
  enum class State { receiving, waiting, sending, parting };

  Channel channel;
  HttpReader reader = {};
  State state = State::receiving;
  Clock::time_point deadline = {}, since = {};  ///< when it entered its state
  bool keeps_alive = true, head_only = false;
  bool is_large = false;  ///< the request that is coming has files, and more time to come
};

/// A request that the engine answers.
struct Job {
  Id connection;
  std::string request, boundary;  ///< `boundary`: separates the parts of the body, if it has several
  bool packs = false;             ///< the client takes gzip, and bytes on their way to it count
};

/// A place for a worker: its process is replaced when it fails.
struct Desk {
  std::optional<Worker> worker;
  Id id = 0;  ///< of the current process; each gets a new one
  std::optional<Job> job = {};
  Clock::time_point deadline = {};
};

HttpResponse busy(std::string what) {
  HttpResponse response = refuse(503, "", std::move(what), "try again in 2 s");
  response.headers.emplace_back("Retry-After", "2");
  return response;
}

class Server {
 public:
  Server(const Engine& engine, const ServerOptions& options, int listener, int port)
      : engine_(engine),
        options_(options),
        listener_(listener),
        access_(options.address, port, options.token, options.hosts),
        routes_(options.recorded) {}

  Result<void> run();

 private:
  static constexpr Id listener_id = 0, signals_id = 1;

  void watch(int command, int socket, std::uint32_t events, Id id);
  void set_deadline(Clock::time_point& deadline, Clock::time_point to) {
    deadline = to;
    next_sweep_ = std::min(next_sweep_, to);
  }

  void accept_all();
  void serve_connection(Id id, std::uint32_t events);
  bool has_news(Connection& connection, std::uint32_t events);
  std::size_t held() const;
  bool evict_idle();
  void answer_requests(Id id);
  void answer_request(Id id, Connection& connection, HttpRequest request);
  void respond(Id id, HttpResponse response);
  void go_on(Id id, Connection& connection);
  void enter(Id id, Connection& connection, Connection::State state);
  void drop(Id id);

  bool start_worker(Desk& desk);
  void serve_desk(Desk& desk);
  void hand_out();
  void sweep();
  void stop();

  const Engine& engine_;
  const ServerOptions& options_;
  Channel listener_;
  Access access_;
  Routes routes_;
  Channel signals_{-1}, epoll_{-1};
  Id next_id_ = 2;
  std::unordered_map<Id, Connection> connections_;
  std::vector<Desk> desks_;
  std::deque<Job> queue_;
  Clock::time_point next_sweep_ = Clock::time_point::max();
  std::optional<Clock::time_point> stop_at_;
};

void Server::watch(int command, int socket, std::uint32_t events, Id id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  ::epoll_ctl(epoll_.socket(), command, socket, &event);
}

void Server::accept_all() {
  while (true) {
    const int socket = ::accept4(listener_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::usleep(10'000);  // until something is closed
      if (errno != EINTR && errno != ECONNABORTED) return;
      continue;
    }
    const Id id = next_id_++;
    Connection& connection = connections_.emplace(id, Connection{Channel(socket)}).first->second;
    watch(EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP, id);
    connection.since = Clock::now();
    set_deadline(connection.deadline, connection.since + sending_time);
    if (connections_.size() <= most_connections || evict_idle()) continue;
    connection.keeps_alive = false;
    respond(id, busy("the server has too many connections"));
  }
}

/// Drops the connection that has sent no whole head for longest, if any but the newest one has not.
bool Server::evict_idle() {
  const auto newest = next_id_ - 1;
  auto oldest = connections_.end();
  for (auto one = connections_.begin(); one != connections_.end(); ++one) {
    const Connection& connection = one->second;
    if (one->first == newest || connection.state != Connection::State::receiving || connection.reader.coming())
      continue;
    if (oldest == connections_.end() || connection.since < oldest->second.since) oldest = one;
  }
  if (oldest == connections_.end()) return false;
  drop(oldest->first);
  return true;
}

void Server::drop(Id id) {
  for (Desk& desk : desks_)  // no client waits for the answer: the next request need not, either
    if (desk.job && desk.job->connection == id) {
      desk.job.reset();
      start_worker(desk);
    }
  std::erase_if(queue_, [&](const Job& job) { return job.connection == id; });
  connections_.erase(id);
}

void Server::serve_connection(Id id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (has_news(found->second, events))
    answer_requests(id);
  else
    drop(id);
}

/// Sends and receives; false if the connection is to be dropped.
bool Server::has_news(Connection& connection, std::uint32_t events) {
  using State = Connection::State;
  if (events & EPOLLERR) return false;
  if (connection.state == State::sending) return connection.channel.flush();
  if (connection.state == State::waiting) return !(events & (EPOLLRDHUP | EPOLLHUP));
  std::string bytes;
  const bool open = connection.channel.receive(bytes);
  if (!open || connection.state == State::parting) return open;
  if (!connection.reader.is_within()) set_deadline(connection.deadline, Clock::now() + sending_time);
  connection.reader.append(bytes);
  return true;
}

/// Bytes of requests that wait to be answered or are still coming.
std::size_t Server::held() const {
  std::size_t sum = 0;
  for (const auto& [id, connection] : connections_) sum += connection.reader.held();
  for (const Job& job : queue_) sum += job.request.size();
  return sum;
}

/// Goes through the requests that have come, until one has to wait: for its rest, for the engine, or for its client.
void Server::answer_requests(Id id) {
  using State = Connection::State;
  for (auto found = connections_.find(id); found != connections_.end(); found = connections_.find(id)) {
    Connection& connection = found->second;
    if (connection.state == State::sending && !connection.channel.has_unsent()) go_on(id, connection);
    if (connection.state != State::receiving) return;
    if (connection.reader.held() > HttpReader::body_limit && held() > most_held) {
      connection.reader = HttpReader();
      connection.keeps_alive = false;
      respond(id, busy("the files of other requests fill the server"));
      return;
    }
    auto request = connection.reader.next();
    if (const auto& fault = connection.reader.fault()) {
      connection.keeps_alive = false;
      respond(id, refuse(fault->status, "request", fault->what, "a request is a few options"));
    } else if (request) {
      answer_request(id, connection, std::move(*request));
    } else {
      if (connection.reader.body() > HttpReader::body_limit && !connection.is_large) {
        connection.is_large = true;
        if (const auto refused = access_.refusal(*connection.reader.coming())) {  // before its files are taken
          connection.keeps_alive = false;
          respond(id, *refused);
          return;
        }
        set_deadline(connection.deadline,
                     connection.deadline + std::chrono::seconds(connection.reader.body() / least_rate));
      }
      if (connection.reader.takes_wish_to_continue()) {
        connection.channel.send("HTTP/1.1 100 Continue\r\n\r\n");
        connection.channel.flush();
      }
      return;
    }
  }
}

void Server::answer_request(Id id, Connection& connection, HttpRequest request) {
  connection.keeps_alive = request.keep_alive && !stop_at_;
  connection.head_only = request.method == "HEAD";
  connection.is_large = false;
  if (const auto refused = access_.refusal(request)) return respond(id, *refused);
  if (const auto response = routes_.respond(request)) return respond(id, *response);
  if (queue_.size() >= most_waiting) return respond(id, busy("too many requests are waiting"));
  // Over the loopback bytes cost less than packing them.
  const bool packs = !options_.token.empty() && takes_gzip(request.header("accept-encoding"));
  queue_.push_back(
      {id, std::move(request.body), form_boundary(request.header("content-type").value_or("")).value_or(""), packs});
  enter(id, connection, Connection::State::waiting);
}

void Server::respond(Id id, HttpResponse response) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  response.headers.emplace_back("Date", http_date(std::time(nullptr)));
  connection.channel.send(http_bytes(response, connection.keeps_alive, connection.head_only));
  if (!connection.channel.flush()) return drop(id);
  if (connection.channel.has_unsent())
    enter(id, connection, Connection::State::sending);
  else
    go_on(id, connection);
}

/// After a response: the next request, or the end.
void Server::go_on(Id id, Connection& connection) {
  if (connection.keeps_alive) return enter(id, connection, Connection::State::receiving);
  // What the client is still sending is read and forgotten: closing at once could take the response from it.
  ::shutdown(connection.channel.socket(), SHUT_WR);
  enter(id, connection, Connection::State::parting);
}

void Server::enter(Id id, Connection& connection, Connection::State state) {
  using State = Connection::State;
  const auto time = state == State::sending         ? taking_time
                    : state == State::parting       ? parting_time
                    : state == State::waiting       ? forever
                    : connection.reader.is_within() ? sending_time
                                                    : idle_time;
  const bool listens = state == State::receiving || state == State::parting;
  const std::uint32_t events = state == State::sending ? EPOLLOUT : listens ? EPOLLIN : EPOLLRDHUP;
  connection.state = state;
  connection.since = Clock::now();
  set_deadline(connection.deadline, connection.since + time);
  watch(EPOLL_CTL_MOD, connection.channel.socket(), events | EPOLLRDHUP, id);
}

/// A fresh process for the desk; false if the machine grants none.
bool Server::start_worker(Desk& desk) {
  desk.worker.reset();
  desk.worker = Worker::start(engine_, options_.memory);
  if (!desk.worker) return false;
  desk.id = next_id_++;
  watch(EPOLL_CTL_ADD, desk.worker->channel().socket(), EPOLLIN, desk.id);
  return true;
}

void Server::serve_desk(Desk& desk) {
  const bool alive = desk.worker->serve();
  if (auto reply = desk.worker->takes_answer(); reply && desk.job) {
    const Job job = *std::exchange(desk.job, std::nullopt);
    respond(job.connection, response_of(std::move(reply->answer), reply->is_packed));
    answer_requests(job.connection);
  }
  if (alive) {
    const std::uint32_t events = desk.worker->channel().has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    return watch(EPOLL_CTL_MOD, desk.worker->channel().socket(), events, desk.id);
  }
  const std::string how = desk.worker->end();
  const auto job = std::exchange(desk.job, std::nullopt);
  start_worker(desk);
  if (!job) return;
  const Error bug{Error::Kind::internal,
                  "",
                  fmt::format("this is a bug, please report: the engine ended with {}", how),
                  "include the request",
                  {}};
  respond(job->connection, {500, "application/json", report::render_json(bug, report::Layout::one_line, job->request)});
  answer_requests(job->connection);
}

/// Gives waiting requests to workers that have none.
void Server::hand_out() {
  for (Desk& desk : desks_) {
    if (queue_.empty()) return;
    if (desk.job || (!desk.worker && !start_worker(desk))) continue;
    desk.job = std::move(queue_.front());
    queue_.pop_front();
    set_deadline(desk.deadline, Clock::now() + options_.time_limit);
    desk.worker->ask(desk.job->request, desk.job->boundary, desk.job->packs);
    if (!desk.job->boundary.empty()) desk.job->request = std::string();  // files are not kept twice
    serve_desk(desk);
  }
}

/// Ends what has taken too long.
void Server::sweep() {
  const Clock::time_point now = Clock::now();
  std::vector<Id> late;
  for (const auto& [id, connection] : connections_)
    if (connection.deadline <= now) late.push_back(id);
  for (const Id id : late) drop(id);
  for (Desk& desk : desks_) {
    if (!desk.job || desk.deadline > now) continue;
    const Job job = *std::exchange(desk.job, std::nullopt);
    start_worker(desk);
    const double seconds = std::chrono::duration<double>(options_.time_limit).count();
    const Error error{Error::Kind::input,
                      "",
                      fmt::format("there was no answer within {} s", human_number(seconds)),
                      "fix some of what is searched, e.g. tp, pp, micro-batch or recompute, ask for fewer chips, or "
                      "start assay ui with a longer --time-limit",
                      {}};
    respond(job.connection, {504, "application/json", report::render_json(error, report::Layout::one_line)});
    answer_requests(job.connection);
  }
  next_sweep_ = Clock::time_point::max();
  for (const auto& [id, connection] : connections_) next_sweep_ = std::min(next_sweep_, connection.deadline);
  for (const Desk& desk : desks_)
    if (desk.job) next_sweep_ = std::min(next_sweep_, desk.deadline);
}

/// No further connections and requests; answers that are under way have a moment.
void Server::stop() {
  listener_ = Channel(-1);
  stop_at_ = Clock::now() + stopping_time;
  for (const Job& job : std::exchange(queue_, {})) {
    connections_.at(job.connection).keeps_alive = false;
    respond(job.connection, busy("the server stops"));
  }
  std::vector<Id> idle;
  for (auto& [id, connection] : connections_) {
    connection.keeps_alive = false;
    if (connection.state == Connection::State::receiving) idle.push_back(id);
  }
  for (const Id id : idle) drop(id);
}

Result<void> Server::run() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = Channel(::signalfd(-1, &signals, SFD_CLOEXEC));
  epoll_ = Channel(::epoll_create1(EPOLL_CLOEXEC));
  desks_.resize(options_.workers);
  for (Desk& desk : desks_)
    if (signals_.socket() < 0 || epoll_.socket() < 0 || !start_worker(desk))
      return fail("assay ui", fmt::format("the server cannot start: {}", std::strerror(errno)),
                  "allow more processes and open files (ulimit -u, ulimit -n)");
  watch(EPOLL_CTL_ADD, signals_.socket(), EPOLLIN, signals_id);
  watch(EPOLL_CTL_ADD, listener_.socket(), EPOLLIN, listener_id);
  std::array<epoll_event, 64> events;
  while (!stop_at_ || (Clock::now() < *stop_at_ && !connections_.empty())) {
    const auto until = std::min(next_sweep_, stop_at_.value_or(Clock::time_point::max()));
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(until - Clock::now(), 1h));
    const int count = ::epoll_wait(epoll_.socket(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(std::max<std::int64_t>(0, wait.count())));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto desk = std::find_if(desks_.begin(), desks_.end(),
                                     [&](const Desk& each) { return each.worker && each.id == event.data.u64; });
      if (event.data.u64 == signals_id) {
        signalfd_siginfo taken;
        if (::read(signals_.socket(), &taken, sizeof taken) > 0 && stop_at_) return {};
        stop();
      } else if (event.data.u64 == listener_id) {
        accept_all();
      } else if (desk != desks_.end()) {
        serve_desk(*desk);
      } else {
        serve_connection(event.data.u64, event.events);
      }
    }
    if (Clock::now() >= next_sweep_) sweep();
    hand_out();
  }
  return {};
}

/// The address as the system wants it, or nothing if it is none.
std::optional<sockaddr_storage> socket_address(const std::string& address, int port, socklen_t& size) {
  sockaddr_storage storage{};
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof four;
    std::memcpy(&storage, &four, sizeof four);
  } else if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof six;
    std::memcpy(&storage, &six, sizeof six);
  } else {
    return std::nullopt;
  }
  return storage;
}

/// A socket that listens, and its port.
Result<std::pair<int, int>> listen_on(const std::string& address, int port) {
  socklen_t size = 0;
  auto where = socket_address(address, port, size);
  if (!where)
    return fail("--listen", fmt::format("{} is not an address", in_quotes(address)), "e.g. --listen 0.0.0.0",
                Error::Kind::usage);
  const int socket = ::socket(where->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  auto* plain = reinterpret_cast<sockaddr*>(&*where);
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket, plain, size) != 0 || ::listen(socket, 128) != 0 || ::getsockname(socket, plain, &size) != 0) {
    const int why = errno;
    if (socket >= 0) ::close(socket);
    return fail("--port", fmt::format("{}:{} cannot be listened on: {}", address, port, std::strerror(why)),
                "--port 0 takes any that is free");
  }
  const bool is_four = where->ss_family == AF_INET;
  return std::pair(socket, static_cast<int>(ntohs(is_four ? reinterpret_cast<sockaddr_in*>(plain)->sin_port
                                                          : reinterpret_cast<sockaddr_in6*>(plain)->sin6_port)));
}

}  // namespace

Result<void> serve(const Engine& engine, const ServerOptions& options,
                   const std::function<void(const std::string&)>& announce) {
  auto listening = listen_on(options.address, options.port.value_or(default_port));
  if (!listening && !options.port) listening = listen_on(options.address, 0);
  ASSAY_TRY(listener, listening);
  Server server(engine, options, listener.first, listener.second);
  // 0.0.0.0 is every address of this machine, and cannot be opened on another one.
  std::string host = options.address;
  char machine[256] = "";
  if ((host == "0.0.0.0" || host == "::") && ::gethostname(machine, sizeof machine - 1) == 0) host = machine;
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  announce(
      fmt::format("http://{}:{}/{}", host, listener.second, options.token.empty() ? "" : "?token=" + options.token));
  return server.run();
}

}  // namespace assay::ui
