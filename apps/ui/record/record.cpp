// record REQUEST FILE: writes the engine's answer to a request, which takes seconds, for the server to have it at once.
#include <cstdio>
#include <fstream>

#include "assay/assay.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: record REQUEST FILE\n", stderr), 2;
  const assay::Answer answer = assay::Engine().answer(argv[1], assay::AnswerLayout::one_line);
  if (answer.status != 0) return std::fputs(answer.json.c_str(), stderr), answer.status;
  std::ofstream out(argv[2], std::ios::binary);
  return out << answer.json ? 0 : 1;
}
