// The space of designs that a workload file spans, and what each of them answers.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/ask/verbs/design/design.h"
#include "assay/base/toml.h"

namespace assay::verbs::design_verb {

/// A request of the mix, and which number of its answer is how good it is.
struct Asked {
  std::string ask, measure;
  double weight = 1.0;
  bool is_less_better = false;
};

/// Values that change together, each by its name: a part of the design ("die.0.cores"), a key of the chip's file
/// ("chip.network.scale_up.domain"), or a word of the requests ("seq", where one has {seq}).
using Axis = std::vector<std::pair<std::string, std::vector<Toml>>>;

enum class Objective { speed, speed_per_dollar, speed_per_watt };

struct Workload {
  std::string file, design;
  Objective objective = Objective::speed_per_dollar;
  std::vector<Asked> requests;
  std::vector<Axis> axes;
  std::optional<Watts> power;
  std::optional<Dollars> cost;
  double chips = 1024;      ///< of the cluster that shares a network, where no word {chips} says so
  bool exhaustive = false;  ///< ask all designs, none is left out by a bound
};
Result<Workload> read_workload(const std::string& text, const std::string& file);

/// What the requests answer for equal chips and words.
struct Answered {
  double speed = 0;  ///< the weighted geometric mean; 0: a request has no answer
  std::string why_not;
  struct One {
    double value = 0, chips = 0;
    std::string limiter;
  };
  std::vector<One> each;  ///< of the requests, in their order
};

/// A design of the space.
struct Candidate {
  std::vector<std::size_t> at;  ///< which value of each axis
  std::string why_not;          ///< it cannot be built, or a request has no answer; else empty
  Area area;
  double of_reticle = 0;
  Watts power;
  Hertz clock;
  bool is_slowed = false;  ///< by the limit of power
  Dollars cost;
  DollarsPerSecond owning;  ///< of a chip
  design::ChipRates rates;  ///< as the requests see the chip
  std::string rest;         ///< what else they depend on: equal ones are bounded by each other's rates
  const Answered* answered = nullptr;
  double speed() const { return answered ? answered->speed : 0.0; }
};

class Space {
 public:
  static Result<Space> make(Workload workload, const Request& request, const Context& context);

  const Workload& workload() const { return workload_; }
  std::size_t size() const;
  std::vector<std::size_t> place(std::size_t number) const;
  std::string values(const std::vector<std::size_t>& at) const;
  std::string axis_text(std::size_t axis, std::size_t value) const;

  /// Area, power and cost; nothing is asked.
  Result<Candidate> build(const std::vector<std::size_t>& at) const;
  /// Answers the requests for chips with these rates and all else as in the candidate; on all cores. Equal ones are
  /// asked once.
  struct Question {
    const Candidate* like = nullptr;
    design::ChipRates rates;
  };
  Result<std::vector<const Answered*>> ask(const std::vector<Question>& questions);
  std::string chip_id() const { return base_.chip.chip_id(); }
  /// The chip file of a candidate.
  Result<std::string> chip_file(const Candidate& candidate) const;
  std::size_t asked() const { return known_.size(); }
  /// Whether more of a resource is never worse, so that a group is bounded by a chip with the most of each.
  bool is_bounded() const { return !workload_.exhaustive && !counts_power_; }

 private:
  struct Documents {
    std::string chip;
    std::vector<std::pair<std::string, std::string>> words;
  };
  Space(Workload workload, const Context& context) : workload_(std::move(workload)), context_(context) {}
  Result<DesignQuery> query_at(const std::vector<std::size_t>& at) const;
  Result<Documents> documents(const Candidate& candidate, const design::ChipRates& rates) const;
  Result<Answered> answers(const Documents& documents, hardware::Catalogue& catalogue) const;
  const Toml& value_of(const std::vector<std::size_t>& at, std::size_t axis, std::size_t part) const;
  std::string key_of(const Documents& made) const;
  double chips_at(const std::vector<std::size_t>& at) const;
  enum class Kind { part, chip, word };
  Kind kind_of(const std::string& name) const;

  Workload workload_;
  const Context& context_;
  Toml root_;  ///< of the design
  DesignQuery base_;
  design::OwningFigures owning_;
  bool counts_power_ = false;  ///< requests measure what the chip draws
  std::map<std::string, Answered> known_;
};

/// The candidates that no cheaper one is as fast as, and the best by the objective. Designs are left out by the bound
/// that more of a resource at equal others is never slower: groups are asked as one chip with the most of each.
struct Found {
  std::vector<const Candidate*> front;  ///< from the cheapest on
  const Candidate* best = nullptr;      ///< null: none can be built and answers
};
Result<Found> explore(Space& space, std::vector<Candidate>& all);

/// What a candidate costs, in the unit of the objective: dollars, or watts.
double price_of(const Workload& workload, const Candidate& one);
/// How good it is at a speed.
double merit(const Workload& workload, const Candidate& one, double speed);

}  // namespace assay::verbs::design_verb
