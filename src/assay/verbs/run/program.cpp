// Runs a program that is written as text.
#include "assay/hardware/catalogue.h"
#include "assay/verbs/run/run.h"

namespace assay::verbs::run {

Result<report::Response> program_answer(const Request& request, const Context&) {
  if (request.arguments().size() > 1 || request.arguments().empty() == !request.has("eval"))
    return fail("run", "give one program: a file, or its text with -e", "e.g. assay run program.assay",
                Error::Kind::usage);
  std::string text;
  if (const auto given = request.value("eval")) {
    text = *given;
  } else {
    ASSAY_TRY(read, hardware::read_file(request.arguments().front(), "FILE"));
    text = std::move(read);
  }
  return fail("run", "programs are not executed yet", "", Error::Kind::missing);
}

}  // namespace assay::verbs::run
