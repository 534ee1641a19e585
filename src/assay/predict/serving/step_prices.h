// The kernels of one profile's steps, priced for many batches: what strategies, placements, batches and steps with
// prompts have in common is priced once.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "assay/predict/kernel/served_product.h"
#include "assay/predict/serving/profile.h"

namespace assay::serving {

/// Sequences that each kind of work sees in one step, as many on every device as on the fullest.
struct StepSizes {
  double tokens = 1;     ///< products, norms and collectives, in steps of the profile's queries; 0: attention alone
  double attention = 1;  ///< sequences whose caches are read
  double heads = 1;      ///< sequences that get a next token

  /// Those of each of so many groups.
  StepSizes of_group(double groups) const { return {tokens / groups, attention / groups, heads / groups}; }
  friend bool operator==(const StepSizes&, const StepSizes&) = default;
};
/// A collective in all layers of a step: its count is that of the whole step.
struct StepCollective {
  ServedCollective collective;
  bool last_tokens = false;
};

/// Refers to the setup that its prices are for. Element-wise kernels whose bytes grow alike are one line and one root.
class StepPrices {
 public:
  using Blocks = ServingProfile::Blocks;
  StepPrices(const ServingSetup& setup, std::shared_ptr<const Blocks> blocks);
  /// What the kernels of a step add up to, without links; valid until the next call.
  const ServingTime& kernels(const StepSizes& sizes);
  const std::vector<StepCollective>& collectives() const { return collectives_; }
  /// Kernels and collectives that a step launches, and those of its attention.
  double launches() const { return launches_; }
  double attention_launches() const { return attention_launches_; }

 private:
  /// Kernels of all layers that take fixed + line x + root sqrt(x) together, where x is `lead` more than the sequences.
  struct Streams {
    bool heads = false;  ///< of sequences that get a next token
    double lead = 0;
    Seconds fixed, line, root;
  };
  /// A product in all layers of a block that is cut into tiles.
  struct Product {
    kernel::ServedProduct price;
    const ServedKernel* kernel = nullptr;
    std::size_t block = 0;
    double count = 1;
    bool has_experts = false;
    StraightLine<double> batch = {}, m = {}, work = {};  ///< work: rows that its arithmetic is worth
    StraightLine<Seconds> compute = {}, moved = {};      ///< at ideal rates
    Seconds experts = {};                                ///< to move the weights of all experts
  };
  /// Any other kernel in all layers of a block.
  struct Priced {
    const ServedKernel* kernel = nullptr;
    std::size_t block = 0;
    double count = 1;
    kernel::Law law = kernel::Law::shares;
    ServedWork work;  ///< at the last load
  };
  /// What kernels do, and take on ideal hardware.
  struct Work {
    Seconds compute, memory;
    Flops flops, attention_flops;
    Bytes attention_bytes;
    void add_to(ServingTime& time, double times) const;
  };
  /// Of the kernels that see the same sequences.
  struct Ideal {
    Work fixed, each;
  };
  struct Block {
    const ServingProfile::Block* of = nullptr;
    Work experts;                                    ///< ideal times of weights of experts, of all layers
    double sequences = 0, touched = 1, fullest = 1;  ///< of the step that is priced
  };
  /// Where a step is, or would be, among `places_`.
  std::uint32_t& place_of(const StepSizes& sizes);
  bool streams(const ServedKernel& kernel, bool heads, double count);
  bool is_tiled(const ServedKernel& kernel, double count);
  void add_ideal_lines(const ServedKernel& kernel, double count, Block& block);
  Seconds price(Priced& priced, const KernelLoad& load) const;
  void add_products(ServingTime& time) const;
  void add_others(const StepSizes& sizes, ServingTime& time);
  void add_up(const StepSizes& sizes, ServingTime& time);

  const ServingSetup& setup_;
  std::shared_ptr<const Blocks> from_;
  std::vector<Block> blocks_;
  std::vector<Streams> streams_;
  std::vector<Product> products_;
  std::vector<Priced> others_;
  Ideal tokens_, attention_, heads_;
  std::vector<StepCollective> collectives_;
  struct Known {
    StepSizes sizes;
    ServingTime time;
  };
  std::vector<Known> known_;
  std::vector<std::uint32_t> places_;  ///< of known steps by their hash, counted from 1: open addressing
  double launches_ = 0, attention_launches_ = 0;
};

/// For callers that price a profile at many batches with one setup: its steps are priced once each. The setup and the
/// tables have to outlive the profile. Times are equal but for the last bits.
void remember_prices(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile);

}  // namespace assay::serving
