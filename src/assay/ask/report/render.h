// Renderers: a response or an error as text. Same input, same bytes.
#pragma once
#include <string>

#include "assay/ask/report/response.h"
#include "assay/base/result.h"

namespace assay::report {

enum class Format { table, tree, json, csv, md, svg, html };

struct RenderOptions {
  Format format = Format::table;
  bool colour = false;
  bool explain = false;
  bool quiet = false;  ///< no headline and no notes
  bool all = false;    ///< every result as a table instead of one screen
  std::size_t width = 100;
  bool utf8 = true;
};

/// The response in one of the text formats, ending in a newline.
std::string render(const Response& response, const RenderOptions& options);
/// For people: "error: where: what" and the hint, one block per fault. For JSON: {"error": {...}}.
std::string render(const Error& error, const RenderOptions& options);

/// How JSON is laid out: over several lines for people, or on one line of a stream. The text is the same otherwise.
enum class Layout { indented, one_line };

std::string render_json(const Response& response, bool explain, Layout layout = Layout::indented);
/// `request`: what was asked, where an error is our bug.
std::string render_json(const Error& error, Layout layout = Layout::indented, std::string_view request = {});
std::string render_json(const Value& value, Layout layout = Layout::indented);
/// The answer in one sentence: the first line of its screen.
std::string headline(const Response& response);
std::string render_csv(const Response& response);
/// A field of CSV, in quotes where it needs them.
std::string csv_quoted(std::string text);
/// Where the numbers of a response come from, wrapped to so many columns; 0: not wrapped.
std::string render_derivation(const Response& response, bool colour, std::size_t width);

/// A list among the results as a table of these keys, or of all; nothing where it is absent or empty.
std::optional<ScreenTable> whole_list(const Members& results, std::string_view path,
                                      const std::vector<std::string_view>& keys = {});

std::string_view name(Error::Kind kind);
std::string_view name(Outcome outcome);

}  // namespace assay::report
