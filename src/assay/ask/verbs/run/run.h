// assay run: what is executed rather than predicted. The first word says what: a file with a program, or a kind of run.
#pragma once
#include "assay/ask/verbs/verbs.h"

namespace assay::verbs::run {

// assay run: what is executed rather than predicted. The first word says what: a file with a program, or a kind of run.

/// A program in the language of language/, from a file or from --eval.
Result<report::Response> program_answer(const Request& request, const Context& context);

/// Training of a model on text, under any strategy.
Result<report::Response> train_answer(const Request& request, const Context& context);

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer);

// Serving as a kind of run.

Result<report::Response> serve_answer(const Request& request, const Context& context);

}  // namespace assay::verbs::run
