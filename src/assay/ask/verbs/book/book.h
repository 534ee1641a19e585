// The textbook's worked answers as checks: a fact, a request, the path of the number in the answer, what is expected.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"

namespace assay::verbs::book {

/// One check as the data file has it.
struct BookCheck {
  std::string id;         ///< "tpus.problems.19"
  std::string chapter;    ///< "tpus"
  std::string request;    ///< a command line without the program's name
  std::string path;       ///< of the value in the results
  std::string expected;   ///< a number with unit, a plain number, or text
  std::string tolerance;  ///< "exact", "1%", "order" (a factor of 3)
  std::string note;       ///< why expected differs from the printed number, if it does
};

struct BookSkip {
  std::string id, chapter, why;
};

/// A plot or diagram of the book as a request that draws it, and what a reader may vary.
struct BookFigure {
  struct Control {
    std::string name;  ///< an argument or option of the request
    std::vector<std::string> values;
  };
  std::string chapter, title, request;
  std::string picture;  ///< still or steps, where the engine draws it; empty where a front end does
  std::vector<Control> controls;
};

struct Book {
  std::vector<BookCheck> checks;
  std::vector<BookSkip> skipped;
  std::vector<BookFigure> figures;
};

/// Reads catalogue/book/*.toml.
Result<Book> load_book(const hardware::Catalogue& catalogue);

struct CheckResult {
  bool ok = false;
  report::Value expected, got;
  std::string reason;  ///< when not ok
};

/// Asks the request through the public api and compares.
CheckResult run_check(const BookCheck& check, const Context& context);

}  // namespace assay::verbs::book
