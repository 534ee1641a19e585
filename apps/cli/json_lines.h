// `assay json`: a request on each line of the input, an answer on each line of the output.
#pragma once
#include <optional>
#include <string>

#include "assay/assay.h"

namespace assay {

/// The next line of the input without its end; a line too long for a request is cut where it shows that it is.
std::optional<std::string> next_line();
/// Writes the files that a request asked for in addition to its answer; the answer says so where that fails.
void save_files(Answer& answer);
/// Answers until the input ends; returns what the program exits with.
int answer_lines(Reach reach);

}  // namespace assay
