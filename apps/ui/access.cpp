#include "ui/access.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>

#include "assay/ask/report/render.h"

namespace assay::ui {
namespace {

/// Compares in a time that does not depend on the first difference.
bool is_same_secret(std::string_view given, std::string_view secret) {
  unsigned char difference = given.size() != secret.size();
  for (std::size_t i = 0; i < secret.size(); ++i)
    difference = static_cast<unsigned char>(difference | (secret[i] ^ (i < given.size() ? given[i] : 0)));
  return difference == 0;
}

/// The part of `text` between separators that starts with `start`, without that start.
std::optional<std::string_view> part_after(std::string_view text, std::string_view start, char separator) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.starts_with(start)) return part.substr(start.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

/// A host without its port, [::1] without its brackets; empty if it is no host.
std::string host_name(std::string_view host) {
  const bool in_brackets = host.starts_with('[');
  const std::size_t end = in_brackets ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return "";
  const std::string_view port = host.substr(in_brackets ? end + 1 : end);
  if (!port.empty() && (port[0] != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos)) return "";
  return std::string(host.substr(in_brackets ? 1 : 0, in_brackets ? end - 1 : end));
}

bool is_address(const std::string& name) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET, name.c_str(), &parsed) == 1 || ::inet_pton(AF_INET6, name.c_str(), &parsed) == 1;
}

/// Whether a page of another site asks. A link to our page may be followed from anywhere: its site does not see where
/// it leads.
bool is_of_another_site(const HttpRequest& request) {
  const auto site = request.header("sec-fetch-site");
  if (!site || *site == "same-origin" || *site == "none") return false;
  return request.header("sec-fetch-mode") != "navigate" || request.header("sec-fetch-dest") != "document" ||
         request.method != "GET";
}

}  // namespace

Access::Access(std::string address, int port, std::string token, std::vector<std::string> names)
    : address_(std::move(address)), token_(std::move(token)), names_(std::move(names)), port_(port) {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0') names_.emplace_back(name);
  for (std::string& one : names_) one = lower_case(one);
}

// A name that an attacker's name server points at this machine is none of these. An address cannot be pointed
// elsewhere, so any will do where the server listens on all of them.
bool Access::knows_host(std::string_view host) const {
  const std::string name = lower_case(host_name(host));
  if (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == address_) return true;
  return !token_.empty() && (is_address(name) || std::find(names_.begin(), names_.end(), name) != names_.end());
}

std::string Access::cookie_name() const { return fmt::format("assay_{}=", port_); }

std::optional<HttpResponse> Access::refusal(const HttpRequest& request) const {
  const auto host = request.header("host");
  if (!host || !knows_host(*host))
    return refuse(403, "Host", "this server answers for its own address alone", "open the address that it printed");
  const auto origin = request.header("origin");
  if ((origin && *origin != fmt::format("http://{}", *host)) || is_of_another_site(request))
    return refuse(403, "Origin", "a page of another site asks", "open the address that the server printed");
  if (token_.empty()) return std::nullopt;

  const auto authorization = request.header("authorization"), cookies = request.header("cookie");
  const auto bearer = authorization ? part_after(*authorization, "Bearer ", ',') : std::nullopt;
  const auto cookie = cookies ? part_after(*cookies, cookie_name(), ';') : std::nullopt;
  if ((bearer && is_same_secret(*bearer, token_)) || (cookie && is_same_secret(*cookie, token_))) return std::nullopt;
  const auto given = part_after(request.query, "token=", '&');
  if (!given || !is_same_secret(*given, token_))
    return refuse(401, "token", "the token is missing or wrong",
                  "open the address that the server printed, or send Authorization: Bearer TOKEN");
  if (request.method != "GET" || request.path != "/") return std::nullopt;
  // The browser keeps the token for this session, and its address bar and history do not.
  return HttpResponse{303,
                      "text/plain; charset=utf-8",
                      "",
                      {{"Location", "/"}, {"Set-Cookie", cookie_name() + token_ + "; Path=/; HttpOnly; SameSite=Lax"}}};
}

std::string random_token() {
  unsigned char bytes[32];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return "";
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

HttpResponse refuse(int status, std::string where, std::string what, std::string hint) {
  const Error error{Error::Kind::usage, std::move(where), std::move(what), std::move(hint), {}};
  return {status, "application/json", report::render_json(error, report::Layout::one_line)};
}

}  // namespace assay::ui
