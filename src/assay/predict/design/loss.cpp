#include "assay/predict/design/loss.h"

#include <cmath>

#include "assay/base/record_reader.h"
#include "assay/hardware/catalogue.h"

namespace assay::design {

Result<const std::vector<LossLaw>*> loss_laws(const hardware::Catalogue& catalogue) {
  return catalogue.kept<std::vector<LossLaw>>("loss laws", [&]() -> Result<std::vector<LossLaw>> {
    std::vector<LossLaw> out;
    for (const auto& [path, text] : catalogue.files("technology/loss.toml")) {
      RecordFile file{.name = path, .keys_hint = "docs/design.md describes the keys"};
      ASSAY_CHECK(read_record(text, file, [&](RecordReader& in) {
        in.sources();
        in.each_table("law", [&](const std::string& name, RecordReader& one) {
          LossLaw& law = out.emplace_back();
          law.name = name;
          law.source = one.origin();
          one.number("floor", law.floor);
          one.number("a", law.a);
          one.number("alpha", law.alpha);
          one.number("b", law.b);
          one.number("beta", law.beta);
        });
      }));
    }
    return out;
  });
}

double loss(const LossLaw& law, double parameters, double tokens) {
  return law.floor.value + law.a.value / std::pow(parameters, law.alpha.value) +
         law.b.value / std::pow(tokens, law.beta.value);
}

}  // namespace assay::design
