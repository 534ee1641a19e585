#include "json_lines.h"

#include <cstdio>
#include <fstream>
#include <optional>

#include "assay/ask/report/render.h"
#include "assay/ask/verbs/faults.h"
#include "assay/base/progress.h"

namespace assay {

std::optional<std::string> next_line() {
  constexpr std::size_t enough = (1 << 20) + 1;
  std::string line;
  int c = std::getchar();
  if (c == EOF) return std::nullopt;
  for (; c != EOF && c != '\n'; c = std::getchar())
    if (line.size() < enough) line += static_cast<char>(c);
  return line;
}

void save_files(Answer& answer) {
  for (const auto& [path, content] : answer.files) {
    std::ofstream file(path, std::ios::binary);
    file << content;
    file.close();
    if (file) continue;
    const Error unwritten{Error::Kind::input, path, "the file cannot be written", "name a directory that exists", {}};
    answer.json = report::render_json(unwritten, report::Layout::one_line);
    return;
  }
}

int answer_lines(Reach reach) {
  const Engine engine(std::move(reach));
  while (const auto line = next_line()) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    Answer answer = engine.answer(*line, AnswerLayout::one_line);
    save_files(answer);
    if (std::fputs(answer.json.c_str(), stdout) == EOF || std::fflush(stdout) != 0) return verbs::exit_input;
    if (progress.is_stopped()) return verbs::exit_interrupted;
  }
  return 0;
}

}  // namespace assay
