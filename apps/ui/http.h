// HTTP/1.1 as far as a page and its programs need it: bytes in, requests out, responses as bytes. No sockets.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::ui {

struct HttpRequest {
  std::string method, path, query;                           ///< "/api" and "a=1": the target without escapes undone
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;
  bool keep_alive = true;

  /// The value of a header; the first one if it is repeated.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// Why bytes are no request, and the status to refuse them with.
struct HttpFault {
  int status = 400;
  std::string what;
};

/// Takes requests out of the bytes of a connection. A body has a Content-Length; other codings are refused.
class HttpReader {
 public:
  /// Bodies of several parts, which have files in them, may be larger.
  static constexpr std::size_t head_limit = 16 << 10, body_limit = 1 << 20, form_limit = 64 << 20;

  void append(std::string_view bytes) { bytes_ += bytes; }
  /// The next whole request, if there is one. After a fault there is none: the bytes cannot be trusted any more.
  std::optional<HttpRequest> next();

  const std::optional<HttpFault>& fault() const { return fault_; }
  /// The request that is coming, without its body; null before its head is there.
  const HttpRequest* coming() const { return request_ ? &*request_ : nullptr; }
  /// Bytes of the body of the request that is coming, and those that are held.
  std::size_t body() const { return request_ ? body_ : 0; }
  std::size_t held() const { return bytes_.size(); }
  /// Whether part of a request has come.
  bool is_within() const { return request_ || !bytes_.empty(); }
  /// Whether the client waits to be told to send its body; true once for each request.
  bool takes_wish_to_continue() { return std::exchange(wants_continue_, false); }

 private:
  void read_head(std::string_view head);
  void refuse(int status, std::string what);

  std::string bytes_;
  std::optional<HttpRequest> request_;  ///< its head has been read
  std::size_t body_ = 0;                ///< bytes of its body
  bool wants_continue_ = false;
  std::optional<HttpFault> fault_;
};

struct HttpResponse {
  int status = 200;
  std::string type, body;
  std::vector<std::pair<std::string_view, std::string>> headers = {};  ///< in addition to those of every response
};

std::string lower_case(std::string_view text);

/// A response as bytes: with the headers that keep a page to its own origin, and without the body where only the head
/// was asked for.
std::string http_bytes(const HttpResponse& response, bool keep_alive, bool head_only = false);

}  // namespace assay::ui
