// How validation asks: command lines, answered as the program answers them.
#pragma once
#include <span>
#include <string>

#include "assay/validate/validation.h"
#include "assay/verbs/request.h"

namespace assay::verbs::validate {

/// Parses and answers command lines in this context.
assay::validate::Ask asking(const Context& context);

/// The same with the numbers of other catalogues.
assay::validate::AskWith asking_with(const Context& context);

/// A command line that a shell splits into these words.
std::string command_line(std::span<const std::string> words);

}  // namespace assay::verbs::validate
