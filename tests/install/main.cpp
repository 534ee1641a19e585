// Prints the answer to the request in the first argument.
#include <assay/assay.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2 || assay::about().version.empty() || assay::schema("train").status != 0) return 2;
  const assay::Engine engine;
  const assay::Answer answer = engine.answer(argv[1]);
  std::cout << answer.json;
  return answer.status;
}
