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
  /// `recorded`: whether the answers that the build recorded are those of this server's engine.
  explicit Routes(bool recorded = true) : recorded_(recorded) {}

  /// The response to a request; nothing where the engine has to answer its body.
  std::optional<HttpResponse> respond(const HttpRequest& request);

 private:
  /// What does not change while the server runs, as it is and packed, and a tag that tells versions apart.
  struct Kept {
    std::string type, plain, packed, tag;
  };

  const Kept* file_at(const std::string& path);
  const Kept* keep(const std::string& path, std::string_view text);
  const Kept* schema_of(const std::string& verb, HttpResponse& unknown);
  static HttpResponse kept_response(const Kept& kept, const HttpRequest& request);

  std::map<std::string, Kept> files_, schemas_;  ///< made when they are first asked for
  bool recorded_;
};

/// An answer of the engine, perhaps packed: 200, or 400 for a request that cannot be answered, and 500 for a bug of
/// ours.
HttpResponse response_of(Answer answer, bool is_packed = false);

}  // namespace assay::ui
