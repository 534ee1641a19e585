#include "ui/ui.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "assay/ask/verbs/table/pages.h"
#include "assay/base/text.h"
#include "ui/access.h"
#include "ui/server.h"

namespace assay::ui {
namespace {

/// The memory of this machine or, if that is less, what its container may take, in bytes.
double machine_memory() {
  double least = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  std::ifstream in("/sys/fs/cgroup/memory.max");
  if (double most = 0.0; in >> most) least = std::min(least, most);
  return least;
}

/// Opens an address in the user's browser. What does so is no child of this process, whose children answer requests.
void open_in_browser(const std::string& address) {
  const pid_t first = ::fork();
  if (first < 0) return;
  if (first > 0) {
    ::waitpid(first, nullptr, 0);
    return;
  }
  if (::fork() == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
    ::setsid();
    ::execlp("xdg-open", "xdg-open", address.c_str(), nullptr);
  }
  ::_exit(0);
}

/// What the command line asks for beside the server's own options.
struct UiOptions {
  ServerOptions server = {};
  bool opens = false, sets_memory = false;
};

Result<void> set_option(UiOptions& ui, std::string_view name, const std::string& value) {
  ServerOptions& options = ui.server;
  if (name == "--port") {
    const auto port = parse_number(value);
    if (!port || *port < 0 || *port > 65535 || *port != static_cast<int>(*port))
      return fail("--port", fmt::format("{} is not a port", in_quotes(value)), "0 to 65535; 0 takes any that is free",
                  Error::Kind::usage);
    options.port = static_cast<int>(*port);
  } else if (name == "--listen") {
    options.address = value;
    options.token = random_token();
    if (options.token.empty()) return fail("--listen", "the machine gives no random bytes for a token");
  } else if (name == "--time-limit") {
    ASSAY_TRY(time, parse_as<Seconds>(value, name));
    constexpr Seconds least = 0.01_s, most = 86400_s;
    if (!(time >= least && time <= most))
      return fail(std::string(name), fmt::format("{} is out of range", in_quotes(value)), "10 ms to a day",
                  Error::Kind::usage);
    options.time_limit = std::chrono::milliseconds(static_cast<std::int64_t>(time / 1_ms));
  } else if (name == "--memory-limit") {
    ASSAY_TRY(bytes, parse_as<Bytes>(value, name));
    constexpr Bytes least(ServerOptions::least_memory), most = 1024_TiB;
    if (!(bytes >= least && bytes <= most))
      return fail(std::string(name), fmt::format("{} is out of range", in_quotes(value)), "at least 128MiB",
                  Error::Kind::usage);
    options.memory = static_cast<std::uint64_t>(bytes / 1_B);
    ui.sets_memory = true;
  } else if (name == "--allowed-host") {
    options.hosts.push_back(value);
  } else {
    ASSAY_TRY(count, parse_count(value, name));
    constexpr std::int64_t most = 256;
    if (count > most) return fail(std::string(name), fmt::format("more than {}", most), "", Error::Kind::usage);
    options.workers = static_cast<std::size_t>(count);
  }
  return {};
}

Result<UiOptions> read_options(std::span<const std::string> words) {
  UiOptions ui;
  ServerOptions& options = ui.server;
  options.workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 4, 16);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::vector<std::string> names;
    for (const verbs::OptionSpec& option : verbs::ui_command().options)
      names.push_back(fmt::format("--{}", option.name));
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fail("ui", fmt::format("unknown option {}", in_quotes(name)), suggestion(name, names), Error::Kind::usage);
    if (word == "--open") {
      ui.opens = true;
      continue;
    }
    if (equals == std::string::npos && i + 1 == words.size())
      return fail(name, "its value is missing", "`assay ui --help` shows it", Error::Kind::usage);
    ASSAY_CHECK(set_option(ui, name, equals == std::string::npos ? words[++i] : word.substr(equals + 1)));
  }
  if (options.token.empty() && !options.hosts.empty())
    return fail("--allowed-host", "only this machine can reach the server", "let others in with --listen ADDRESS",
                Error::Kind::usage);
  if (ui.opens && !options.token.empty())
    return fail("--open", "other programs of this machine would see the token",
                "leave --open out, and open the printed address", Error::Kind::usage);
  if (!ui.sets_memory)
    options.memory = static_cast<std::uint64_t>(std::clamp(machine_memory() / static_cast<double>(options.workers),
                                                           static_cast<double>(ServerOptions::least_memory),
                                                           static_cast<double>(ServerOptions::most_memory)));
  return ui;
}

}  // namespace

Result<void> run(std::span<const std::string> words, std::vector<std::string> catalogues) {
  ASSAY_TRY(ui, read_options(words));
  ui.server.recorded = catalogues.empty();
  const Engine engine({.catalogues = std::move(catalogues)});
  // What the engine keeps from its first answer is shared by all processes that answer.
  engine.answer(R"({"verb": "models", "arguments": {"model": "llama-3-8b"}})");
  return serve(engine, ui.server, [&](const std::string& address) {
    fmt::print("{}\n{}; Ctrl-C stops the server\n", address,
               ui.opens ? "it opens in a browser" : "open it in a browser");
    std::fflush(stdout);
    if (ui.opens) open_in_browser(address);
  });
}

}  // namespace assay::ui
