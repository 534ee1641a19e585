// Software: what frameworks and engines do, as values of the options of `assay train` and `assay serve`. Each is a file
// of catalogue/software.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/transformer.h"
#include "assay/predict/kernel/software/software_options.h"

namespace assay::kernel {

/// A release. Versions are in order of release.
struct SoftwareVersion {
  std::string id, date;  ///< "0.12", "2025-05"
  std::string source;
};

/// The value of an option, for some versions and some cases. Of several that hold, the last one counts.
struct SoftwareProperty {
  std::string option, value, source, note;
  std::string since, before;                              ///< ids of versions; empty: no limit
  std::vector<std::pair<std::string, std::string>> when;  ///< see SoftwareCase
};

/// How tables of measurements write the name. `*` stands for anything, `{}` for the version.
struct SoftwareName {
  std::string text;
  std::string at_least;                                   ///< the version is this one or a later one; empty: any
  std::vector<std::pair<std::string, std::string>> with;  ///< options that the name implies
  std::string atypical;  ///< why such rows say little about the software; empty: they do
};

/// A setting of the software in its own words: "minimal" keeps products.
struct SoftwareWord {
  std::string word;  ///< `*` stands for anything
  std::string means;
};

/// What the software does where a table says nothing.
struct SoftwareDefaults {
  std::string recompute;                ///< empty: as little as fits
  double chunk_layers = 0;              ///< layers in each chunk of an interleaved pipeline; 0: stages are not split
  double vocabulary = 0;                ///< of GPT-2's tokenizer, as it is padded; 0: not known
  std::string gradients;                ///< their format; empty: fp32
  std::string reports = "allocated";    ///< what a peak of memory means: allocated or reserved
  bool pipeline_keeps_weights = false;  ///< with pipeline stages, fully sharded weights stay gathered for a whole step
  bool stages_in_turn = false;          ///< pipeline stages take turns on the whole batch
  double sequences = 0, step_tokens = 0;  ///< most sequences of a replica, and prompt tokens of one step; 0: no limit
};

/// What a property may depend on.
struct SoftwareCase {
  std::string family, chip;      ///< of the chips; empty: none
  std::string model;             ///< its id
  std::string compute, weights;  ///< number formats
  std::string fusion;            ///< as the request gives it; empty: as the software does
  bool gated_experts = false;
  double query_group = 0;  ///< query heads of one key head, 0 without attention
};
SoftwareCase software_case(const model::Transformer& model);

struct SoftwareSource {
  std::string key, title, url;
};

/// One file of catalogue/software.
struct Software {
  std::string id, name;
  std::vector<SoftwareVersion> versions;
  std::vector<SoftwareName> names;
  std::vector<SoftwareWord> recompute;
  SoftwareDefaults defaults;
  std::vector<SoftwareProperty> train, serve;  ///< empty: it does not
  std::vector<SoftwareProperty> plan;          ///< what training plans may be, by rule; empty: not known
  std::vector<std::string> usual_on;           ///< makers of chips whose training it is the usual software of
  std::string unmodelled;                      ///< why no estimate holds for it; empty: estimates do
  std::string atypical;                        ///< what estimates leave out; empty: nothing known
  std::vector<SoftwareSource> sources;

  std::size_t version(std::string_view id) const;
};
using SoftwareList = std::vector<Software>;

/// Reads and checks a file; reports every fault at once.
Result<Software> read_software(std::string_view document, std::string_view file);
/// The software of the catalogue in order of id.
Result<SoftwareList> software_of(const hardware::Catalogue& catalogue);
/// The software that a request needs, without reading the other files: of this id, of all that serves, or of the usual
/// software on chips of this maker.
Result<SoftwareList> software_named(const hardware::Catalogue& catalogue, std::string_view id);
Result<SoftwareList> engines_of(const hardware::Catalogue& catalogue);
Result<SoftwareList> usual_software(const hardware::Catalogue& catalogue, std::string_view maker);

/// One version of a software.
struct ChosenSoftware {
  const Software* software = nullptr;
  std::size_t version = 0;
  const SoftwareName* name = nullptr;  ///< as a table writes it; nullptr: by id

  const std::string& version_id() const { return software->versions[version].id; }
  std::string text() const { return software->id + "@" + version_id(); }
};
/// "NAME@1.2"; without a version the newest. `words` are further values that the option takes, for the hint.
Result<ChosenSoftware> find_software(const SoftwareList& all, std::string_view text, std::string_view where,
                                     std::span<const std::string> words = {});

/// The software that a table names; nothing where no file knows the name. `version` is the column of it, `year` that of
/// the measurement (0: not stated): without a version, the first release of that year.
enum class SoftwareVerb : std::uint8_t { train, serve, plan };
std::optional<ChosenSoftware> named_software(const SoftwareList& all, SoftwareVerb verb, std::string_view text,
                                             std::string_view version, std::int64_t year);

/// The properties that hold for a version and a case, one for each option or rule.
std::vector<SoftwareProperty> properties(const ChosenSoftware& chosen, SoftwareVerb verb, const SoftwareCase& at);
Result<void> apply_software(const ChosenSoftware& chosen, const SoftwareCase& at, TrainingSoftware& out);
Result<void> apply_software(const ChosenSoftware& chosen, const SoftwareCase& at, EngineSoftware& out);

/// The policy that a setting of the software means; nothing where neither the software nor we know the word.
std::optional<std::string> recompute_meaning(std::span<const SoftwareWord> words, std::string_view setting);

}  // namespace assay::kernel
