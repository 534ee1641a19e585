// What shells calculate: patterns, parts of values, conditions and arithmetic.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::launch {

/// Whether a text is as a pattern with *, ? and [...] says.
bool matches_glob(std::string_view pattern, std::string_view text);

/// A value after the rest of ${NAME...}: %, %%, #, ##, /, //, ^, ^^, ,, and ,; `expand` puts values into a pattern.
std::string changed(std::string value, std::string_view rest,
                    const std::function<std::string(std::string_view)>& expand);

/// Whether the words of [ ... ] or [[ ... ]] hold; files exist. Nothing where that depends on a word that is not known.
std::optional<bool> test_holds(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& known);

/// The value of $(( ... )); nothing where a variable in it has none.
std::optional<std::int64_t> calculated(std::string_view text,
                                       const std::function<std::optional<std::string>(std::string_view)>& variable,
                                       const std::function<void(std::string_view, std::int64_t)>& assign);

}  // namespace assay::launch
