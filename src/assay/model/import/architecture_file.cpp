// Files of catalogue/architectures.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/inheritance.h"
#include "assay/model/import/architecture.h"

namespace assay::model {
namespace {

constexpr std::string_view architecture_folder = "architectures/";
constexpr std::string_view kind_words[] = {"size",    "count", "layers", "flag",    "factor",  "text", "derived",
                                           "divided", "same",  "texts",  "numbers", "factors", "types"};

/// Reads one file; expressions may only name what the file has.
class FileReader {
 public:
  explicit FileReader(Architecture& out) : out_(out) {}

  void read(RecordReader& root) {
    for (const std::string_view known : {"id", "base", "names"}) root.find(known);
    std::vector<std::string> without;
    if (root.has("without")) root.texts("without", without);
    if (const Toml* ignored = root.find("ignored");
        ignored && (!ignored->items.empty() || ignored->kind != Toml::Kind::array))
      root.texts("ignored", out_.ignored);
    root.flag("block_configs", out_.lists_blocks);
    root.text("unsupported", out_.unsupported);
    for (const char* builtin : {"i", "used"}) {
      known_.emplace_back(builtin);
      varying_.emplace(builtin);
    }
    root.each_key("config", [&](const std::string& key, RecordReader& inner) {
      inner.find(key);
      if (std::find(without.begin(), without.end(), key) == without.end()) known_.push_back(key);
    });
    root.each_key("let", [&](const std::string& name, RecordReader& inner) {
      NamedRule& rule = out_.named.emplace_back(NamedRule{name, expression(inner, name)});
      rule.varies = varies(rule.value);
      if (rule.varies) varying_.insert(name);
      known_.push_back(name);
    });
    root.each_key("config", [&](const std::string& key, RecordReader& inner) {
      inner.find(key);
      if (std::find(without.begin(), without.end(), key) == without.end()) read_key(inner, key);
    });
    root.each_key("instead", [&](const std::string& id, RecordReader& inner) {
      out_.instead.emplace_back(id, expression(inner, id));
    });
    fields(root, "model", "model", out_.model);
    stack(root, out_.decoder);
    root.optional_table("encoder", [&](RecordReader& inner) { stack(inner, out_.encoder.emplace()); });
    root.items("check", out_.checks, [&](CheckRule& check, RecordReader& inner) {
      inner.text("key", check.key);
      check.that = expression(inner, "that");
      check.fault = message(inner, "fault");
      if (inner.has("hint")) check.hint = message(inner, "hint");
    });
    root.items("note", out_.notes, [&](NoteRule& note, RecordReader& inner) {
      note.when = inner.has("if") ? expression(inner, "if") : Expression(Value{std::int64_t{1}});
      note.text = message(inner, "text");
    });
  }

 private:
  bool varies(const Expression& value) const {
    const auto names = value.names();
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return varying_.contains(name); });
  }
  void check_names(RecordReader& reader, const Toml& node, std::string_view key, const Expression& value) {
    for (const std::string_view name : value.names())
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        reader.fault_at(node, key, fmt::format("unknown name {}", in_quotes(name)), suggestion(name, known_));
  }
  /// A constant, or the text of an expression; `words` are texts that stand for themselves.
  Expression expression(RecordReader& reader, std::string_view key, std::span<const std::string_view> words = {}) {
    const Toml* node = reader.required(key);
    return node ? expression(reader, key, *node, words) : Expression();
  }
  Expression expression(RecordReader& reader, std::string_view key, const Toml& node,
                        std::span<const std::string_view> words = {}) {
    switch (node.kind) {
      case Toml::Kind::integer:
        return Expression(Value{node.integer});
      case Toml::Kind::number:
        return Expression(Value{node.number});
      case Toml::Kind::boolean:
        return Expression(Value{std::int64_t{node.boolean}});
      case Toml::Kind::text:
        break;
      default:
        reader.fault_at(node, key, fmt::format("expected a value or an expression, got {}", describe(node.kind)));
        return {};
    }
    if (std::find(words.begin(), words.end(), node.text) != words.end()) return Expression(Value{node.text});
    auto parsed = Expression::parse(node.text);
    if (!parsed) {
      reader.fault_at(node, key, parsed.error().what, parsed.error().hint);
      return {};
    }
    check_names(reader, node, key, *parsed);
    return std::move(*parsed);
  }
  MessageText message(RecordReader& reader, std::string_view key) {
    std::string text;
    reader.text(key, text);
    auto parsed = MessageText::parse(text);
    const Toml* node = reader.find(key);
    if (!node) return {};
    if (!parsed) {
      reader.fault_at(*node, key, parsed.error().what, parsed.error().hint);
      return {};
    }
    for (const Expression& value : parsed->expressions()) check_names(reader, *node, key, value);
    return std::move(*parsed);
  }

  void read_key(RecordReader& reader, const std::string& name) {
    KeyRule rule;
    rule.name = name;
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos) rule.object = name.substr(0, dot);
    rule.keys.push_back(dot == std::string::npos ? name : name.substr(dot + 1));
    const Toml& node = *reader.find(name);
    std::optional<std::string> before;
    if (node.kind == Toml::Kind::table) {
      reader.table(name, [&](RecordReader& inner) {
        read_rule(inner, rule);
        inner.text("before", before);
      });
    } else if (node.kind == Toml::Kind::integer) {
      rule.fallback = expression(reader, name);
    } else if (node.kind == Toml::Kind::boolean || node.kind == Toml::Kind::number) {
      rule.kind = node.kind == Toml::Kind::boolean ? KeyRule::Kind::flag : KeyRule::Kind::factor;
      rule.fallback = expression(reader, name);
    } else if (node.kind != Toml::Kind::text || node.text != "required") {
      reader.fault(name, "expected a default",
                   "a number, true or false, \"required\", or a table such as { count = 0 }");
    }
    const auto at = std::find_if(out_.keys.begin(), out_.keys.end(),
                                 [&](const KeyRule& other) { return before && other.name == *before; });
    if (before && at == out_.keys.end())
      reader.fault(name, fmt::format("there is no {} before it", in_quotes(*before)));
    out_.keys.insert(at, std::move(rule));
  }
  /// { count = 0, or = ["other_name"], if = "...", quiet = true }
  void read_rule(RecordReader& reader, KeyRule& rule) {
    std::vector<std::size_t> said;
    for (std::size_t i = 0; i < std::size(kind_words); ++i)
      if (reader.has(kind_words[i])) said.push_back(i);
    if (said.size() != 1)
      return reader.fault("", said.empty() ? "does not say what it is" : "is of two kinds, one of them its base's",
                          fmt::format("one of {}", fmt::join(kind_words, ", ")));
    rule.kind = static_cast<KeyRule::Kind>(said.front());
    const std::string_view kind = kind_words[said.front()];
    const Toml& given = *reader.find(kind);
    if (rule.kind == KeyRule::Kind::text) {
      std::string text;
      reader.text(kind, text);
      rule.fallback = Expression(Value{std::move(text)});
    } else if (rule.kind == KeyRule::Kind::divided) {
      if (given.kind != Toml::Kind::array || given.items.size() != 2)
        return reader.fault(kind, "expected what is divided, and by what");
      rule.fallback = expression(reader, kind, given.items[0]);
      rule.divisor = expression(reader, kind, given.items[1]);
    } else if (given.kind != Toml::Kind::text || given.text != "required") {
      rule.fallback = expression(reader, kind, given);
    }
    if (rule.kind == KeyRule::Kind::derived) rule.how = message(reader, "how");
    if (std::optional<std::string> key; reader.text("key", key), key) rule.keys = {*key};
    std::optional<std::vector<std::string>> others;
    reader.texts("or", others);
    if (others) rule.keys.insert(rule.keys.end(), others->begin(), others->end());
    reader.flag("quiet", rule.quiet);
    reader.text("absent", rule.absent);
    if (reader.has("if")) rule.when = expression(reader, "if");
  }

  void fields(RecordReader& reader, std::string_view table, std::string_view part, std::vector<FieldRule>& out) {
    const std::vector<std::string> names = field_names(part);
    reader.each_key(table, [&](const std::string& name, RecordReader& inner) {
      if (name == "layers" && part == "model") {
        out_.decoder.layers = expression(inner, name);
        return;
      }
      if (std::find(names.begin(), names.end(), name) == names.end())
        inner.fault(name, "there is no such field", suggestion(name, names));
      out.push_back({name, expression(inner, name, field_words(part, name)), false});
    });
  }
  void stack(RecordReader& reader, StackRule& out) {
    if (&out != &out_.decoder) out.layers = expression(reader, "layers");
    for (const std::string_view part : part_names) {
      if (!reader.has(part)) continue;
      std::vector<FieldRule>& rules = out.parts[std::string(part)];
      fields(reader, part, part, rules);
      for (FieldRule& rule : rules) {
        rule.varies = varies(rule.value);
        out.varies = out.varies || rule.varies;
      }
    }
  }

  Architecture& out_;
  std::vector<std::string> known_;
  std::set<std::string, std::less<>> varying_;
};

/// The entries of a file's [names]: model_type = "Architecture", a list of them, or { key = "..." }. They stand one in
/// a line, and are found without reading the rest, so that only the file of a family is parsed.
void add_names(std::string_view text, const std::string& id, std::vector<FamilyName>& out) {
  constexpr std::string_view header = "[names]\n";
  const std::size_t start = text.find(header);
  if (start == std::string_view::npos) return;
  for (text.remove_prefix(start + header.size()); !text.empty();) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return;
    const std::string type(trim(line.substr(0, equals)));
    const auto quoted = split(line.substr(equals + 1), '"');  // texts are every second piece
    const bool by_key = line.find('{') != std::string_view::npos;
    for (std::size_t i = 1; i < quoted.size(); i += 2)
      out.push_back({type, by_key ? "" : quoted[i], by_key ? quoted[i] : "", id});
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

}  // namespace

Result<const std::vector<FamilyName>*> family_names(const hardware::Catalogue& catalogue) {
  return catalogue.kept<std::vector<FamilyName>>("architectures", [&]() -> Result<std::vector<FamilyName>> {
    std::vector<FamilyName> names;
    for (const auto& [path, text] : catalogue.files(architecture_folder))
      add_names(text, hardware::file_stem(path), names);
    return names;
  });
}

Result<const Architecture*> architecture(const std::string& id, const hardware::Catalogue& catalogue) {
  const std::string path = fmt::format("{}{}.toml", architecture_folder, id);
  return catalogue.kept<Architecture>(path, [&]() -> Result<Architecture> {
    for (const auto& [name, text] : catalogue.files(path)) {
      ASSAY_TRY(parsed, parse_toml(text, path));
      ASSAY_TRY(root,
                hardware::with_bases(std::move(parsed), path, architecture_folder, catalogue, {"names", "instead"}));
      Architecture out;
      out.id = id;
      RecordFile shared{.name = path, .keys_hint = "docs/catalogue.md lists the keys", .sourced_tables = false};
      RecordReader reader(shared, root);
      FileReader(out).read(reader);
      reader.finish();
      ASSAY_CHECK(joined(std::move(shared.faults)));
      return out;
    }
    return fail(path, "there is no such file", "it is named by another one", Error::Kind::missing);
  });
}

}  // namespace assay::model
