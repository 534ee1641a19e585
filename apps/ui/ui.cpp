#include "ui/ui.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "assay/ask/verbs/table/pages.h"
#include "assay/base/text.h"
#include "ui/access.h"
#include "ui/server.h"

namespace assay::ui {
namespace {

Result<void> set_option(ServerOptions& options, std::string_view name, const std::string& value) {
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
    constexpr Bytes least = 128_MiB, most = 1024_TiB;
    if (!(bytes >= least && bytes <= most))
      return fail(std::string(name), fmt::format("{} is out of range", in_quotes(value)), "at least 128MiB",
                  Error::Kind::usage);
    options.memory = static_cast<std::uint64_t>(bytes / 1_B);
  } else {
    ASSAY_TRY(count, parse_count(value, name));
    constexpr std::int64_t most = 256;
    if (count > most) return fail(std::string(name), fmt::format("more than {}", most), "", Error::Kind::usage);
    options.workers = static_cast<std::size_t>(count);
  }
  return {};
}

Result<ServerOptions> read_options(std::span<const std::string> words) {
  ServerOptions options;
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
    if (equals == std::string::npos && i + 1 == words.size())
      return fail(name, "its value is missing", "`assay ui --help` shows it", Error::Kind::usage);
    ASSAY_CHECK(set_option(options, name, equals == std::string::npos ? words[++i] : word.substr(equals + 1)));
  }
  return options;
}

}  // namespace

Result<void> run(std::span<const std::string> words, std::vector<std::string> catalogues) {
  ASSAY_TRY(options, read_options(words));
  const Engine engine({.catalogues = std::move(catalogues)});
  // What the engine keeps from its first answer is shared by all processes that answer.
  engine.answer(R"({"verb": "models", "arguments": {"id": "llama-3-8b"}})");
  return serve(engine, options, [](const std::string& address) {
    fmt::print("{}\nopen it in a browser; Ctrl-C stops the server\n", address);
    std::fflush(stdout);
  });
}

}  // namespace assay::ui
