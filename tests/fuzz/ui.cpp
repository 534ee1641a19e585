// The server's side of HTTP: any bytes are requests or a fault, however they are cut into pieces; whoever asks for
// another name or without the token gets nothing; and every response is whole. Requests to the engine are not answered.
#include "ui/http.h"

#include <string>
#include <string_view>
#include <vector>

#include "target.h"
#include "ui/access.h"
#include "ui/form.h"
#include "ui/routes.h"

namespace {

using namespace assay::ui;
using assay::fuzz::require;

/// What comes of the bytes: each request in one line, then the fault.
std::vector<std::string> read_in_pieces(std::string_view bytes, std::size_t piece, std::vector<HttpRequest>& requests) {
  HttpReader reader;
  std::vector<std::string> read;
  for (std::size_t at = 0; at < bytes.size() && !reader.fault(); at += piece) {
    reader.append(bytes.substr(at, piece));
    while (auto request = reader.next()) {
      std::string line = request->method + " " + request->path + "?" + request->query + " " + request->body;
      for (const auto& [name, value] : request->headers) line += "\n" + name + ":" + value;
      read.push_back(std::move(line));
      requests.push_back(std::move(*request));
    }
  }
  if (reader.fault()) read.push_back(std::to_string(reader.fault()->status) + reader.fault()->what);
  return read;
}

void check_response(const HttpResponse& response) {
  const std::string bytes = http_bytes(response, false);
  require(bytes.starts_with("HTTP/1.1 ") && bytes.ends_with(response.body));
  require(bytes.find("\r\n\r\n") + 4 + response.body.size() == bytes.size());
  require(bytes.find("\r\nX-Content-Type-Options: nosniff\r\n") != std::string::npos);
}

/// Parts lie in the body, one after the other.
void check_form(std::string_view body, const std::string& boundary) {
  const auto form = read_form(body, boundary);
  if (!form) return;
  const char* last = body.data();
  for (const assay::Attachment& file : form->files) {
    require(file.bytes.data() >= last && file.bytes.data() + file.bytes.size() <= body.data() + body.size());
    last = file.bytes.data() + file.bytes.size();
  }
}

bool is_own_name(std::string_view written) {
  const std::string host = assay::ui::lower_case(written);  // names of hosts have no case
  return host.starts_with("localhost") || host.starts_with("127.0.0.1") || host.starts_with("[::1");
}

const assay::fuzz::Target ui_target("ui", [](std::string_view bytes) {
  static const Access open("127.0.0.1", 80, ""), closed("127.0.0.1", 80, "73afc2a0f9ae7d4e");
  static Routes routes;
  std::vector<HttpRequest> requests, again;
  const auto whole = read_in_pieces(bytes, std::max<std::size_t>(1, bytes.size()), requests);
  const auto pieces = read_in_pieces(bytes, bytes.size() > 64 ? 7 : 1, again);
  // A head that is too large is noticed at different places; what came before it is the same.
  require(whole == pieces || (!pieces.empty() && pieces.back().starts_with("431")) ||
          (!whole.empty() && whole.back().starts_with("431")));
  for (const HttpRequest& request : requests) {
    require(request.path.starts_with("/") && request.body.size() <= HttpReader::form_limit);
    check_form(request.body, form_boundary(request.header("content-type").value_or("")).value_or("x"));
    const auto refusal = open.refusal(request), locked = closed.refusal(request);
    require(locked.has_value() || bytes.find("73afc2a0f9ae7d4e") != std::string_view::npos);
    if (refusal) check_response(*refusal);
    if (refusal) continue;
    require(is_own_name(request.header("host").value_or("")));
    if (const auto response = routes.respond(request)) check_response(*response);
  }
});

}  // namespace
