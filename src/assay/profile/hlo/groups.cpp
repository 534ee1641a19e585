#include "assay/profile/hlo/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

constexpr const char* group_forms = "groups are written as {{0,1},{2,3}}, [2,4]<=[8], or mesh['X'=2] {'X'}";

/// Numbers in brackets that are next: [2,4].
Result<std::vector<std::int64_t>> read_sizes(Cursor& in, std::string_view open, std::string_view close) {
  std::vector<std::int64_t> out;
  ASSAY_CHECK(in.expect(open, "of a list"));
  while (!in.take(close)) {
    const auto value = in.integer();
    if (!value || *value < 0 || *value > most_devices) return in.fault("expected a number of devices", group_forms);
    out.push_back(*value);
    in.take(",");
  }
  return out;
}

/// 'X' or "X"
Result<std::string> read_quoted(Cursor& in) {
  const char quote = in.take("'") ? '\'' : in.take("\"") ? '"' : '\0';
  if (quote == '\0') return in.fault("expected a name in quotes", group_forms);
  std::string out;
  while (!in.done() && in.peek() != quote) {
    out += in.peek();
    in.move_to(in.at() + 1);
  }
  ASSAY_CHECK(in.expect(std::string_view(&quote, 1), "behind a name"));
  return out;
}

/// mesh['X'=4,'Y'=2] {'X'}
Result<ReplicaGroups> read_named(Cursor& in) {
  ReplicaGroups out;
  in.take("mesh");
  ASSAY_CHECK(in.expect("[", "of a mesh"));
  Iota iota;
  while (!in.take("]")) {
    ASSAY_TRY(name, read_quoted(in));
    ASSAY_CHECK(in.expect("=", "behind the name of an axis"));
    const auto size = in.integer();
    if (!size || *size < 1 || *size > most_devices) return in.fault("an axis has a size of 1 and more", group_forms);
    out.mesh.emplace_back(name, *size);
    iota.dims.push_back(*size);
    if (iota.size() > most_devices) return in.fault("the mesh has too many devices", group_forms);
    in.take(",");
  }
  // A mesh may list its devices in another order: mesh['X'=2,'Y'=4], device_ids=([8]) or with <=.
  ASSAY_CHECK(in.expect("{", "of the axes of a group"));
  std::vector<std::int64_t> inside;
  while (!in.take("}")) {
    ASSAY_TRY(name, read_quoted(in));
    const auto known =
        std::find_if(out.mesh.begin(), out.mesh.end(), [&](const NamedAxis& axis) { return axis.first == name; });
    if (known == out.mesh.end()) return in.fault(fmt::format("the mesh has no axis {}", in_quotes(name)), group_forms);
    if (std::find(out.axes.begin(), out.axes.end(), name) != out.axes.end())
      return in.fault(fmt::format("axis {} is listed twice", in_quotes(name)), group_forms);
    inside.push_back(known - out.mesh.begin());
    out.axes.push_back(name);
    in.take(",");
  }
  for (std::size_t i = 0; i < out.mesh.size(); ++i)
    if (std::find(inside.begin(), inside.end(), static_cast<std::int64_t>(i)) == inside.end())
      iota.permutation.push_back(static_cast<std::int64_t>(i));
  iota.permutation.insert(iota.permutation.end(), inside.begin(), inside.end());
  std::int64_t size = 1;
  for (const std::int64_t axis : inside) size *= iota.dims[static_cast<std::size_t>(axis)];
  const std::vector<std::int64_t> order = iota.values();
  for (std::size_t i = 0; i < order.size(); i += static_cast<std::size_t>(size))
    out.lists.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(i),
                           order.begin() + static_cast<std::ptrdiff_t>(i) + size);
  return out;
}

}  // namespace

std::int64_t Iota::size() const {
  std::int64_t out = 1;
  for (const std::int64_t dim : dims) {
    if (dim > 0 && out > (std::int64_t{1} << 40) / dim) return std::int64_t{1} << 40;
    out *= dim;
  }
  return out;
}

std::vector<std::int64_t> Iota::values() const {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  std::vector<std::int64_t> order = permutation;
  if (order.empty())
    for (std::size_t i = 0; i < dims.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> out{0};
  for (const std::int64_t axis : order) {
    const auto a = static_cast<std::size_t>(axis);
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(dims[a]));
    for (const std::int64_t value : out)
      for (std::int64_t i = 0; i < dims[a]; ++i) next.push_back(value + i * strides[a]);
    out = std::move(next);
  }
  return out;
}

Result<Iota> read_iota(Cursor& in) {
  Iota out;
  ASSAY_TRY(dims, read_sizes(in, "[", "]"));
  out.dims = std::move(dims);
  if (out.size() < 1 || out.size() > most_devices)
    return in.fault("the number of devices is out of range", group_forms);
  if (in.take("T(")) {
    while (!in.take(")")) {
      const auto axis = in.integer();
      if (!axis || *axis < 0 || static_cast<std::size_t>(*axis) >= out.dims.size() ||
          std::find(out.permutation.begin(), out.permutation.end(), *axis) != out.permutation.end())
        return in.fault("T lists each axis once", group_forms);
      out.permutation.push_back(*axis);
      in.take(",");
    }
    if (out.permutation.size() != out.dims.size()) return in.fault("T lists each axis once", group_forms);
  }
  return out;
}

std::int64_t ReplicaGroups::size(std::int64_t devices) const {
  return lists.empty() ? devices : static_cast<std::int64_t>(lists.front().size());
}

Result<ReplicaGroups> parse_replica_groups(std::string_view text, std::string_view where) {
  Cursor in(text, where);
  ReplicaGroups out;
  in.skip_blanks();
  if (in.sees("mesh")) return read_named(in);
  if (in.sees("[")) {
    ASSAY_TRY(sizes, read_sizes(in, "[", "]"));
    ASSAY_CHECK(in.expect("<=", "behind the sizes of groups"));
    ASSAY_TRY(iota, read_iota(in));
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count = size > 0 && count <= most_devices ? count * size : 0;
    if (sizes.empty() || count != iota.size())
      return in.fault(fmt::format("{} devices in groups, {} in all", count, iota.size()), group_forms);
    const auto per_group = static_cast<std::ptrdiff_t>(sizes.back());
    const std::vector<std::int64_t> order = iota.values();
    for (auto at = order.begin(); at != order.end(); at += per_group) out.lists.emplace_back(at, at + per_group);
    return out;
  }
  ASSAY_CHECK(in.expect("{", "of groups"));
  while (!in.take("}")) {
    ASSAY_TRY(list, read_sizes(in, "{", "}"));
    if (!list.empty()) out.lists.push_back(std::move(list));
    in.take(",");
  }
  return out;
}

Result<std::vector<std::pair<std::int64_t, std::int64_t>>> parse_pairs(std::string_view text, std::string_view where) {
  Cursor in(text, where);
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  ASSAY_CHECK(in.expect("{", "of pairs"));
  while (!in.take("}")) {
    ASSAY_TRY(pair, read_sizes(in, "{", "}"));
    if (pair.size() != 2) return in.fault("a pair is a source and a target", "pairs are written as {{0,1},{1,0}}");
    out.emplace_back(pair[0], pair[1]);
    in.take(",");
  }
  return out;
}

std::vector<StridedAxis> strided_axes(const ReplicaGroups& groups, std::int64_t devices) {
  if (groups.lists.empty()) return {{devices, 1}};
  std::vector<std::int64_t> members = groups.lists.front();
  std::sort(members.begin(), members.end());
  std::vector<StridedAxis> out;
  while (members.size() > 1) {
    const std::int64_t stride = members[1] - members[0];
    std::size_t run = 2;
    while (run < members.size() && members[run] - members[run - 1] == stride) ++run;
    if (stride < 1 || members.size() % run != 0) return {};
    std::vector<std::int64_t> next;
    for (std::size_t i = 0; i < members.size(); i += run) {
      for (std::size_t j = 1; j < run; ++j)
        if (members[i + j] - members[i + j - 1] != stride) return {};
      next.push_back(members[i]);
    }
    out.push_back({static_cast<std::int64_t>(run), stride});
    members = std::move(next);
  }
  if (out.empty()) out.push_back({1, 1});
  return out;
}

}  // namespace assay::hlo
