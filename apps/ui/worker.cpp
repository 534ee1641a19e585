#include "ui/worker.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "assay/ask/report/render.h"
#include "ui/form.h"
#include "ui/http.h"
#include "ui/packed.h"

namespace assay::ui {
namespace {

/// Precedes each request and each answer. Both sides are one program on one machine.
struct Header {
  std::uint64_t size = 0, boundary = 0;  ///< in bytes; the boundary of a form precedes the body
  std::int64_t status = 0;               ///< answers only
  std::uint64_t packs = 0;               ///< whether the answer may be packed, or is
};

bool read_all(int socket, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(socket, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count, size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int socket, const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(socket, from, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count, size -= static_cast<std::size_t>(count);
  }
  return true;
}

void limit(__rlimit_resource resource, std::uint64_t most) {
  rlimit bound{};
  if (::getrlimit(resource, &bound) != 0) return;
  bound.rlim_cur = std::min<rlim_t>(bound.rlim_cur, most);
  ::setrlimit(resource, &bound);
}

Answer answer_to(const Engine& engine, std::string_view body, std::string_view boundary) {
  if (boundary.empty()) return engine.answer(body, AnswerLayout::one_line);
  const auto form = read_form(body, boundary);
  if (form) return engine.answer(form->request, AnswerLayout::one_line, form->files);
  const Error error{Error::Kind::usage,
                    "request",
                    "the body is not of the parts that its type announces",
                    "send a part \"request\" with the JSON, and files",
                    {}};
  return {report::render_json(error, report::Layout::one_line), 2, {}};
}

/// The loop of the process until the server closes its end.
[[noreturn]] void answer_all(const Engine& engine, int socket, std::uint64_t memory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive a server that is killed
  // Closes the server's connections in this process.
  ::dup2(socket, STDERR_FILENO + 1);
  socket = STDERR_FILENO + 1;
  ::close_range(static_cast<unsigned>(socket) + 1, ~0u, 0);
  limit(RLIMIT_AS, memory);
  limit(RLIMIT_CORE, 0);
  std::string request;
  Header header;
  while (read_all(socket, reinterpret_cast<char*>(&header), sizeof header)) {
    request.resize(header.boundary + header.size);
    if (!read_all(socket, request.data(), request.size())) break;
    const std::string_view given = request;
    Answer answer = answer_to(engine, given.substr(header.boundary), given.substr(0, header.boundary));
    const bool packs = header.packs && answer.json.size() >= least_packed;
    constexpr int fastest = 1;
    if (packs) answer.json = packed(answer.json, fastest);
    header = {answer.json.size(), 0, answer.status, packs};
    if (!write_all(socket, reinterpret_cast<const char*>(&header), sizeof header) ||
        !write_all(socket, answer.json.data(), answer.json.size()))
      break;
    if (request.capacity() > HttpReader::body_limit) request = std::string();
    ::malloc_trim(1 << 20);  // what a search took is not held until the next one
  }
  std::_Exit(0);
}

}  // namespace

std::optional<Worker> Worker::start(const Engine& engine, std::uint64_t memory) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  const pid_t process = ::fork();
  if (process == 0) answer_all(engine, ends[1], memory);
  ::close(ends[1]);
  if (process < 0) {
    ::close(ends[0]);
    return std::nullopt;
  }
  return Worker(process, ends[0]);
}

Worker::Worker(Worker&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      channel_(std::move(other.channel_)),
      received_(std::move(other.received_)) {}

Worker& Worker::operator=(Worker&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(channel_, other.channel_);
  std::swap(received_, other.received_);
  return *this;
}

Worker::~Worker() { end(); }

bool Worker::ask(std::string_view body, std::string_view boundary, bool packs) {
  const Header header{body.size(), boundary.size(), 0, packs};
  channel_.send({reinterpret_cast<const char*>(&header), sizeof header});
  channel_.send(boundary);
  channel_.send(body);
  return channel_.flush();
}

bool Worker::serve() { return channel_.flush() && channel_.receive(received_); }

std::optional<Worker::Reply> Worker::takes_answer() {
  Header header;
  if (received_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, received_.data(), sizeof header);
  if (received_.size() < sizeof header + header.size) return std::nullopt;
  Reply reply{{received_.substr(sizeof header), static_cast<int>(header.status), {}}, header.packs != 0};
  received_ = std::string();
  return reply;
}

std::string Worker::end() {
  if (process_ < 0) return "";
  int status = 0;
  // A process that ended by itself says how; it may be about to, just after closing its socket.
  for (int tries = 0; ::waitpid(process_, &status, WNOHANG) == 0; ++tries) {
    if (tries > 0) ::kill(process_, SIGKILL);
    ::usleep(200);
  }
  process_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace assay::ui
