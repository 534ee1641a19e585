// The server of `assay ui`: one thread that moves bytes, and worker processes that answer.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/assay.h"
#include "assay/base/result.h"

namespace assay::ui {

struct ServerOptions {
  static constexpr std::uint64_t least_memory = 128ull << 20, most_memory = 4ull << 30;

  std::string address = "127.0.0.1";  ///< an IPv4 or IPv6 address
  std::optional<int> port = {};       ///< 0: any that is free. By default a fixed one or, if it is taken, any
  std::string token = {};             ///< clients have to know it; empty: none has to
  std::chrono::milliseconds time_limit{20'000};  ///< limit for one answer
  std::uint64_t memory = most_memory;            ///< address space of a process that answers, in bytes
  std::size_t workers = 4;                       ///< processes that answer
  bool recorded = true;                          ///< the catalogue is the built-in one, so that recorded answers hold
  std::vector<std::string> hosts = {};           ///< further names of this machine, where it listens to others
};

/// Serves until SIGTERM or SIGINT. `announce` gets the address of the page once it can be opened.
Result<void> serve(const Engine& engine, const ServerOptions& options,
                   const std::function<void(const std::string&)>& announce);

}  // namespace assay::ui
