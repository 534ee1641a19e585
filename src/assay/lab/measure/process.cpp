#include "assay/lab/measure/process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assay/base/text.h"

extern char** environ;  // NOLINT: POSIX declares it so

namespace assay::measure {

Result<ProcessOutput> run_process(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return fail(words.front(), fmt::format("no pipe: {}", std::strerror(errno)), "");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  ProcessOutput output;
  if (failed == 0) {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(pipe_ends[0], buffer, sizeof buffer)) != 0;) {
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) break;
      output.text.append(buffer, static_cast<std::size_t>(got));
    }
  }
  ::close(pipe_ends[0]);
  if (failed != 0)
    return fail(words.front(), fmt::format("{} cannot be started: {}", in_quotes(words.front()), std::strerror(failed)),
                "", Error::Kind::missing);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace assay::measure
