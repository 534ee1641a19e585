// Requests: any text as a command line, as JSON and as a config file gives a request or an error, and as files of the
// catalogue in JSON files that can be read or an error. Nothing is answered.
#include <string>
#include <string_view>

#include "assay/ask/verbs/request.h"
#include "assay/base/toml.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

void check(const Result<verbs::Request>& request) {
  if (request)
    require(!request->echo().empty());
  else
    require(!request.error().what.empty());
}

const fuzz::Target request_target("request", [](std::string_view text) {
  if (const auto words = verbs::split_words(text)) check(verbs::parse_request(*words));
  check(verbs::parse_json_request(text));
  auto request = verbs::parse_json_request(R"({"verb": "roofline", "arguments": {"on": "tpu-v5e"}})");
  const auto applied = verbs::apply_config(*request, text, "fuzz");
  require(applied || !applied.error().where.empty());
  require(request->value("on") == "tpu-v5e");
  if (!text.starts_with('{')) return;  // else it would name a directory
  hardware::Catalogue catalogue;
  const auto overlaid = verbs::overlay_catalogue(catalogue, std::string(text));
  require(overlaid || !overlaid.error().what.empty());
  for (const auto& [path, document] : catalogue.files("")) {
    const auto file = parse_toml(document, path);
    require(file || !file.error().what.empty());
  }
});

}  // namespace
