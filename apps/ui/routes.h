// What the server has, by path: the page, the schema, and the engine behind /api.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "assay/assay.h"
#include "ui/http.h"

namespace assay::ui {

class Routes {
 public:
  /// The response to a request; nothing where the engine has to answer its body.
  std::optional<HttpResponse> respond(const HttpRequest& request);

 private:
  HttpResponse schema_of(const std::string& verb);

  std::map<std::string, HttpResponse> schemas_;  ///< made once for each verb
};

/// An answer of the engine: 200, or 400 for a request that cannot be answered, and 500 for a bug of ours.
HttpResponse response_of(Answer answer);

}  // namespace assay::ui
