// When a line of a target counts: conditions on the fields of a plan, and products of them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/target.h"

namespace assay::launch {

/// How conditions on a field start that are not a value of it: "within pp,dp,tp", "= tp * dp", "not tpu-v7".
constexpr std::string_view within_word = "within ", equal_word = "= ", not_word = "not ";

std::optional<double> number_of(const Settings& plan, std::string_view field);
/// The value of a product; nothing where a field is not known.
std::optional<double> value_of(const Product& product, const Settings& plan);
/// Whether all of these conditions are known to hold.
bool hold(const Pairs& when, const Settings& plan);
/// Whether none of these conditions is known not to hold.
bool may_hold(const Pairs& when, const Settings& plan);
/// The options that the cases of a choice name.
std::vector<std::string> names_of(const Choice& choice);

}  // namespace assay::launch
