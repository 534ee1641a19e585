// `assay mcp`: every command as a tool of the Model Context Protocol, a message on each line of the input and the
// output.
#pragma once
#include "assay/assay.h"

namespace assay {

/// Answers until the input ends; returns what the program exits with.
int serve_tools(Reach reach);

}  // namespace assay
