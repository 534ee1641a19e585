#include "ui/routes.h"

#include <fmt/format.h>

#include "assay/base/version.h"
#include "ui/access.h"
#include "ui/embedded_page.h"

namespace assay::ui {
namespace {

constexpr std::string_view json_type = "application/json", text_type = "text/plain; charset=utf-8";

std::string_view type_of(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> types[] = {{".html", "text/html; charset=utf-8"},
                                                                     {".js", "text/javascript; charset=utf-8"},
                                                                     {".css", "text/css; charset=utf-8"},
                                                                     {".json", json_type},
                                                                     {".svg", "image/svg+xml"},
                                                                     {".png", "image/png"},
                                                                     {".ico", "image/x-icon"},
                                                                     {".woff2", "font/woff2"},
                                                                     {".wasm", "application/wasm"}};
  for (const auto& [ending, type] : types)
    if (path.ends_with(ending)) return type;
  return text_type;
}

HttpResponse file_at(std::string_view path) {
  path.remove_prefix(1);
  if (path.empty()) path = "index.html";
  for (const hardware::EmbeddedFile& file : embedded_page())
    if (file.path == path) return {200, std::string(type_of(path)), std::string(file.text)};
  if (path == "index.html")
    return {200, std::string(text_type),
            "This build of Assay has no page: `make page` writes page/dist, which the next build takes in.\n"
            "Programs ask by POST /api; GET /schema describes requests and answers.\n"};
  return refuse(404, std::string(path), "there is no such page", "/ is the page, /api the engine, /schema its schema");
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
  constexpr std::string_view schemas = "/schema/";
  if (request.path == "/schema") return schema_of("");
  if (request.path.starts_with(schemas)) return schema_of(request.path.substr(schemas.size()));
  return file_at(request.path);
}

HttpResponse Routes::schema_of(const std::string& verb) {
  if (const auto known = schemas_.find(verb); known != schemas_.end()) return known->second;
  Answer answer = schema(verb);
  if (answer.status != 0) return {404, std::string(json_type), std::move(answer.json)};
  return schemas_[verb] = {200, std::string(json_type), std::move(answer.json)};
}

HttpResponse response_of(Answer answer) {
  const int status = answer.status == 70 ? 500 : answer.status == 1 || answer.status == 2 ? 400 : 200;
  return {status, std::string(json_type), std::move(answer.json)};
}

}  // namespace assay::ui
