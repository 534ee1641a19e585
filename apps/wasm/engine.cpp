// The engine for a worker of a browser: one function, a request in, an answer out.
#include "assay/assay.h"

#include <string>

namespace {

const assay::Engine& engine() {
  static const assay::Engine one;
  return one;
}

}  // namespace

/// The line that `assay json` prints; valid until the next call.
extern "C" const char* assay_answer(const char* request) {
  static std::string answer;
  answer = engine().answer(request, assay::AnswerLayout::one_line).json;
  return answer.c_str();
}

/// What `assay schema VERB` prints; of no verb, of all.
extern "C" const char* assay_schema(const char* verb) {
  static std::string text;
  text = assay::schema(verb).json;
  return text.c_str();
}
