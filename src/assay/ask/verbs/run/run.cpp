#include "assay/ask/verbs/run/run.h"

namespace assay::verbs::run {
Result<report::Response> answer(const Request& request, const Context& context) {
  struct Kind {
    std::string_view word;
    Result<report::Response> (*answer)(const Request&, const Context&);
  };
  constexpr Kind kinds[] = {{"train", &train_answer}, {"serve", &serve_answer}};
  const std::string first = request.arguments().empty() ? "" : request.arguments().front();
  if (is_on_gpu(request) && first != "train" && first != "serve")
    return fail("--engine cuda", "programs in text do not run on a GPU, `run train` and `run serve` do",
                "use --engine virtual or mpi", Error::Kind::usage);
  Kind chosen{"program", &program_answer};
  for (const Kind& kind : kinds)
    if (kind.word == first) chosen = kind;
  ASSAY_CHECK(check_inputs(request, chosen.word));
  return chosen.answer(request, context);
}

}  // namespace assay::verbs::run
