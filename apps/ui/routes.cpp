#include "ui/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "assay/base/version.h"
#include "ui/access.h"
#include "ui/embedded_page.h"
#include "ui/packed.h"

namespace assay::ui {
namespace {

constexpr std::string_view json_type = "application/json", text_type = "text/plain; charset=utf-8";

std::string_view type_of(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> types[] = {{".html", "text/html; charset=utf-8"},
                                                                     {".js", "text/javascript; charset=utf-8"},
                                                                     {".css", "text/css; charset=utf-8"},
                                                                     {".json", json_type},
                                                                     {".svg", "image/svg+xml"},
                                                                     {".webmanifest", "application/manifest+json"},
                                                                     {".gz", "application/gzip"},
                                                                     {".png", "image/png"},
                                                                     {".ico", "image/x-icon"},
                                                                     {".woff2", "font/woff2"},
                                                                     {".wasm", "application/wasm"}};
  for (const auto& [ending, type] : types)
    if (path.ends_with(ending)) return type;
  return text_type;
}

/// A tag for these bytes (FNV-1a): other bytes have another one but in one case of 2^64.
std::string tag_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("\"{:016x}\"", hash);
}

}  // namespace

std::optional<HttpResponse> Routes::respond(const HttpRequest& request) {
  const bool asks = request.path == "/api";
  if (asks ? request.method != "POST" : request.method != "GET" && request.method != "HEAD") {
    HttpResponse refused =
        refuse(405, request.method, "this method is not allowed here", "POST requests to /api, GET everything else");
    refused.headers.emplace_back("Allow", asks ? "POST" : "GET, HEAD");
    return refused;
  }
  if (asks) return std::nullopt;
  if (request.path == "/health")
    return HttpResponse{200, std::string(json_type),
                        fmt::format("{{\"engine\":\"native\",\"version\":\"{}\"}}\n", version)};
  constexpr std::string_view schemas = "/schema";
  const bool is_schema = request.path == schemas || request.path.starts_with("/schema/");
  HttpResponse unknown = refuse(404, request.path.substr(1), "there is no such page",
                                "/ is the page, /api the engine, /schema its schema");
  const Kept* kept = is_schema
                         ? schema_of(request.path.substr(std::min(schemas.size() + 1, request.path.size())), unknown)
                         : file_at(request.path == "/" ? "index.html" : request.path.substr(1));
  return kept ? kept_response(*kept, request) : unknown;
}

const Routes::Kept* Routes::file_at(const std::string& path) {
  if (const auto known = files_.find(path); known != files_.end()) return &known->second;
  for (const hardware::EmbeddedFile& file : embedded_page())
    if (file.path == path) return keep(path, file.text);
  constexpr std::string_view answers = "answers/";
  if (recorded_ && path.starts_with(answers))
    for (const hardware::EmbeddedFile& file : recorded_answers())
      if (file.path == std::string_view(path).substr(answers.size())) return keep(path, file.text);
  if (path != "index.html") return nullptr;
  constexpr std::string_view text =
      "This build of Assay has no page: `make page` writes page/dist, which the next build takes in.\n"
      "Programs ask by POST /api; GET /schema describes requests and answers.\n";
  return &(files_[path] = {std::string(text_type), std::string(text), "", tag_of(text)});
}

const Routes::Kept* Routes::keep(const std::string& path, std::string_view text) {
  constexpr int smallest = 9;
  const bool is_packed = path.ends_with(".woff2") || path.ends_with(".gz");
  return &(files_[path] = {std::string(type_of(path)), std::string(text), is_packed ? "" : packed(text, smallest),
                           tag_of(text)});
}

const Routes::Kept* Routes::schema_of(const std::string& verb, HttpResponse& unknown) {
  if (const auto known = schemas_.find(verb); known != schemas_.end()) return &known->second;
  Answer answer = schema(verb);
  if (answer.status != 0) {
    unknown = {404, std::string(json_type), std::move(answer.json)};
    return nullptr;
  }
  constexpr int fast = 3;
  std::string packed = ui::packed(answer.json, fast), tag = tag_of(answer.json);
  return &(schemas_[verb] = {std::string(json_type), std::move(answer.json), std::move(packed), std::move(tag)});
}

/// A browser asks each time whether what it has is current; if so, nothing is sent.
HttpResponse Routes::kept_response(const Kept& kept, const HttpRequest& request) {
  HttpResponse response{200, kept.type, ""};
  response.headers = {{"Cache-Control", "no-cache"}, {"ETag", kept.tag}, {"Vary", "Accept-Encoding"}};
  const std::string_view known = request.header("if-none-match").value_or("");
  if (known.find(kept.tag) != std::string_view::npos) {
    response.status = 304;
  } else if (kept.packed.size() > 0 && kept.plain.size() >= least_packed &&
             takes_gzip(request.header("accept-encoding"))) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = kept.packed;
  } else {
    response.body = kept.plain;
  }
  return response;
}

HttpResponse response_of(Answer answer, bool is_packed) {
  const int status = answer.status == 70 ? 500 : answer.status == 1 || answer.status == 2 ? 400 : 200;
  HttpResponse response{status, std::string(json_type), std::move(answer.json)};
  if (is_packed) response.headers = {{"Content-Encoding", "gzip"}, {"Vary", "Accept-Encoding"}};
  return response;
}

}  // namespace assay::ui
