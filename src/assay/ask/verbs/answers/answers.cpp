#include "assay/ask/verbs/answers/answers.h"

#include <utility>

#include "assay/ask/verbs/answers/declarations.h"

namespace assay::verbs {

std::string_view declared_results(std::string_view verb) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"chips", answers::chips},       {"clusters", answers::clusters},
      {"models", answers::models},     {"software", answers::software},
      {"roofline", answers::roofline}, {"systolic", answers::systolic},
      {"transfer", answers::transfer}, {"collective", answers::collective},
      {"shard", answers::shard},       {"layer", answers::layer},
      {"scaling", answers::scaling},   {"solve", answers::solve},
      {"train", answers::train},       {"serve", answers::serve},
      {"validate", answers::validate}, {"book", answers::book},
      {"measure", answers::measure},   {"profile", answers::profile},
      {"sweep", answers::sweep},       {"run", answers::run},
  };
  for (const auto& [name, declaration] : all)
    if (name == verb) return declaration;
  return {};
}

}  // namespace assay::verbs
