// Headers that most sources include, parsed once for all of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/text.h"
#include "assay/base/units.h"
