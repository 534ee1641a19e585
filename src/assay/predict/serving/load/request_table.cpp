#include "assay/predict/serving/load/request_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "assay/base/json_scanner.h"
#include "assay/base/text.h"

namespace assay::serving {
namespace {

/// Names without capitals and marks, as logs and benchmarks have them.
constexpr std::pair<RequestField, std::string_view> field_names[] = {{RequestField::time, "timestamp"},
                                                                     {RequestField::time, "time"},
                                                                     {RequestField::time, "arrival"},
                                                                     {RequestField::time, "arrivedat"},
                                                                     {RequestField::time, "arrivaltime"},
                                                                     {RequestField::time, "t"},
                                                                     {RequestField::nanoseconds, "arrivaltimens"},
                                                                     {RequestField::prompt, "prompt"},
                                                                     {RequestField::prompt, "prompttokens"},
                                                                     {RequestField::prompt, "promptlength"},
                                                                     {RequestField::prompt, "promptlen"},
                                                                     {RequestField::prompt, "in"},
                                                                     {RequestField::prompt, "input"},
                                                                     {RequestField::prompt, "inputtokens"},
                                                                     {RequestField::prompt, "inputlength"},
                                                                     {RequestField::prompt, "inputlen"},
                                                                     {RequestField::prompt, "inputtoks"},
                                                                     {RequestField::prompt, "contexttokens"},
                                                                     {RequestField::prompt, "requesttokens"},
                                                                     {RequestField::prompt, "numprefilltokens"},
                                                                     {RequestField::output, "output"},
                                                                     {RequestField::output, "out"},
                                                                     {RequestField::output, "outputtokens"},
                                                                     {RequestField::output, "outputlength"},
                                                                     {RequestField::output, "outputlen"},
                                                                     {RequestField::output, "outputtoks"},
                                                                     {RequestField::output, "generatedtokens"},
                                                                     {RequestField::output, "responsetokens"},
                                                                     {RequestField::output, "completiontokens"},
                                                                     {RequestField::output, "numdecodetokens"},
                                                                     {RequestField::session, "session"},
                                                                     {RequestField::session, "sessionid"},
                                                                     {RequestField::session, "conversationid"},
                                                                     {RequestField::session, "chatid"}};

/// Days from 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month <= 2) --year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// Reads lines of a table into a trace.
class TableReader {
 public:
  TableReader(std::string_view file, RequestTrace& trace) : file_(file), trace_(trace) {}

  Result<void> line(std::size_t number, std::string_view text) {
    if (columns_.empty()) return header(number, text);
    const std::vector<std::string_view> cells = csv_cells(text);
    if (cells.size() < columns_.size())
      return fail(fmt::format("{}:{}", file_, number),
                  fmt::format("the line has {} values and the header {}", cells.size(), columns_.size()),
                  "complete the line, or take it out");
    TracedRequest request;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i] != RequestField::none) ASSAY_CHECK(cell(number, i, cells[i], request));
    trace_.requests.push_back(std::move(request));
    return {};
  }

 private:
  Result<void> header(std::size_t number, std::string_view text) {
    for (const std::string_view name : csv_cells(text)) columns_.push_back(request_field(name));
    for (const auto& [field, what] :
         {std::pair{RequestField::prompt, "prompt_tokens"}, std::pair{RequestField::output, "output_tokens"}})
      if (std::count(columns_.begin(), columns_.end(), field) != 1)
        return fail(fmt::format("{}:{}", file_, number),
                    fmt::format("the header has no column of {}, or several", what),
                    "requests are JSON lines, or a table under a header: timestamp,prompt_tokens,output_tokens");
    return {};
  }

  Result<void> cell(std::size_t number, std::size_t column, std::string_view text, TracedRequest& request) {
    const RequestField field = columns_[column];
    const auto refused = [&](std::string_view rule, std::string_view hint) {
      return fail(fmt::format("{}:{}", file_, number), fmt::format("{} {}", in_quotes(std::string(text)), rule),
                  std::string(hint));
    };
    if (field == RequestField::session) {
      request.session = sessions_.emplace(std::string(text), std::ssize(sessions_)).first->second;
    } else if (field == RequestField::time || field == RequestField::nanoseconds) {
      const auto moment = parse_moment(text);
      if (!moment || *moment < 0.0)
        return refused("is no time", "seconds, or a date with a time: 2023-11-16 18:15:46.68");
      request.arrival = Seconds(*moment) * (field == RequestField::nanoseconds ? 1e-9 : 1.0);
    } else {
      const auto tokens = parse_number(text);
      if (!tokens || !(*tokens >= 0.0) || *tokens > 1e9)
        return refused("is no number of tokens", "a whole number, e.g. 374");
      (field == RequestField::prompt ? request.prompt : request.output) =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(*tokens));
    }
    return {};
  }

  std::string_view file_;
  RequestTrace& trace_;
  std::vector<RequestField> columns_;
  std::map<std::string, std::int64_t> sessions_;
};

}  // namespace

RequestField request_field(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [field, known] : field_names)
    if (known == plain) return field;
  return RequestField::none;
}

std::optional<double> parse_moment(std::string_view text) {
  if (const auto number = parse_number(text)) return number;
  // 2023-11-16 18:15:46.6805900, with a T between date and time or a Z behind it
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t size) { return whole_number(text.substr(at, size)); };
  const auto year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2);
  const auto seconds = parse_number(text.substr(17, text.find_first_of("+-", 17) - 17));
  if (!year || !month || !day || !hour || !minute || !seconds || *month < 1 || *month > 12) return std::nullopt;
  return static_cast<double>((days_of(*year, *month, *day) * 24 + *hour) * 60 + *minute) * 60.0 + *seconds;
}

Result<void> read_request_table(std::string_view text, std::string_view file, RequestTrace& trace) {
  TableReader reader(file, trace);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    if (!line.empty()) ASSAY_CHECK(reader.line(number, line));
  }
  return {};
}

}  // namespace assay::serving
