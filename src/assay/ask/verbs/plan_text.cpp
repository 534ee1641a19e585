#include "assay/ask/verbs/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/layout.h"
#include "assay/base/text.h"

namespace assay::verbs {
namespace {

std::vector<std::string> parts_of(std::string_view plan) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = plan.find(", ");
    parts.emplace_back(plan.substr(0, end));
    if (end == std::string_view::npos) return parts;
    plan.remove_prefix(end + 2);
  }
}

std::string_view first_word(std::string_view part) { return part.substr(0, part.find(' ')); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_mesh(std::string_view part) {
  return part == "one chip" || is_one_of(first_word(part), {"dp", "fsdp", "tp", "cp", "ep", "pp"});
}

}  // namespace

std::vector<report::Phrase> plan_phrases(std::string_view plan) {
  std::vector<report::Phrase> phrases;
  for (std::string& part : parts_of(plan)) phrases.push_back({std::move(part)});
  return phrases;
}

std::string plan_difference(std::string_view from, std::string_view to) {
  const std::vector<std::string> old = parts_of(from), wanted = parts_of(to);
  const auto has = [](const std::vector<std::string>& parts, const std::string& part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  const auto count = [](const std::vector<std::string>& parts) {
    return std::count_if(parts.begin(), parts.end(), is_mesh);
  };
  const bool same_mesh =
      count(old) == count(wanted) &&
      std::all_of(wanted.begin(), wanted.end(), [&](const auto& part) { return !is_mesh(part) || has(old, part); });
  std::vector<std::string> changes;
  for (const std::string& part : wanted)
    if (is_mesh(part) ? !same_mesh : !has(old, part)) changes.push_back(part);
  for (const std::string& part : old) {
    const std::string_view word = first_word(part);
    const bool replaced =
        std::any_of(wanted.begin(), wanted.end(), [&](const auto& other) { return first_word(other) == word; });
    if (!replaced && is_one_of(word, {"zero", "sequence-parallel", "recompute", "offload"}))
      changes.push_back("no " + std::string(word));
  }
  return changes.empty() ? "the same mesh in another order" : join(changes, ", ");
}

std::string shortened_plan(const std::string& plan, std::size_t room) {
  constexpr std::string_view more = " ...";
  if (plan.size() <= room) return plan;
  return plan.substr(0, plan.rfind(", ", room - more.size())) + std::string(more);
}

void shorten_plans(report::ScreenTable& table) {
  constexpr std::size_t width = 100, labels = 12, gap = 2, least = 16;
  std::size_t others = labels;
  for (std::size_t c = 0; c + 1 < table.head.size(); ++c) {
    std::size_t widest = report::columns(table.head[c]);
    for (const auto& row : table.rows) widest = std::max(widest, report::columns(row[c]));
    others += widest + gap;
  }
  const std::size_t room = std::max(least, width - std::min(width, others));
  for (auto& row : table.rows) row.back() = shortened_plan(row.back(), room);
}

report::Phrase verdict_phrase(const report::Reader& results) {
  if (!results.truth("memory.fits")) return {"does not fit", report::Tone::bad};
  return results.text("memory.verdict") == "tight" ? report::Phrase{"tight in memory", report::Tone::warning}
                                                   : report::Phrase{"fits", report::Tone::good};
}

report::FillBar memory_bar(const report::Reader& results, std::vector<report::BarPart> parts) {
  const double total = results.number("memory.total"), capacity = results.number("memory.capacity");
  report::FillBar bar{"Memory", total, results.number("memory_interval.high"), capacity, std::move(parts), {}, {}};
  bar.unit = report::shared_unit(*results.quantity("memory.capacity"));
  const std::string capacity_text = report::short_quantity(*results.quantity("memory.capacity"));
  bar.unit.decimals = std::max(bar.unit.decimals, 1);
  std::erase_if(bar.parts, [&](const report::BarPart& part) { return !bar.unit.shows(part.size); });
  std::string text = fmt::format("{} of {}", bar.unit.number(total), capacity_text);
  if (bar.at_most > 0.0) text += fmt::format(", peak up to {}", bar.unit.number(bar.at_most));
  bar.text = {{std::move(text), total > capacity         ? report::Tone::bad
                                : bar.at_most > capacity ? report::Tone::warning
                                                         : report::Tone::plain}};
  return bar;
}

std::vector<std::string> notes_on_options(const report::Response& response) {
  constexpr std::size_t most = 2;
  std::vector<std::string> notes;
  for (const std::string& note : response.notes)
    if (note.starts_with("--") && notes.size() < most) notes.push_back(note);
  constexpr std::size_t one_line = 96;
  if (notes.size() == most && notes[0].size() + notes[1].size() + 2 <= one_line)
    return {fmt::format("{}; {}", notes[0], notes[1])};
  return notes;
}

}  // namespace assay::verbs
