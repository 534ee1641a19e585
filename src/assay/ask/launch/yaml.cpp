#include <fmt/format.h>
#include <yaml.h>

#include <memory>

#include "assay/ask/launch/document.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

constexpr std::size_t most_yaml_bytes = std::size_t{1} << 20;
constexpr int deepest_yaml = 32;

struct YamlDocument {
  yaml_document_t document{};
  bool loaded = false;
  YamlDocument() = default;
  YamlDocument(const YamlDocument&) = delete;
  YamlDocument& operator=(const YamlDocument&) = delete;
  ~YamlDocument() {
    if (loaded) yaml_document_delete(&document);
  }
};

std::string yaml_scalar(const yaml_node_t& node) {
  std::string text(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  if (node.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return text;
  if (text == "True" || text == "TRUE" || text == "yes" || text == "on") return "true";
  if (text == "False" || text == "FALSE" || text == "no" || text == "off") return "false";
  if (text.empty() || text == "~" || text == "Null") return "null";
  return text;
}

/// An alias may name a part of itself: only so deep, and so much in all.
model::Json tree_of(yaml_document_t& document, int id, int depth, std::size_t& left) {
  model::Json out;
  const yaml_node_t* node = yaml_document_get_node(&document, id);
  if (!node || depth > deepest_yaml || left == 0) return out;
  --left;
  if (node->type == YAML_MAPPING_NODE) {
    out.kind = model::Json::Kind::object;
    for (const yaml_node_pair_t* pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; ++pair) {
      const yaml_node_t* key = yaml_document_get_node(&document, pair->key);
      out.members.emplace_back(key && key->type == YAML_SCALAR_NODE ? yaml_scalar(*key) : "?",
                               tree_of(document, pair->value, depth + 1, left));
    }
  } else if (node->type == YAML_SEQUENCE_NODE) {
    out.kind = model::Json::Kind::list;
    for (const yaml_node_item_t* item = node->data.sequence.items.start; item < node->data.sequence.items.top; ++item)
      out.items.push_back(tree_of(document, *item, depth + 1, left));
  } else if (node->type == YAML_SCALAR_NODE) {
    out.kind = model::Json::Kind::text;
    out.text = yaml_scalar(*node);
  }
  return out;
}

}  // namespace

Result<std::vector<model::Json>> read_yaml(std::string_view text, std::string_view file) {
  if (text.size() > most_yaml_bytes) return fail(std::string(file), "the file is larger than 1 MiB", "");
  const auto end = [](yaml_parser_t* parser) {
    yaml_parser_delete(parser);
    delete parser;
  };
  std::unique_ptr<yaml_parser_t, decltype(end)> parser(new yaml_parser_t{}, end);
  if (yaml_parser_initialize(parser.get()) == 0) throw InternalError("the YAML parser does not start");
  yaml_parser_set_input_string(parser.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::vector<model::Json> out;
  std::size_t left = 100'000;
  while (true) {
    YamlDocument loaded;
    if (yaml_parser_load(parser.get(), &loaded.document) == 0)
      return fail(fmt::format("{}:{}:{}", file, parser->problem_mark.line + 1, parser->problem_mark.column + 1),
                  fmt::format("this is not YAML: {}", parser->problem ? parser->problem : "it ends early"), "");
    loaded.loaded = true;
    if (!yaml_document_get_root_node(&loaded.document)) return out;
    out.push_back(tree_of(loaded.document, 1, 0, left));
  }
}

}  // namespace assay::launch
