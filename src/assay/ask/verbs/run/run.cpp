#include "assay/ask/verbs/run/run.h"

#include "assay/ask/verbs/run/engine.h"
#include "assay/ask/verbs/run/overlap.h"

namespace assay::verbs::run {
namespace {

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

}  // namespace

VerbSpec verb() {
  std::vector<OptionSpec> options{
      {"eval", "TEXT", "the program itself instead of a file (also -e)"},
      {"list", "", "show every step, also those that were inserted"},
      {"show", "LIST", "tensors, separated by commas: show what each device holds of them after each step"},
      {"animate", "FILE", "write an animated svg: what each step changes, one after the other"},
      {"backward", "", "also compute the gradients of the last result"}};
  for (OptionSpec& option : options) option.inputs = "program";
  options.push_back(overlap_option.for_inputs("program|train"));
  options.push_back(on_option.for_inputs("program|train|serve"));
  options.push_back(set_option.for_inputs("program|train|serve"));
  for (const OptionSpec& option : model_run_options()) options.push_back(option);
  return {
      "run",
      "execute a sharded program, or train and serve a small model, on virtual devices, ranks or a GPU",
      "FILE is a program over named dimensions and sharded tensors: see docs/run.md. It runs on virtual devices with "
      "real numbers; its results are compared with those of one device, and the bytes it moves with the prediction. "
      "`run train MODEL` trains a small model on text and `run serve MODEL` answers prompts, under any strategy: see "
      "docs/run-models.md.",
      {{"file", "a program, FILE.assay; or train MODEL, or serve MODEL", false, true}},
      std::move(options),
      {{"assay run examples/mlp.assay --list", "a feed-forward block, and the collectives it needs"},
       {"assay run examples/all_gather.assay --show x", "what each device holds before and after a collective"},
       {"assay run train llama-3-8b --layers 2 --hidden 32 --tp 2 --steps 5 --check",
        "a small model, trained on two devices"},
       {"assay run serve llama-3-8b --layers 2 --hidden 32 --tp 2 --speculate 2", "the same model, served"}},
      &answer,
      true,
      false,
      &screen_of,
      {{"no-cache", "page", "there are no pages without a cache"},
       {"no-cache", "calls", "what is listed are the calls that fill a cache"},
       {"no-cache", "threads", "threads hand caches over"},
       {"no-cache", "prefill-tp", "there is no cache to hand over"},
       {"threads", "calls", "the activities of threads are listed with their times"},
       {"threads", "page", "pages are followed where one thread does all"}},
      false,
      {{"program", "a program", "assay run examples/mlp.assay"},
       {"train", "a training run", "assay run train llama-3-8b --layers 2 --hidden 32"},
       {"serve", "a serving run", "assay run serve llama-3-8b --layers 2 --hidden 32"}}};
}

}  // namespace assay::verbs::run
