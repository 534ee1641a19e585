// What ranks did and when, on the clock that all processes of a machine share: a collective begins when the last of its
// members enters it, so that waiting for others is told from moving data.
#pragma once
#include <vector>

#include "assay/base/units.h"
#include "assay/engine/transport.h"
#include "assay/program/form/program.h"

namespace assay::engine {

struct Activity {
  enum class Kind {
    computes,
    moves,    ///< while nothing else runs
    travels,  ///< beside other steps
    waits,    ///< for what travels or, without a step, for another stage
  };
  int step = -1;  ///< of the program
  Kind kind = Kind::computes;
  Seconds start, end;
  Seconds busy = {};  ///< of a movement: how long its thread had a core

  Seconds duration() const { return end - start; }
  bool is_movement() const { return kind == Kind::moves || kind == Kind::travels; }
};

/// By rank, in the order in which they ended.
using RankActivities = std::vector<std::vector<Activity>>;

/// The time on that clock, and what this thread had of a core so far.
Seconds clock_time();
Seconds core_time();

/// Those of all ranks, in every process. To be called by all.
RankActivities gathered(Transport& transport, const std::vector<Activity>& mine);

/// How long each movement waited: for the last member of its collective, or for a core while others computed, whichever
/// is longer. Ranks that share cores take `turns` on them, which is no waiting. Stages of a pipeline have consecutive
/// ranks.
std::vector<std::vector<Seconds>> waiting(const program::Program& program, const RankActivities& ranks, double turns);

/// From the first start to the last end.
Seconds span(const RankActivities& ranks);

}  // namespace assay::engine
