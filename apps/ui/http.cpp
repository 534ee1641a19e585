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
std::optional<std::size_t> plain_digits(std::string_view text) {
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
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
  if (bytes_.size() < body_) return std::nullopt;
  if (bytes_.size() == body_) {
    request_->body = std::exchange(bytes_, {});
  } else {
    request_->body = bytes_.substr(0, body_);
    bytes_.erase(0, body_);
  }
  wants_continue_ = false;
  return std::exchange(request_, std::nullopt);
}

void HttpReader::refuse(int status, std::string what) {
  fault_ = {status, std::move(what)};
  request_.reset();
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

  std::size_t body = 0, hosts = 0, lengths = 0;
  while (!head.empty()) {
    line = head.substr(0, head.find(line_end));
    head.remove_prefix(std::min(head.size(), line.size() + line_end.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = without_blanks(line.substr(std::min(colon + 1, line.size())));
    if (colon == line.size() || !is_token(name) || !is_value(value)) return refuse(400, "a header is not NAME: VALUE");
    if (name == "transfer-encoding") return refuse(411, "a body needs a Content-Length");
    if (name == "content-length") {
      const auto length = plain_digits(value);
      if (!length || ++lengths > 1) return refuse(400, "Content-Length is not one number");
      body = *length;
    }
    if (name == "host" && ++hosts > 1) return refuse(400, "there is more than one Host");
    if (name == "connection")
      request.keep_alive = lower_case(value) != "close" && (request.keep_alive || lower_case(value) == "keep-alive");
    if (name == "expect") wants_continue_ = lower_case(value) == "100-continue";
    request.headers.emplace_back(name, value);
  }
  const bool has_files = lower_case(request.header("content-type").value_or("")).starts_with("multipart/form-data");
  if (body > (has_files ? form_limit : body_limit))
    return refuse(413, has_files ? "the files are larger than 64 MiB" : "the request is larger than 1 MiB");
  body_ = body;
  request_ = std::move(request);
}

std::string http_bytes(const HttpResponse& response, bool keep_alive, bool head_only) {
  // A page may load only what this server has; no other site may frame it or read it.
  constexpr std::string_view guards =
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
      "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Cache-Control: no-store\r\n";
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}", response.status,
                                reason(response.status), response.type, response.body.size(), guards);
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!keep_alive) out += "Connection: close\r\n";
  out += line_end;
  if (!head_only) out += response.body;
  return out;
}

}  // namespace assay::ui
