// One family of configurations, as a file of catalogue/architectures describes it: keys and their defaults, and the
// fields of a model in terms of them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/import/config_reader.h"
#include "assay/model/import/expression.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// How a key of a configuration is read.
struct KeyRule {
  enum class Kind {
    size,    ///< from 1 up
    count,   ///< from 0 up; null is 0
    layers,  ///< a size within the accepted number of layers
    flag,
    factor,  ///< a positive number
    text,
    derived,  ///< a size whose default follows from other keys
    divided,  ///< a size whose default is a quotient without a rest: width / heads
    same,     ///< a size, or a list of equal ones
    texts,
    numbers,  ///< a list of whole numbers, from the default up
    factors,
    types  ///< the library's types of layers, one for each
  };
  Kind kind = Kind::size;
  std::string name;                    ///< in expressions
  std::string object;                  ///< that the keys are inside of
  std::vector<std::string> keys;       ///< names of one value, the usual one first
  std::optional<Expression> fallback;  ///< absent: the key is required
  Expression divisor;                  ///< of `divided`
  MessageText how;                     ///< of `derived`, in words
  bool quiet = false;                  ///< its default leaves no note
  std::optional<Expression> when;      ///< where it does not hold, the key is not read
  std::optional<std::string> absent;   ///< the note where it is not given
};

struct FieldRule {
  std::string name;
  Expression value;
  bool varies = false;  ///< from layer to layer
};

/// An expression with a name.
struct NamedRule {
  std::string name;
  Expression value;
  bool varies = false;  ///< from layer to layer
};

/// A fault unless `that` holds.
struct CheckRule {
  std::string key;
  Expression that;
  MessageText fault, hint;
};

struct NoteRule {
  Expression when;
  MessageText text;
};

/// A stack of layers: what they consist of, by the names of part_names.
struct StackRule {
  Expression layers;
  std::map<std::string, std::vector<FieldRule>, std::less<>> parts;
  bool varies = false;  ///< layers differ
};

struct Architecture {
  std::string id;
  std::vector<KeyRule> keys;
  std::vector<std::string> ignored;  ///< keys that are known and change no shape
  std::vector<NamedRule> named;      ///< each uses those before it
  std::vector<FieldRule> model;
  StackRule decoder;
  std::optional<StackRule> encoder;
  std::vector<CheckRule> checks;
  std::vector<NoteRule> notes;
  std::vector<std::pair<std::string, Expression>> instead;  ///< architectures that read some configurations
  bool lists_blocks = false;                                ///< block_configs may describe each layer
  std::optional<std::string> unsupported;                   ///< why it cannot be described yet
};

/// Parts of a layer that a file describes, and its own fields.
inline constexpr std::string_view part_names[] = {"attention", "cross_attention", "state_space", "mlp",
                                                  "experts",   "shared",          "layer"};
/// A field of T: how a value gets there and, if it is one of some words, which.
template <class T>
struct ModelField {
  std::string_view name;
  void (*set)(T& to, const Value& value);
  std::span<const std::string_view> words = {};
};

std::span<const ModelField<Transformer>> transformer_fields();
std::span<const ModelField<Attention>> attention_fields();
std::span<const ModelField<StateSpace>> state_space_fields();
std::span<const ModelField<FeedForward>> feed_forward_fields();
std::span<const ModelField<SharedBlock>> shared_fields();
std::span<const ModelField<Layer>> layer_fields();
/// Fields of a part, or of "model".
std::vector<std::string> field_names(std::string_view part);
/// What a field can be, if it is one of some words.
std::span<const std::string_view> field_words(std::string_view part, std::string_view field);

/// What configurations are called, and the file that reads them.
struct FamilyName {
  std::string model_type;
  std::string architecture;  ///< as in `architectures`; may be empty
  std::string key;           ///< of configurations that say neither type nor architecture
  std::string id;
};

/// All names of the catalogue, in the order of its files.
Result<const std::vector<FamilyName>*> family_names(const hardware::Catalogue& catalogue);
/// A file of the catalogue, read on first use; every fault has its place.
Result<const Architecture*> architecture(const std::string& id, const hardware::Catalogue& catalogue);

/// Reads a configuration as an architecture describes it. Faults and defaults are kept by the reader.
Result<void> read_as(const Architecture& how, ConfigReader& in, const hardware::Catalogue& catalogue,
                     Transformer& model);

/// The most layers that are accepted.
inline constexpr std::int64_t most_layers = 10'000;
/// layer_types as the library lists them, checked for their number; empty if not given.
std::vector<std::string> read_layer_types(ConfigReader& in, std::int64_t layers);

}  // namespace assay::model
