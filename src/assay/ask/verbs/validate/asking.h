// How validation asks: command lines, answered as the program answers them.
#pragma once
#include <span>
#include <string>

#include "assay/ask/verbs/request.h"
#include "assay/lab/validate/validation.h"

namespace assay::verbs::validate_verb {

/// Parses and answers command lines in this context.
validate::Ask asking(const Context& context);

/// The same with the numbers of other catalogues.
validate::AskWith asking_with(const Context& context);

/// A command line that a shell splits into these words.
std::string command_line(std::span<const std::string> words);

}  // namespace assay::verbs::validate_verb
