// The engine for a worker of a browser: one function, a request in, an answer out.
#include <string>
#include <string_view>

#include "assay/assay.h"

/// The line that `assay json` prints; valid until the next call.
extern "C" const char* assay_answer(const char* request, std::size_t size) {
  static const assay::Engine engine;
  static std::string answer;
  answer = engine.answer(std::string_view(request, size), assay::AnswerLayout::one_line).json;
  return answer.c_str();
}
