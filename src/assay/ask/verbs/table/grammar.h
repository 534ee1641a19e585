// The keys of every verb's results, as catalogue/answers/ declares them: what is promised to those who read answers as
// JSON. Schema and tests come from there.
//
// A declaration is a list of `key: type`; `key?: type` may be absent. Types:
//   text, flag (true or false), count, number, any
//   <s>           a quantity in that unit: {"value": 0.04, "unit": "s"}; <*> in any unit
//   range<s>      bounds of ideal hardware and the estimate; interval<s> where measurements put it
//   "a"|"b"       one of these words; T|null may be null; T|U is either
//   [T]           a list; map T an object whose keys are data; {key: T, ...} an object with these keys
//   $name: T      at the start names a type, which $name then stands for; types of several verbs are in
//   answers/shared.txt
//   ...$name      all keys of that object; `*: T` allows keys that are data
//   arguments     what a request takes, so that {"verb", "arguments"} asks for it
#pragma once
#include <string_view>

#include "assay/ask/report/document.h"

namespace assay::verbs {

/// The schema of a declaration. One that cannot be read is our bug.
report::Value schema_of(std::string_view declaration);

}  // namespace assay::verbs
