// The engine for a worker of a browser: a request and the files that come with it in, an answer out.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/assay.h"

namespace {

std::vector<std::pair<std::string, std::string>> attached;  ///< name, bytes

}  // namespace

/// Adds a file to the next request.
extern "C" void assay_attach(const char* name, const char* bytes, std::size_t size) {
  attached.emplace_back(name, std::string(bytes, size));
}

/// Answers with the line that `assay json` prints; valid until the next call.
extern "C" const char* assay_answer(const char* request, std::size_t size) {
  static const assay::Engine engine;
  static std::string answer;
  std::vector<assay::Attachment> files;
  for (const auto& [name, bytes] : attached) files.push_back({name, bytes});
  answer = engine.answer(std::string_view(request, size), assay::AnswerLayout::one_line, files).json;
  attached.clear();
  return answer.c_str();
}
