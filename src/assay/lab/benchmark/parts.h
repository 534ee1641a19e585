// The texts of benchmarks by their form: JSON, lines of JSON, tables of metrics, logs. Only benchmark_file.h needs it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/lab/benchmark/writer.h"

namespace assay::benchmark {

/// One run, or one step of it: finds the text of a value by its path.
struct Part {
  std::string place;
  std::function<std::optional<std::string>(std::string_view path)> find;

  bool has(std::string_view path) const { return find(path).has_value(); }
};

class Document {
 public:
  static Result<Document> parse(std::string_view text, std::string_view file);

  /// The runs or steps that the file has for this writer; none where it has another form.
  std::vector<Part> parts(const Writer& writer) const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;  // shared with the parts, which read it later
};

}  // namespace assay::benchmark
