#include "assay/verbs/run/run.h"

namespace assay::verbs::run {
namespace {

Result<report::Response> answer(const Request& request, const Context& context) {
  struct Kind {
    std::string_view word;
    Result<report::Response> (*answer)(const Request&, const Context&);
  };
  constexpr Kind kinds[] = {{"", &program_answer}};
  const std::string first = request.arguments().empty() ? "" : request.arguments().front();
  for (const Kind& kind : kinds)
    if (!kind.word.empty() && kind.word == first) return kind.answer(request, context);
  return program_answer(request, context);
}

}  // namespace

VerbSpec verb() {
  return {
      "run",
      "execute a sharded program on virtual devices",
      "FILE is a program over named dimensions and sharded tensors: see docs/run.md. It runs on virtual devices with "
      "real numbers; its results are compared with those of one device, and the bytes it moves with the prediction.",
      {{"file", "a program, FILE.assay", false, true}},
      {{"eval", "TEXT", "the program itself instead of a file (also -e)"},
       {"list", "", "show every step, also those that were inserted"},
       {"show", "LIST", "tensors, separated by commas: show what each device holds of them after each step"},
       {"animate", "FILE", "write an animated svg: what each step changes, one after the other"},
       {"backward", "", "also compute the gradients of the last result"},
       on_option,
       set_option},
      {{"assay run examples/mlp.assay --list", "a feed-forward block, and the collectives it needs"},
       {"assay run examples/all_gather.assay --show x", "what each device holds before and after a collective"}},
      &answer,
      true,
      false,
      &screen_of};
}

}  // namespace assay::verbs::run
