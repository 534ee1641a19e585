#!/bin/sh
# Checks the includes and the portability rules of the sources below src/assay; prints file:line for each breach.
#   * a layer includes only itself and the layers before it in this list; testing/ is for tests alone;
#     assay.h, the public interface, comes last;
#   * a third-party header stands in a .cpp, never in a header of ours (fmt and tl::expected are part of our vocabulary);
#   * the core stays portable to WebAssembly: no ranges, no source_location, and threads in base/parallel only.
set -eu
layers="base hardware model launch program plan lower language network roofline estimate pipeline training serving search execute trace hlo compare measure validate draw report sweep verbs assay.h assay.cpp assay_test.cpp testing"

cd "$(dirname "$0")/../src"
find assay -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | xargs -r awk -v layers="$layers" '
  BEGIN {
    split(layers, names, " ")
    for (i in names) rank[names[i]] = i + 0
  }
  function breach(text) {
    printf "src/%s:%d: %s\n", FILENAME, FNR, text
    breaches = 1
  }
  FNR == 1 {
    split(FILENAME, part, "/")
    layer = part[2]
    is_header = FILENAME ~ /\.h$/
    may_use_all = layer == "execute" || layer == "measure" || layer == "sweep" || FILENAME ~ /^assay\/base\/parallel/
    if (!(layer in rank)) breach("folder " layer " is not a layer; the layers are listed in scripts/check_layers.sh")
  }
  { sub(/\/\/.*/, "") }
  /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = /"/
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*/, "", header)
    if (header ~ /^assay\//) {
      split(header, part, "/")
      if (!(part[2] in rank)) breach(header " is in no layer")
      else if (part[2] == "testing" && FILENAME ~ /_test\.cpp$/) next
      else if ((layer in rank) && rank[part[2]] > rank[layer])
        breach("layer " layer " includes the later layer " part[2] " (" header ")")
    } else if (quoted) breach("write \"assay/" layer "/" header "\", the path from src/")
    if (is_header && header ~ /^(CLI\/|nlohmann\/|toml\+\+\/|toml\.hpp|httplib|pybind11\/|tbb\/|oneapi\/)/)
      breach("third-party header " header " in a header of ours")
    if (!may_use_all && header ~ /^(ranges|source_location|thread|mutex|future|condition_variable)$/)
      breach("<" header "> is not portable; it belongs into base/parallel, execute, measure or sweep")
  }
  !may_use_all && match($0, /std::(ranges|views|source_location)/) {
    breach(substr($0, RSTART, RLENGTH) " is not portable to clang 14 and WebAssembly")
  }
  END { exit breaches }
'
