// Assay as a library: a request in, an answer out, both JSON. The command line, servers and modules of other languages
// are shells over this; docs/api.md describes requests and answers.
//
// This header and assay/c.h, the same for C, are all that is installed; their names keep their meaning from one minor
// version to the next. The headers of the folders beside them, units, programs and costs, may change with any commit.
//
// Nothing here prints, writes a file or reads the environment, and nothing throws: what goes wrong is an answer.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the shared library shows.
#define ASSAY_PUBLIC __attribute__((visibility("default")))

namespace assay {

/// How an answer is laid out: as `--format json` prints it; the same without line breaks and indentation, as `assay
/// json` prints it; as the picture that `--format svg` prints; or as the screen of a terminal. Errors are JSON in any
/// case.
enum class AnswerLayout { indented, one_line, svg, screen };

struct ASSAY_PUBLIC Answer {
  std::string json;  ///< ends in a newline; SVG where a picture is asked for
  int status = 0;    ///< what the command line exits with: 0 ok, 1 input, 2 usage, 3 infeasible, 4 check failed, 70 bug
  /// What the request wants to be written: path, content. Always empty where requests may not name files.
  std::vector<std::pair<std::string, std::string>> files;
};

/// A file that comes with a request, which names it: `profile` reads it as if it lay on a disk.
struct ASSAY_PUBLIC Attachment {
  std::string name;
  std::string_view bytes;
};

/// What the requests of a front end may reach. By default nothing but the catalogue that is compiled in.
struct ASSAY_PUBLIC Reach {
  bool files = false;                        ///< requests may name files, and measure this machine
  std::vector<std::string> catalogues = {};  ///< directories that overlay the catalogue, in this order
  std::string user_catalogue = {},
              programs = {};  ///< for `measure`: where it writes, and where the programs it runs are
  std::string date = {};      ///< for `measure`: 2026-11-15
};

/// Answers requests. Equal requests get equal bytes. Several threads may ask at once.
class ASSAY_PUBLIC Engine {
 public:
  explicit Engine(Reach reach = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// {"verb": "train", "arguments": {"model": "llama-3-70b", "on": "h100-sxm:1024", "batch": "4Mi"}}
  Answer answer(std::string_view request, AnswerLayout layout = AnswerLayout::indented,
                const std::vector<Attachment>& attached = {}) const;

  /// Answers in the order of the requests, by at most so many threads; 0: one per core.
  std::vector<Answer> answers(const std::vector<std::string_view>& requests, std::size_t threads = 0,
                              AnswerLayout layout = AnswerLayout::indented) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// Asks every request of this process, running or to come, to return the best that it has found; `stop(false)` lets
/// later ones run to their end. Any thread and any signal handler may call it.
ASSAY_PUBLIC void stop(bool wanted = true);

/// What answers.
struct ASSAY_PUBLIC About {
  std::string_view version;  ///< 0.1.0
  std::string_view commit;   ///< of the sources, with + where they were changed since; empty where it is not known
  std::string catalogue;     ///< when a source of the catalogue was read last: 2026-11-15
};
ASSAY_PUBLIC About about();

/// The JSON Schema (2020-12) of the requests and answers of a verb, or of all of them. Of an unknown verb: an error.
ASSAY_PUBLIC Answer schema(std::string_view verb = {});

}  // namespace assay
