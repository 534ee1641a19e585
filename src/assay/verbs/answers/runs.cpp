// Results of executed programs. The grammar is in answers.h.
#include "assay/verbs/answers/declarations.h"

namespace assay::verbs::answers {

extern const std::string_view run = R"keys(
mesh: text, devices: count
)keys";

}  // namespace assay::verbs::answers
