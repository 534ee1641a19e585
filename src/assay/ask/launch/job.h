// How programs are started: words that start other programs, batch scripts, and documents of containers.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/shell.h"
#include "assay/ask/launch/target.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::launch {

/// Files of catalogue/jobs, as one.
struct Jobs {
  std::vector<std::string> starters;        ///< programs that start the one whose words follow
  std::vector<std::string> script_options;  ///< their options whose value is a script
  Pairs options;                            ///< their other options, and the fields of a plan that these say
  std::vector<std::string> directives;      ///< how lines of options for the scheduler start: "#SBATCH"
  Pairs directive_options;                  ///< those options, and their fields; the first that is given counts
  Pairs directive_variables;                ///< variables of the environment, and the fields that they hold
  std::vector<std::string> commands;        ///< keys of the words of a container, in their order
  std::vector<std::string> environment;     ///< keys of its variables
  std::vector<std::string> resources;       ///< keys of what it asks for
  std::vector<std::string> chips;           ///< names of chips among those
  std::vector<std::string> copies;          ///< keys of how often a part is started; a dot leads into an object
  std::vector<std::string> sets;            ///< keys of parts whose containers are different ones of the same copies
  std::vector<std::string> files;           ///< keys of files, by their names
  Pairs facts;                              ///< other keys, and the fields that they say
};
Result<const Jobs*> jobs_of(const hardware::Catalogue& catalogue);

/// A script with what its scheduler is told.
struct Job {
  std::string script;
  Variables environment;
  Settings fields;  ///< "nodes", "node_chips", "chips", "device", "topology", "slices", "set"
};

/// Fields that lines for a scheduler say: "#SBATCH --nodes=4".
Job batch_job(const Jobs& jobs, std::string_view script);

/// The containers of documents, and the files that they are given.
struct Containers {
  std::vector<Job> jobs;
  Variables files;
};
Containers containers_in(const Jobs& jobs, const std::vector<model::Json>& trees);

/// Scripts in prose: what stands between fences; all of the text where it has none.
std::vector<std::string> scripts_in(std::string_view text);

}  // namespace assay::launch
