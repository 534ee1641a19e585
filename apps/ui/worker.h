// A process that answers requests one after the other, so that one that takes too long, takes too much memory or ends
// in a crash takes nothing else with it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "assay/assay.h"
#include "ui/channel.h"

namespace assay::ui {

class Worker {
 public:
  /// A copy of this process, which shares the engine's memory until it writes to it. `memory` limits its address space,
  /// in bytes. Nothing if the machine grants no further process. Call it where no other thread runs.
  static std::optional<Worker> start(const Engine& engine, std::uint64_t memory);

  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  /// Ends the process at once.
  ~Worker();

  const Channel& channel() const { return channel_; }

  /// Hands it a body, a request or a form with that boundary; the answer comes through its channel, as gzip where it
  /// `packs` and that is worth it. Like `serve`, false
  /// if the process is gone.
  bool ask(std::string_view body, std::string_view boundary, bool packs = false);
  /// Sends and receives what is possible now.
  bool serve();
  struct Reply {
    Answer answer;
    bool is_packed = false;
  };
  /// The answer, once it has all come.
  std::optional<Reply> takes_answer();

  /// Ends the process and says how it ended: "signal 11 (Segmentation fault)", "exit code 1".
  std::string end();

 private:
  Worker(pid_t process, int socket) : process_(process), channel_(socket) {}

  pid_t process_;
  Channel channel_;
  std::string received_;
};

}  // namespace assay::ui
