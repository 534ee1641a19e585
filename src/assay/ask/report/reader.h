// What a screen reads from the results: the same values that JSON has, by their paths.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "assay/ask/report/document.h"

namespace assay::report {

class Reader {
 public:
  /// `asked` has the options of the request, at "--NAME".
  explicit Reader(const Members& members, const Members* asked = nullptr) : members_(&members), asked_(asked) {}

  /// The value at a path of keys, "memory.capacity", or of a list, "versions[0].id", "versions[last].id"; null where
  /// there is none.
  const Value* at(std::string_view path) const;
  bool has(std::string_view path) const;

  /// In base units; 0 where there is none.
  double number(std::string_view path) const;
  std::optional<AnyQuantity> quantity(std::string_view path) const;
  bool truth(std::string_view path) const;
  /// As it is for text; counts, ratios and quantities as screens show them; lists with commas; else empty.
  std::string text(std::string_view path) const;
  /// The rows of a list of objects; none where there is no such list.
  const Items& rows(std::string_view path) const;

 private:
  const Members *members_, *asked_;
};

/// A scalar as screens show it.
std::string short_text(const Value& value);

}  // namespace assay::report
