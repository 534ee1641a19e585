// What every verb answers: the echoed inputs, the results, and what people need to read them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/screen.h"
#include "assay/base/explain.h"

namespace assay::report {

/// How an answer ends a program: the exit code of the command line.
enum class Outcome { ok = 0, infeasible = 3, check_failed = 4 };

struct Response {
  Members inputs;
  Members results;
  std::string headline;                         ///< the answer in one sentence
  std::vector<std::string> notes;               ///< defaults taken and limits of the answer
  std::vector<std::string> important;           ///< those of the notes that one screen shows
  std::string table_key;                        ///< the list among the results that CSV prints; empty for the scalars
  std::optional<Screen> screen;                 ///< the same for one screen; without it a table of all results is shown
  Ledger ledger;                                ///< derivations, when asked for
  std::vector<int> derived;                     ///< roots in the ledger
  int derived_levels = 0;                       ///< of the derivations in texts; 0: all, as JSON has them
  std::optional<draw::Scene> picture;           ///< when asked for
  std::vector<draw::Scene> more_pictures = {};  ///< that only a page shows, below `picture`
  std::vector<draw::Scene> frames;              ///< of an animation, when asked for
  std::vector<std::pair<std::string, std::string>> files;  ///< further outputs that were asked for: path, content
  std::vector<std::string> lines;  ///< an answer to paste or pipe: printed as it is instead of a table
  Outcome outcome = Outcome::ok;
  bool is_silent = false;  ///< another process of the same run answers
};

}  // namespace assay::report
