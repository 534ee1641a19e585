// HTTP/1.1 as far as a page and its programs need it: bytes in, requests out, responses as bytes. No sockets.
#pragma once
#include <cstddef>
#include <ctime>
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

/// Takes requests out of the bytes of a connection. A body has a Content-Length or comes in chunks; other codings are
/// refused.
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
  /// Bytes of the body of the request that is coming: what it says or, of one in chunks that is large already, what it
  /// may have. And those that are held.
  std::size_t body() const {
    return !request_ ? 0 : !chunks_ ? body_ : request_->body.size() > body_limit ? body_most_ : 0;
  }
  std::size_t held() const { return bytes_.size() + (request_ ? request_->body.size() : 0); }
  /// Whether part of a request has come.
  bool is_within() const { return request_ || !bytes_.empty(); }
  /// Whether the client waits to be told to send its body; true once for each request.
  bool takes_wish_to_continue() { return std::exchange(wants_continue_, false); }

 private:
  /// What is left of a body in chunks.
  struct Chunks {
    enum class Part { size, data, end, trailer };
    Part part;
    std::size_t left;     ///< bytes of the chunk that are still coming
    std::size_t trailer;  ///< bytes of the lines behind the last chunk
  };

  void read_head(std::string_view head);
  bool read_chunks();
  bool read_chunk_line(std::string_view line);
  void refuse(int status, std::string what);

  std::string bytes_;
  std::optional<HttpRequest> request_;  ///< its head has been read
  std::size_t body_ = 0;                ///< bytes of its body
  std::size_t body_most_ = body_limit;  ///< that it may have
  std::optional<Chunks> chunks_;        ///< its body comes in chunks
  bool wants_continue_ = false;
  std::optional<HttpFault> fault_;
};

struct HttpResponse {
  int status = 200;
  std::string type, body;
  std::vector<std::pair<std::string_view, std::string>> headers = {};  ///< in addition to those of every response
};

std::string lower_case(std::string_view text);

/// A time as HTTP writes it: "Fri, 20 Nov 2026 00:09:30 GMT".
std::string http_date(std::time_t time);

/// Whether a client that sends this Accept-Encoding takes gzip.
bool takes_gzip(std::optional<std::string_view> accepted);

/// A response as bytes: with the headers that keep a page to its own origin, and without the body where only the head
/// was asked for.
std::string http_bytes(const HttpResponse& response, bool keep_alive, bool head_only = false);

}  // namespace assay::ui
