// Rotary positions with their scaling, by the definitions of the transformers library: linear, llama3, yarn
// (arXiv:2309.00071) and longrope (arXiv:2402.13753).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/model/import/published.h"

namespace assay::model {
namespace {

const double turn = 8 * std::atan(1.0);

/// One object of parameters, and what stands beside it.
class RotaryReader {
 public:
  RotaryReader(const Json& config, const Json& own, std::int64_t head_dim, const RotaryDefaults& defaults)
      : config_(config), own_(own), defaults_(defaults) {
    base_ = number("rope_theta", defaults.base);
    const double share = number("partial_rotary_factor", defaults.share);
    dims_ = static_cast<double>(static_cast<std::int64_t>(static_cast<double>(head_dim) * share));
    for (double i = 0; i + 1 < dims_; i += 2) plain_.push_back(std::pow(base_, -i / dims_));
  }

  std::string kind() const {
    for (const char* key : {"rope_type", "type"})
      if (const Json* kind = own_.find(key); kind && kind->kind == Json::Kind::text) return kind->text;
    return "default";
  }

  /// Fails where the kind is not known.
  Result<Rotary> read(const std::string& place, Definition& definition) const {
    if (plain_.empty() || static_cast<std::int64_t>(dims_) % 2 != 0)
      return fail(place, fmt::format("{} numbers of a head would turn, which are no pairs", dims_),
                  "head_dim x partial_rotary_factor is even and above 0");
    const std::string name = kind();
    Rotary out{plain_, 1};
    const double factor = number("factor", 1);
    if (name == "linear") {
      for (double& frequency : out.frequencies) frequency /= factor;
    } else if (name == "llama3") {
      for (double& frequency : out.frequencies) frequency = smoothed(frequency, factor);
    } else if (name == "yarn") {
      stretch(out);
    } else if (name == "longrope" || name == "su") {
      ASSAY_CHECK(lengthen(out, place, definition));
    } else if (name == "dynamic") {
      definition.longest = static_cast<std::int64_t>(original());
    } else if (name != "default") {
      return fail(place, fmt::format("rotary positions of type {} are not computed", in_quotes(name)),
                  "default, linear, dynamic, llama3, yarn and longrope are");
    }
    return out;
  }

 private:
  double number(std::string_view key, double usual) const {
    for (const Json* where : {&own_, &config_})
      if (const Json* value = where->find(key);
          value && (value->kind == Json::Kind::number || value->kind == Json::Kind::integer))
        return value->number;
    return usual;
  }
  double original() const { return number("original_max_position_embeddings", defaults_.context); }

  double smoothed(double frequency, double factor) const {
    const double low = number("low_freq_factor", 1), high = number("high_freq_factor", 4);
    const double turns = original() * frequency / turn;  // within the original context
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const double share = (turns - low) / (high - low);
    return (1 - share) * frequency / factor + share * frequency;
  }

  static double magnitude(double factor, double by) { return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1.0; }

  void stretch(Rotary& out) const {
    const double factor = number("factor", defaults_.context / original());
    const auto pair_that_turns = [&](double times) {
      return dims_ * std::log(original() / (times * turn)) / (2 * std::log(base_));
    };
    double first = pair_that_turns(number("beta_fast", 32)), last = pair_that_turns(number("beta_slow", 1));
    if (const Json* cut = own_.find("truncate"); !cut || cut->kind != Json::Kind::boolean || cut->boolean) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, dims_ - 1);
    if (first == last) last += 0.001;
    for (std::size_t i = 0; i < out.frequencies.size(); ++i) {
      const double slow = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
      out.frequencies[i] *= slow / factor + (1 - slow);
    }
    const double all = number("mscale_all_dim", 0), own = number("mscale", 0);
    const bool both = all != 0 && own != 0;
    out.amplitude =
        number("attention_factor", both ? magnitude(factor, own) / magnitude(factor, all) : magnitude(factor, 1));
  }

  Result<void> lengthen(Rotary& out, const std::string& place, Definition& definition) const {
    // Which list holds depends on how long a sequence gets. Those for short ones are taken, and longer ones refused.
    const Json* factors = own_.find("short_factor");
    if (!factors || factors->items.size() != out.frequencies.size())
      return fail(place, fmt::format("short_factor must list {} numbers", out.frequencies.size()),
                  "one for each pair of numbers that turn");
    for (std::size_t i = 0; i < out.frequencies.size(); ++i) out.frequencies[i] /= factors->items[i].number;
    const double factor = number("factor", defaults_.context / original());
    out.amplitude =
        number("attention_factor", factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original())));
    definition.longest = static_cast<std::int64_t>(original());
    return {};
  }

  const Json &config_, &own_;
  const RotaryDefaults& defaults_;
  double base_ = 1e4, dims_ = 0;
  std::vector<double> plain_;
};

}  // namespace

Result<void> read_rotary(const Json& config, const std::string& file, std::int64_t head_dim,
                         const RotaryDefaults& defaults, Definition& definition) {
  const Json nothing;
  const Json* own = nullptr;
  std::string place = file;
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (const Json* given = config.find(key); !own && given && given->kind == Json::Kind::object) {
      own = given;
      place = fmt::format("{}: {}", file, key);
    }
  const Json* full = own ? own->find("full_attention") : nullptr;
  const RotaryReader reader(config, full ? *full : own ? *own : nothing, head_dim, defaults);
  ASSAY_SET(definition.rotary, reader.read(place, definition));
  definition.windowed_rotary = definition.rotary;
  RotaryDefaults near = defaults;
  near.base = defaults.windowed_base;
  const Json* sliding = own ? own->find("sliding_attention") : nullptr;
  if (!sliding && near.base <= 0) return {};
  // The configuration's own base is that of the other layers.
  const RotaryReader windowed(nothing, sliding ? *sliding : nothing, head_dim, near);
  ASSAY_SET(definition.windowed_rotary, windowed.read(place, definition));
  return {};
}

}  // namespace assay::model
