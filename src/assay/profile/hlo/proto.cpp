// Numbers of fields are those of xla/service/hlo.proto and xla/xla_data.proto.
#include "assay/profile/hlo/proto.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assay/base/text.h"
#include "assay/profile/trace/wire.h"

namespace assay::hlo {
namespace {

using trace::WireReader;
using Numbers = std::vector<std::int64_t>;

/// Names of xla::PrimitiveType, by number.
constexpr std::string_view primitive_types[] = {
    "invalid", "pred",   "s8",       "s16", "s32",   "s64",           "u8",         "u16",        "u32",
    "u64",     "f16",    "f32",      "f64", "tuple", "opaque",        "c64",        "bf16",       "token",
    "c128",    "f8e5m2", "f8e4m3fn", "s4",  "u4",    "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s2",
    "u2",      "f8e4m3", "f8e3m4",   "s1",  "u1",    "f4e2m1fn",      "f8e8m0fnu"};
constexpr std::uint64_t tuple_type = 13;
constexpr int deepest_nesting = 50;

/// The fields of a message by number. A field that stands several times is a list; else the last one holds.
class Fields {
 public:
  explicit Fields(std::string_view message) {
    WireReader reader(message);
    while (reader.next()) all_.emplace_back(reader.field(), reader);
  }

  bool has(std::uint32_t field) const { return last(field) != nullptr; }
  std::string_view bytes(std::uint32_t field) const { return has(field) ? last(field)->bytes() : std::string_view(); }
  std::int64_t number(std::uint32_t field) const { return has(field) ? last(field)->whole() : 0; }
  std::vector<std::string_view> messages(std::uint32_t field) const {
    std::vector<std::string_view> out;
    for (const auto& [number, value] : all_)
      if (number == field) out.push_back(value.bytes());
    return out;
  }
  /// Of a list of integers, which may be packed into one field.
  Numbers numbers(std::uint32_t field) const {
    Numbers out;
    for (const auto& [number, value] : all_) {
      if (number != field) continue;
      if (value.bytes().empty()) out.push_back(value.whole());
      std::string_view packed = value.bytes();
      while (const auto one = trace::take_varint(packed)) out.push_back(static_cast<std::int64_t>(*one));
    }
    return out;
  }

 private:
  const WireReader* last(std::uint32_t field) const {
    const WireReader* out = nullptr;
    for (const auto& [number, value] : all_)
      if (number == field) out = &value;
    return out;
  }
  std::vector<std::pair<std::uint32_t, WireReader>> all_;
};

/// A text for each message of a list, with signs between them.
template <class Text>
std::string joined(const std::vector<std::string_view>& messages, std::string_view between, const Text& text) {
  std::string out;
  for (const std::string_view message : messages)
    out += fmt::format("{}{}", out.empty() ? "" : between, text(Fields(message)));
  return out;
}

std::string braces(const Numbers& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ",")); }

std::string in_escaped_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::string shape_of(const Fields& fields, int depth = 0) {
  const auto type = static_cast<std::uint64_t>(fields.number(2));
  if (type == tuple_type)
    return fmt::format("({})", depth == deepest_nesting ? "" : joined(fields.messages(4), ", ", [&](const Fields& of) {
                         return shape_of(of, depth + 1);
                       }));
  const Fields layout(fields.bytes(5));
  std::string placed = joined(layout.messages(6), "",
                              [](const Fields& tile) { return fmt::format("({})", fmt::join(tile.numbers(1), ",")); });
  if (!placed.empty()) placed = ":T" + placed;
  if (const std::int64_t space = layout.number(8); space != 0)
    placed += fmt::format("{}S({})", placed.empty() ? ":" : "", space);
  const Numbers order = layout.numbers(1);
  return fmt::format("{}[{}]{}", primitive_types[type < std::size(primitive_types) ? type : 0],
                     fmt::join(fields.numbers(3), ","),
                     order.empty() && placed.empty() ? "" : fmt::format("{{{}{}}}", fmt::join(order, ","), placed));
}

/// The value of a scalar; "{...}" of an array.
std::string literal_text(std::string_view message) {
  const Fields fields(message);
  if (!Fields(fields.bytes(1)).numbers(3).empty()) return "{...}";
  for (const std::uint32_t whole : {2, 4, 5, 6, 7})  // preds, s32s, s64s, u32s, u64s
    if (const Numbers values = fields.numbers(whole); !values.empty())
      return whole == 2 ? values.front() ? "true" : "false" : std::to_string(values.front());
  float real = 0.0F;
  if (const std::string_view bytes = fields.bytes(8); bytes.size() >= sizeof real) {
    std::memcpy(&real, bytes.data(), sizeof real);
    return std::isfinite(real) ? fmt::format("{}", real) : "{...}";
  }
  return "{...}";
}

std::string window_text(std::string_view message) {
  const std::vector<std::string_view> dimensions = Fields(message).messages(1);
  const auto each = [&](std::uint32_t field, std::int64_t least) {
    return joined(dimensions, "x", [&](const Fields& of) { return std::to_string(std::max(least, of.number(field))); });
  };
  const std::string pads =
      joined(dimensions, "x", [](const Fields& of) { return fmt::format("{}_{}", of.number(3), of.number(4)); });
  return fmt::format("{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}", each(1, 0), each(2, 1), pads,
                     each(6, 1), each(5, 1));
}

/// "b01f_01io->b01f"
std::string label_text(std::string_view message) {
  const Fields of(message);
  const auto labels = [&](std::pair<std::uint32_t, char> first, std::pair<std::uint32_t, char> second,
                          std::uint32_t spatial) {
    const Numbers places = of.numbers(spatial);
    std::string out(places.size() + 2, '?');
    const auto set = [&](std::int64_t at, char label) {
      if (at >= 0 && static_cast<std::size_t>(at) < out.size()) out[static_cast<std::size_t>(at)] = label;
    };
    set(of.number(first.first), first.second);
    set(of.number(second.first), second.second);
    for (std::size_t i = 0; i < places.size(); ++i) set(places[i], static_cast<char>('0' + i));
    return out;
  };
  return fmt::format("{}_{}->{}", labels({7, 'b'}, {8, 'f'}, 11), labels({3, 'i'}, {4, 'o'}, 6),
                     labels({9, 'b'}, {10, 'f'}, 12));
}

/// "[2,4]<=[4,2]T(1,0)": device numbers in order, as an array with its axes turned.
std::string turned_iota(const Numbers& dims, const Numbers& reshaped, const Numbers& turned) {
  std::string out = fmt::format("[{}]<=[{}]", fmt::join(dims, ","), fmt::join(reshaped, ","));
  bool in_order = true;
  for (std::size_t i = 0; i < turned.size(); ++i) in_order &= turned[i] == static_cast<std::int64_t>(i);
  return in_order ? out : out + fmt::format("T({})", fmt::join(turned, ","));
}

/// Empty where the sharding is of a kind that has no text here.
std::string sharding_text(std::string_view message) {
  const Fields of(message);
  enum : std::int64_t { replicated, maximal, tuple, other };
  if (of.number(1) == replicated) return "{replicated}";
  if (of.number(1) == maximal) return fmt::format("{{maximal device={}}}", of.number(4));
  if (of.number(1) != other) return "";
  const Numbers dims = of.numbers(3), devices = of.numbers(4), reshaped = of.numbers(9);
  std::string out = reshaped.empty() ? fmt::format("{{devices=[{}]{}", fmt::join(dims, ","), fmt::join(devices, ","))
                                     : "{devices=" + turned_iota(dims, reshaped, of.numbers(10));
  if (of.number(6) != 0) out += " last_tile_dim_replicate";
  if (const Numbers kinds = of.numbers(8); !kinds.empty()) {
    std::vector<std::string_view> names;
    for (const std::int64_t kind : kinds) names.push_back(kind == replicated ? "replicated" : "manual");
    out += fmt::format(" last_tile_dims={{{}}}", fmt::join(names, ","));
  }
  return out + "}";
}

class ModulePrinter {
 public:
  explicit ModulePrinter(std::string_view message) : module_(message), computations_(module_.messages(3)) {
    for (const std::string_view entry : Fields(module_.bytes(7)).messages(1)) {
      const Fields sequence(entry);
      schedule_[sequence.number(1)] = Fields(sequence.bytes(2)).numbers(1);
    }
    for (const std::string_view computation : computations_) {
      const Fields of(computation);
      names_[of.number(5)] = of.bytes(1);
    }
  }

  std::string text() {
    out_ = fmt::format("HloModule {}", module_.bytes(1));
    if (!schedule_.empty()) out_ += ", is_scheduled=true";
    aliases();
    if (const Fields devices(module_.bytes(15)); module_.has(15))
      out_ += fmt::format(", replica_count={}, num_partitions={}", std::max<std::int64_t>(1, devices.number(1)),
                          std::max<std::int64_t>(1, devices.number(2)));
    out_ += "\n";
    for (const std::string_view computation : computations_) add(Fields(computation));
    return std::move(out_);
  }

 private:
  void aliases() {
    const std::string pairs = joined(Fields(module_.bytes(8)).messages(1), ", ", [](const Fields& of) {
      return fmt::format("{}: ({}, {}, may-alias)", braces(of.numbers(1)), of.number(2), braces(of.numbers(3)));
    });
    if (!pairs.empty()) out_ += fmt::format(", input_output_alias={{ {} }}", pairs);
  }

  void add(const Fields& computation) {
    const std::int64_t id = computation.number(5);
    std::unordered_map<std::int64_t, std::string_view> messages;
    Numbers order;
    for (const std::string_view instruction : computation.messages(2)) {
      const std::int64_t number = Fields(instruction).number(35);
      if (messages.emplace(number, instruction).second) order.push_back(number);
    }
    if (const auto planned = schedule_.find(id); planned != schedule_.end() && planned->second.size() == order.size())
      order = planned->second;
    out_ += fmt::format("\n{}%{} {{\n", id == module_.number(6) ? "ENTRY " : "", computation.bytes(1));
    for (const std::int64_t number : order) {
      const auto known = messages.find(number);
      if (known == messages.end()) continue;
      out_ += number == computation.number(6) ? "  ROOT " : "  ";
      add_instruction(Fields(known->second), messages);
    }
    out_ += "}\n";
  }

  void add_instruction(const Fields& of, const std::unordered_map<std::int64_t, std::string_view>& others) {
    const std::string_view opcode = of.bytes(2);
    std::string inside;
    if (opcode == "parameter")
      inside = std::to_string(of.number(9));
    else if (opcode == "constant")
      inside = literal_text(of.bytes(8));
    else
      for (const std::int64_t operand : of.numbers(36))
        if (const auto known = others.find(operand); known != others.end())
          inside += fmt::format("{}%{}", inside.empty() ? "" : ", ", Fields(known->second).bytes(1));
    out_ += fmt::format("%{} = {} {}({})", of.bytes(1), shape_of(Fields(of.bytes(3))), opcode, inside);
    add_sizes(of, opcode);
    add_callees(of, opcode);
    add_devices(of);
    if (of.has(28)) attribute("custom_call_target", in_escaped_quotes(of.bytes(28)));
    if (const std::string_view name = Fields(of.bytes(7)).bytes(2); !name.empty())
      attribute("metadata", fmt::format("{{op_name={}}}", in_escaped_quotes(name)));
    if (const std::string_view config = of.bytes(43); config.starts_with("{") && config.ends_with("}"))
      attribute("backend_config", config);
    out_ += "\n";
  }

  void attribute(std::string_view key, std::string_view value) { out_ += fmt::format(", {}={}", key, value); }
  /// Between brackets, unless there is none.
  void attribute(std::string_view key, std::string_view brackets, const std::string& value) {
    if (!value.empty())
      attribute(key, fmt::format("{}{}{}", brackets.substr(0, brackets.size() / 2), value,
                                 brackets.substr(brackets.size() / 2)));
  }
  void list(const Fields& of, std::uint32_t field, std::string_view key) {
    if (of.has(field)) attribute(key, braces(of.numbers(field)));
  }

  void add_sizes(const Fields& of, std::string_view opcode) {
    if (opcode == "get-tuple-element") attribute("index", std::to_string(of.number(13)));
    if (opcode == "iota")
      attribute("iota_dimension", std::to_string(of.number(14)));
    else
      list(of, 14, "dimensions");
    list(of, 20, "dynamic_slice_sizes");
    list(of, 34, "slice_sizes");
    if (of.has(15) && !of.bytes(15).empty()) attribute("window", window_text(of.bytes(15)));
    if (of.has(16)) attribute("dim_labels", label_text(of.bytes(16)));
    if (of.number(50) > 1) attribute("feature_group_count", std::to_string(of.number(50)));
    if (of.number(58) > 1) attribute("batch_group_count", std::to_string(of.number(58)));
    if (of.has(63)) attribute("direction", of.bytes(63));
    if (of.has(11)) attribute("kind", of.bytes(11));
    const Fields ragged(of.bytes(90));
    const Fields dot(of.has(90) ? ragged.bytes(1) : of.bytes(30));
    list(dot, 3, "lhs_batch_dims");
    list(dot, 1, "lhs_contracting_dims");
    list(dot, 4, "rhs_batch_dims");
    list(dot, 2, "rhs_contracting_dims");
    list(ragged, 3, "rhs_group_dims");
    attribute("slice", "{}", joined(of.messages(17), ", ", [](const Fields& cut) {
                return fmt::format("[{}:{}:{}]", cut.number(1), cut.number(2),
                                   std::max<std::int64_t>(1, cut.number(3)));
              }));
    attribute("padding", "", joined(Fields(of.bytes(21)).messages(1), "x", [](const Fields& pad) {
                return fmt::format("{}_{}_{}", pad.number(1), pad.number(2), pad.number(3));
              }));
  }

  void add_callees(const Fields& of, std::string_view opcode) {
    std::vector<std::string> callees;
    for (const std::int64_t callee : of.numbers(38))
      if (const auto known = names_.find(callee); known != names_.end())
        callees.push_back(fmt::format("%{}", known->second));
    if (callees.empty()) return;
    std::vector<std::string_view> keys;
    if (opcode == "while") keys = {"body", "condition"};
    if (opcode == "select-and-scatter") keys = {"select", "scatter"};
    if (keys.size() == callees.size())
      for (std::size_t i = 0; i < keys.size(); ++i) attribute(keys[i], callees[i]);
    else if (opcode == "fusion" || opcode.starts_with("async"))
      attribute("calls", callees.front());
    else if (opcode == "conditional" || opcode == "custom-call")
      attribute(opcode == "conditional" ? "branch_computations" : "called_computations",
                fmt::format("{{{}}}", fmt::join(callees, ", ")));
    else
      attribute("to_apply", callees.front());
  }

  void add_devices(const Fields& of) {
    if (of.number(26) > 0) attribute("channel_id", std::to_string(of.number(26)));
    const Fields listed(of.bytes(87));
    if (const Fields iota(listed.bytes(2)); listed.has(2))
      attribute("replica_groups", turned_iota({iota.number(1), iota.number(2)}, iota.numbers(3), iota.numbers(4)));
    else
      attribute("replica_groups", "{}",
                joined(listed.has(1) ? listed.messages(1) : of.messages(49), ",",
                       [](const Fields& group) { return braces(group.numbers(1)); }));
    if (of.number(71) != 0) attribute("use_global_device_ids", "true");
    attribute("source_target_pairs", "{}", joined(of.messages(52), ",", [](const Fields& ends) {
                return fmt::format("{{{},{}}}", ends.number(1), ends.number(2));
              }));
    if (of.has(40))
      if (const std::string text = sharding_text(of.bytes(40)); !text.empty()) attribute("sharding", text);
  }

  Fields module_;
  std::vector<std::string_view> computations_;
  std::map<std::int64_t, Numbers> schedule_;
  std::unordered_map<std::int64_t, std::string_view> names_;
  std::string out_;
};

}  // namespace

std::string hlo_text(std::string_view module_message) { return ModulePrinter(module_message).text(); }

}  // namespace assay::hlo
