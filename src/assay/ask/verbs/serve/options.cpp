// The options of `assay serve`.
#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/ask/verbs/verbs.h"

namespace assay::verbs::serve {
namespace {

/// Requests: how long they are, how often they come, how fast they must be.
std::vector<OptionSpec> load_options() {
  return {
      OptionSpec{"prompt", "N", "tokens per prompt"}.by_default("1024"),
      OptionSpec{"output", "N", "tokens per output (default 256); a file name writes the answer there", true}
          .by_default("256"),
      {"prompt-lengths", "HOW",
       "lognormal:SIGMA or exponential around --prompt, uniform:A..B, p50=N,p99=N, or @FILE with a length per line"},
      {"output-lengths", "HOW", "the same for outputs"},
      {"page", "N",
       "tokens per page of the KV cache, allocated as sequences grow (default: all reserved at the start)"},
      OptionSpec{"overflow", "SHARE", "fraction of time in which pages may run out (default 0.01); limits the batch"}
          .by_default("0.01"),
      {"batch", "B", "sequences decoded together, over all replicas"},
      {"most-batch", "B",
       "no more sequences than these, where the batch is searched: clients, or a limit of the engine"},
      {"prompts", "N", "prompts that one prefill processes together, over all replicas (default: one each)"},
      {"ttft", "TIME", "limit on time to first token, unloaded; with --rate, of the 99th percentile"},
      {"tpot", "TIME", "limit on time per output token; with --rate, of the 99th percentile"},
      {"rate", "R", "requests per second, arriving at random: adds waits, percentiles and the saturation rate"},
      {"simulate", "N", "with --rate: also simulate N requests"},
      {"prefill-servers", "N", "with --rate: replicas that only run prefill"},
  };
}

/// Number formats and software.
std::vector<OptionSpec> precision_options() {
  return {
      {"weights", "DTYPE",
       "of weights (default: as published, but fp32 becomes bf16); block-scaled formats (mxfp4, nvfp4, int4-g128, "
       "fp8-128x128) apply to linear layers"},
      OptionSpec{"kv", "DTYPE", "of the KV cache (default bf16); per-tensor scales take no memory"}.by_default("bf16"),
      {"compute", "DTYPE",
       "of matrix products (default bf16, or as published if activations are quantised and the chip supports it)"},
      {"head-weights", "DTYPE", "of embedding and head (default: as --weights)"},
      software_option,
      OptionSpec{"fusion", "HOW", "how kernels are generated: fused (default), compiled or eager", false,
                 "fused|compiled|eager"}
          .by_default("fused"),
      OptionSpec{"attention-kernel", "NAME", "attention of prompts: auto (default), flash2 or cudnn", false,
                 "auto|flash2|cudnn"}
          .by_default("auto"),
      {"graphs", "", "decode steps are replayed from captured graphs (default, except with --fusion eager)", false,
       "no"},
      OptionSpec{"all-reduce", "HOW", "small all-reduces: one-shot (default; kernels of the engine) or library", false,
                 "one-shot|library"}
          .by_default("one-shot"),
      OptionSpec{"scheduler", "WHO",
                 "what the host runs between steps: loop, native (default), python, or ahead (python, overlapped with "
                 "the step)",
                 false, "loop|native|python|ahead"}
          .by_default("native"),
      OptionSpec{
          "cache-kernel", "HOW",
          "attention over the cache: on matrix units (default), on vector units, unsplit (vector units, one block per "
          "row), unsplit-matrix (the same on matrix units), or copies (keys and values repeated for every head)",
          false, "matrix|vector|unsplit|unsplit-matrix|copies"}
          .by_default("matrix"),
      {"padded-vocabulary", "", "the engine pads the vocabulary to whole cache lines, which avoids slow kernels", false,
       "no"},
      {"no-windows", "", "the engine caches and reads all tokens, where layers see only a window", false, "no"},
  };
}

/// How the model is split over chips.
std::vector<OptionSpec> sharding_options() {
  return {
      {"tp", "N", "tensor parallelism"},
      {"pp", "N", "pipeline stages"},
      {"ep", "N", "expert parallelism"},
      {"ep-over", "AXES",
       "axis that experts are distributed over: dp (part of it) or tp (which then does not split each expert); "
       "data-parallel devices make up the rest of --ep"},
      {"dp", "N", "data parallelism: replicas, or attention groups that share experts"},
      {"weights-2d", "N", "shards of each weight along its other dimension"},
      {"gather-weights", "", "with --weights-2d: gather weights before use and split sequences instead"},
      {"cache", "HOW",
       "how the KV cache is sharded within a tensor-parallel group; heads-batch and heads-sequence: by heads, and what "
       "devices would hold twice by batch or sequence",
       false, "heads|batch|sequence|heads-batch|heads-sequence"},
  };
}

/// What prompts and drafts change.
std::vector<OptionSpec> prompt_options() {
  return {
      {"prefix-hit", "SHARE", "part of the prompt that is already cached: a share (0.5, 50%) or tokens (512)"},
      OptionSpec{"requests", "FILE|JSON",
                 "real requests: their lengths, and the prefixes that they share, as JSON lines {\"timestamp\": ms, "
                 "\"input_length\", \"output_length\", \"hash_ids\": blocks}"}
          .may_be_attached(),
      {"prefix-memory", "BYTES",
       "with --requests: memory of a replica's chips that keeps prefixes, least recently used ones are evicted "
       "(default: enough for all)"},
      {"prefix-host", "BYTES", "with --prefix-memory: host memory for prefixes that no longer fit there"},
      OptionSpec{"imbalance", "F", "load of the busiest experts over an even load"}.by_default("1"),
      dispatch_option,
      {"chunk", "N", "chunked prefill: prompt tokens added to each decode step of a replica"},
      {"draft", "MODEL", "draft model for speculative decoding; mtp: one layer of the model itself"},
      OptionSpec{"acceptance", "A", "share of drafted tokens that are accepted"}.by_default("0.8"),
      {"draft-length", "K", "drafted tokens per verification (default: the best)"},
  };
}

/// What else is answered, and what replaces estimates.
std::vector<OptionSpec> answer_options() {
  return {
      {"compare", "CLUSTER", "another cluster to compare with", true},
      {"formats", "LIST",
       "also compare these formats, e.g. fp8,int4, for weights, cache and, where the chip supports it, products"},
      {"vary", "batch=1..512", "sweep the batch of the chosen strategy: a range (doubling) or a list"},
      OptionSpec{"memory-margin", "interval|N%|none",
                 "memory of each chip that plans leave free: interval (default) as much as engines leave (those of the "
                 "catalogue, "
                 "or --software), a share of the chip's memory (10%), or none. Without a plan that keeps it, one "
                 "without it is "
                 "shown"}
          .by_default("interval"),
      {"memory-share", "SHARE",
       "share of a chip's memory that the server can use, or of what everything but caches leaves ('0.9 of free'); "
       "default: "
       "what --memory-margin leaves"},
      {"fits", "", "also show what fits in which format, the longest context and the smallest slice"},
      {"list", "", "also list the kernels and collectives of a decode step and of a prefill, with their times"},
      {"products", "",
       "also list the matrix products of a decode step, with the batch at which each becomes compute-bound"},
      {"stretch", "", "allow contexts longer than the model's"},
      {"kv-heads", "K", "number of KV heads, instead of the model's"},
      {"window", "N", "what if layers saw only the last N tokens: all of them, or --local-layers"},
      {"local-layers", "N/M", "with --window: N of every M layers, the others see all tokens"},
      {"share-cache", "N", "what if N layers in a row shared the keys and values of their first"},
      {"parameters", "N", "number of parameters, instead of counting them"},
      {"prefill-time", "TIME", "measured prefill time, instead of the estimate"},
      {"step-time", "TIME", "measured time of a decode step, instead of the estimate"},
      {"mfu", "SHARE", "MFU of prefill, instead of the estimate"},
      OptionSpec{"picture", "WHAT",
                 "front (default), step (its parts against the batch), cost, cache (of a sequence against its length), "
                 "prefixes (with --requests), or drafts (lengths of drafts; with --draft)",
                 false, "front|step|cost|cache|prefixes|drafts"}
          .by_default("front"),
  };
}

}  // namespace

std::vector<OptionSpec> serve_options() {
  std::vector<OptionSpec> options{on_option};
  for (const auto& group :
       {load_options(), precision_options(), sharding_options(), prompt_options(), answer_options()})
    options.insert(options.end(), group.begin(), group.end());
  for (const OptionSpec& option : launch_options()) options.push_back(option);
  for (const OptionSpec& option : {set_option, price_option, prices_option, as_option}) options.push_back(option);
  return options;
}

}  // namespace assay::verbs::serve
