#include "ui/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace assay::ui {
namespace {

constexpr std::string_view line_end = "\r\n";

bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

bool is_target(std::string_view text) {
  return text.starts_with('/') && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

bool is_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; });
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// A whole number in plain digits.
std::optional<std::size_t> plain_digits(std::string_view text, int base = 10) {
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string too_large(std::size_t most) {
  return most == HttpReader::form_limit ? "the files are larger than 64 MiB" : "the request is larger than 1 MiB";
}

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string http_date(std::time_t time) {
  // Names of days and months are English in any locale.
  constexpr std::string_view days = "SunMonTueWedThuFriSat", months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::tm at{};
  ::gmtime_r(&time, &at);
  const auto name = [](std::string_view names, int i) { return names.substr(static_cast<std::size_t>(3 * i), 3); };
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", name(days, at.tm_wday), at.tm_mday,
                     name(months, at.tm_mon), 1900 + at.tm_year, at.tm_hour, at.tm_min, at.tm_sec);
}

bool takes_gzip(std::optional<std::string_view> accepted) {
  std::string_view rest = accepted.value_or("");
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::string coding = lower_case(without_blanks(item.substr(0, item.find(';'))));
    if (coding == "gzip") return item.find("q=0,") == std::string_view::npos && !item.ends_with("q=0");
  }
  return false;
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return std::nullopt;
}

std::optional<HttpRequest> HttpReader::next() {
  if (fault_) return std::nullopt;
  if (!request_) {
    while (bytes_.starts_with(line_end)) bytes_.erase(0, line_end.size());  // allowed between requests
    const std::size_t end = bytes_.find("\r\n\r\n");
    if (std::min(end, bytes_.size()) > head_limit) return refuse(431, "the head is larger than 16 KiB"), std::nullopt;
    if (end == std::string::npos) return std::nullopt;
    read_head(std::string_view(bytes_).substr(0, end));
    if (fault_) return std::nullopt;
    bytes_.erase(0, end + 4);
  }
  if (chunks_) {
    if (!read_chunks()) return std::nullopt;
    chunks_.reset();
  } else if (bytes_.size() < body_) {
    return std::nullopt;
  } else if (bytes_.size() == body_) {
    request_->body = std::exchange(bytes_, {});
  } else {
    request_->body = bytes_.substr(0, body_);
    bytes_.erase(0, body_);
  }
  wants_continue_ = false;
  return std::exchange(request_, std::nullopt);
}

/// Moves what has come of the chunks into the body; whether that was all of them.
bool HttpReader::read_chunks() {
  std::size_t at = 0;
  bool ended = false;
  while (!ended && !fault_) {
    const std::string_view rest = std::string_view(bytes_).substr(at);
    if (chunks_->part == Chunks::Part::data) {
      const std::string_view piece = rest.substr(0, chunks_->left);
      request_->body += piece;
      chunks_->left -= piece.size();
      at += piece.size();
      if (chunks_->left > 0) break;
      chunks_->part = Chunks::Part::end;
      continue;
    }
    constexpr std::size_t most_of_line = 256;
    const std::size_t end = rest.substr(0, most_of_line).find(line_end);
    if (end == std::string_view::npos && rest.size() >= most_of_line) refuse(400, "a line of a chunk is too long");
    if (end == std::string_view::npos) break;
    at += end + line_end.size();
    ended = read_chunk_line(rest.substr(0, end));
  }
  if (!fault_) bytes_.erase(0, at);
  return ended && !fault_;
}

/// The line before, behind or after the last chunk; whether it ends the body.
bool HttpReader::read_chunk_line(std::string_view line) {
  switch (chunks_->part) {
    case Chunks::Part::trailer:
      chunks_->trailer += line.size();
      if (chunks_->trailer > head_limit) refuse(431, "the lines behind the body are larger than 16 KiB");
      return line.empty();
    case Chunks::Part::end:
      if (line.empty())
        chunks_->part = Chunks::Part::size;
      else
        refuse(400, "a chunk is longer than it says");
      return false;
    default:
      break;
  }
  const auto size = plain_digits(without_blanks(line.substr(0, line.find(';'))), 16);
  if (!size)
    refuse(400, "a chunk does not begin with its size");
  else if (*size > body_most_ - request_->body.size())
    refuse(413, too_large(body_most_));
  else
    *chunks_ = {*size > 0 ? Chunks::Part::data : Chunks::Part::trailer, *size, 0};
  return false;
}

void HttpReader::refuse(int status, std::string what) {
  fault_ = {status, std::move(what)};
  request_.reset();
  chunks_.reset();
  bytes_.clear();
}

void HttpReader::read_head(std::string_view head) {
  // METHOD TARGET VERSION
  std::string_view line = head.substr(0, head.find(line_end));
  head.remove_prefix(std::min(head.size(), line.size() + line_end.size()));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse(400, "the first line is not METHOD TARGET VERSION");
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  if (!is_token(method) || !is_target(target)) return refuse(400, "the first line is not METHOD TARGET VERSION");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse(505, "the version is not HTTP/1.1");
  HttpRequest request;
  const std::size_t query = std::min(target.find('?'), target.size());
  request.method = method;
  request.path = target.substr(0, query);
  request.query = target.substr(std::min(query + 1, target.size()));
  request.keep_alive = version == "HTTP/1.1";

  std::size_t body = 0, hosts = 0, lengths = 0, codings = 0;
  while (!head.empty()) {
    line = head.substr(0, head.find(line_end));
    head.remove_prefix(std::min(head.size(), line.size() + line_end.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = without_blanks(line.substr(std::min(colon + 1, line.size())));
    if (colon == line.size() || !is_token(name) || !is_value(value)) return refuse(400, "a header is not NAME: VALUE");
    if (name == "transfer-encoding") {
      if (lower_case(value) != "chunked" || ++codings > 1) return refuse(411, "a body has a Content-Length or chunks");
    }
    if (name == "content-length") {
      const auto length = plain_digits(value);
      if (!length || ++lengths > 1) return refuse(400, "Content-Length is not one number");
      body = *length;
    }
    if (name == "host" && ++hosts > 1) return refuse(400, "there is more than one Host");
    if (name == "connection")
      request.keep_alive = request.keep_alive && lower_case(value) != "close";  // HTTP/1.0 would have to be told so
    if (name == "expect") wants_continue_ = lower_case(value) == "100-continue";
    request.headers.emplace_back(name, value);
  }
  const bool has_files = lower_case(request.header("content-type").value_or("")).starts_with("multipart/form-data");
  if (codings > 0 && lengths > 0) return refuse(400, "a body has a Content-Length or chunks, not both");
  body_most_ = has_files ? form_limit : body_limit;
  if (body > body_most_) return refuse(413, too_large(body_most_));
  body_ = body;
  if (codings > 0) chunks_ = Chunks{Chunks::Part::size, 0, 0};
  request_ = std::move(request);
}

std::string http_bytes(const HttpResponse& response, bool keep_alive, bool head_only) {
  // A page may load only what this server has; no other site may frame it or read it.
  constexpr std::string_view guards =
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
      "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
      "'none'\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Opener-Policy: same-origin-allow-popups\r\nCross-Origin-Resource-Policy: same-origin\r\n";
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}", response.status, reason(response.status),
                                response.type, guards);
  if (response.status != 304) out += fmt::format("Content-Length: {}\r\n", response.body.size());
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  const bool is_kept = std::any_of(response.headers.begin(), response.headers.end(),
                                   [](const auto& header) { return header.first == "Cache-Control"; });
  if (!is_kept) out += "Cache-Control: no-store\r\n";
  if (!keep_alive) out += "Connection: close\r\n";
  out += line_end;
  if (!head_only) out += response.body;
  return out;
}

}  // namespace assay::ui
