#!/bin/sh
# Checks the includes and the portability rules of the sources below src/assay; prints file:line for each breach.
#   * a layer includes only itself and the layers before it in this list; testing/ is for tests alone;
#     assay.h and c.h, the public interfaces, come last;
#   * a third-party header stands in a .cpp, never in a header of ours (fmt and tl::expected are part of our vocabulary);
#   * the core stays portable to WebAssembly: no ranges, no source_location, and threads in base/parallel only.
set -eu
layers="base hardware model program/form program/plan program/lower program/language
  predict/numbers predict/collective predict/roofline predict/kernel predict/clock predict/training predict/serving predict/search predict/design
  engine profile/trace profile/hlo profile/compare lab/measure lab/benchmark lab/validate lab/fit
  ask/launch ask/draw ask/report ask/sweep ask/verbs assay.h assay.cpp assay_test.cpp c.h c.cpp testing"

cd "$(dirname "$0")/../src"
find assay -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | xargs -r awk -v layers="$layers" '
  BEGIN {
    split(layers, names, /[ \n]+/)
    for (i in names) rank[names[i]] = i + 0
  }
  # "base" of assay/base/units.h, "predict/clock" of assay/predict/clock/pipeline.h.
  function layer_of(path,  part) {
    split(path, part, "/")
    return (part[2] "/" part[3]) in rank ? part[2] "/" part[3] : part[2]
  }
  function breach(text) {
    printf "src/%s:%d: %s\n", FILENAME, FNR, text
    breaches = 1
  }
  FNR == 1 {
    layer = layer_of(FILENAME)
    is_header = FILENAME ~ /\.h$/
    may_use_all = layer == "engine" || layer == "lab/measure" || layer == "ask/sweep" || layer == "testing" || FILENAME ~ /^assay\/base\/parallel/
    if (!(layer in rank)) breach("folder " layer " is not a layer; the layers are listed in scripts/check_layers.sh")
  }
  { sub(/\/\/.*/, "") }
  /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = /"/
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*/, "", header)
    if (header ~ /^assay\//) {
      other = layer_of(header)
      if (!(other in rank)) breach(header " is in no layer")
      else if (other == "testing" && FILENAME ~ /_test\.cpp$/) next
      else if ((layer in rank) && rank[other] > rank[layer])
        breach("layer " layer " includes the later layer " other " (" header ")")
    } else if (quoted) breach("write \"assay/" layer "/" header "\", the path from src/")
    if (is_header && header ~ /^(CLI\/|nlohmann\/|toml\+\+\/|toml\.hpp|httplib|tbb\/|oneapi\/)/)
      breach("third-party header " header " in a header of ours")
    if (!may_use_all && header ~ /^(ranges|source_location|thread|mutex|future|condition_variable)$/)
      breach("<" header "> is not portable; it belongs into base/parallel, engine, lab/measure or ask/sweep")
  }
  !may_use_all && match($0, /std::(ranges|views|source_location)/) {
    breach(substr($0, RSTART, RLENGTH) " is not portable to clang 14 and WebAssembly")
  }
  END { exit breaches }
'
