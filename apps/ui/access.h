// Who may ask: requests for this machine's own names, from this server's own page or from no page, with the token where
// there is one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ui/http.h"

namespace assay::ui {

class Access {
 public:
  /// `address`: what the server listens on. Without a token (empty) everybody who reaches it may ask.
  /// `names`: of this machine, beside those that it knows itself.
  Access(std::string address, int port, std::string token, std::vector<std::string> names = {});

  /// The response that refuses the request or, where its address carries the token, takes the token out of the
  /// address; nothing where it may be answered.
  std::optional<HttpResponse> refusal(const HttpRequest& request) const;

 private:
  bool knows_host(std::string_view host) const;
  std::string cookie_name() const;

  std::string address_, token_;
  std::vector<std::string> names_;
  int port_;
};

/// 256 random bits in hexadecimal digits; empty if the machine has none to give.
std::string random_token();

/// An error of the server as JSON, laid out as `assay json` does.
HttpResponse refuse(int status, std::string where, std::string what, std::string hint);

}  // namespace assay::ui
