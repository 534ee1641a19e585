#include "assay/verbs/run/run.h"

#include "assay/verbs/run/serve.h"

namespace assay::verbs::run {
namespace {

Result<report::Response> answer(const Request& request, const Context& context) {
  struct Kind {
    std::string_view word;
    Result<report::Response> (*answer)(const Request&, const Context&);
  };
  constexpr Kind kinds[] = {{"train", &train_answer}, {"serve", &serve_answer}};
  const std::string first = request.arguments().empty() ? "" : request.arguments().front();
  for (const Kind& kind : kinds)
    if (kind.word == first) return kind.answer(request, context);
  return program_answer(request, context);
}

}  // namespace

VerbSpec verb() {
  std::vector<OptionSpec> options{
      {"eval", "TEXT", "the program itself instead of a file (also -e)"}, on_option, set_option};
  for (const OptionSpec& option : model_run_options()) options.push_back(option);
  return {"run",
          "execute a sharded program on virtual devices",
          "FILE is a program over named dimensions and sharded tensors. It runs on virtual devices with real numbers; "
          "its results are compared with an unsharded run, and the bytes it moves with the prediction.",
          {{"file", "a program, FILE.assay", false, true}},
          std::move(options),
          {},
          &answer,
          true,
          false,
          nullptr};
}

}  // namespace assay::verbs::run
