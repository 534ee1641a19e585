#include "assay/predict/training/link_derivation.h"

namespace assay::training {

DerivedLinks::DerivedLinks(const Traced& num, const Question& question, const lower::Parallelism& parallelism,
                           const collective::AxisLayout& layout)
    : num_(num),
      question_(question),
      parallelism_(parallelism),
      layout_(layout),
      labels_(collective::collective_labels(question.cluster)),
      linker_(question.cluster, question.calibration, question.routing) {
  links_ = linker_.links(parallelism, layout).value();
}

double DerivedLinks::ways(RoleSet over) const { return links_.ways(over); }

const DerivedLinks::Form& DerivedLinks::form(RoleSet over, program::Collective kind) const {
  const auto [known, is_new] = forms_.try_emplace({over, kind});
  if (is_new && links_.ways(over) > 1.0)
    known->second =
        linker_.form(num_, kind, linker_.group_of(parallelism_, layout_, over).value(), &labels_, &question_.sources);
  return known->second;
}

NumberOf<Traced, SecondsPerByte> DerivedLinks::ideal_per_byte(RoleSet over, program::Collective kind) const {
  return num_.named("time per byte at full bandwidth",
                    line(kind, linker_.group_of(parallelism_, layout_, over).value()).rate);
}

const DerivedLinks::Form& DerivedLinks::between_stages_form() const {
  if (between_) return *between_;
  const auto one = line(program::Collective::permute, linker_.stages_of(parallelism_, layout_).value());
  return between_.emplace(collective::CollectiveWay<Traced>{one.floor, num_.named("time per byte", one.rate), {}});
}

DerivedLinks::Form DerivedLinks::copies() const {
  const collective::CollectiveGroup pair = mirrored_pair(linker_.stages_of(parallelism_, layout_).value());
  return linker_.form(num_, program::Collective::all_reduce, pair, &labels_, &question_.sources);
}

NumberOf<Traced, SecondsPerByte> DerivedLinks::ideal_copies_per_byte() const {
  const collective::CollectiveGroup pair = mirrored_pair(linker_.stages_of(parallelism_, layout_).value());
  return num_.named("time per byte at full bandwidth", line(program::Collective::all_reduce, pair).rate);
}

NumberOf<Traced, Seconds> DerivedLinks::reached(NumberOf<Traced, Seconds> ideal) const {
  const auto& share = question_.cluster.chip.efficiency.network;
  return share ? ideal / num_.given("share of the bandwidth", *share) : ideal;
}

}  // namespace assay::training
