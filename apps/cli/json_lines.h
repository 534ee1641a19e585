// `assay json`: a request on each line of the input, an answer on each line of the output.
#pragma once
#include "assay/assay.h"

namespace assay {

/// Answers until the input ends; returns what the program exits with.
int answer_lines(Reach reach);

}  // namespace assay
