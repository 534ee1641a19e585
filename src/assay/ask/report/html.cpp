#include "assay/ask/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/layout.h"
#include "assay/ask/report/render.h"

namespace assay::report {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1a1a19; --soft: #6b6a66; --line: #dddcd6; --ground: #fcfcfb }
@media (prefers-color-scheme: dark) { :root { --ink: #f2f1ec; --soft: #a3a29c; --line: #3a3a37; --ground: #1a1a19 } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--ground); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif }
h1 { font-size: 1.25rem } pre { overflow-x: auto; line-height: 1.3 } figure { margin: 1.5rem 0; overflow-x: auto }
.scroll { overflow-x: auto; max-height: 32rem } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th { position: sticky; top: 0; background: var(--ground); text-align: left; padding: 0 }
th button { font: inherit; font-weight: 600; border: 0; background: none; color: inherit; padding: .3rem .7rem;
  cursor: pointer } th[aria-sort=ascending] button::after { content: " \2191" }
th[aria-sort=descending] button::after { content: " \2193" }
td { padding: .2rem .7rem; border-top: 1px solid var(--line); white-space: nowrap; max-width: 20rem; overflow: hidden;
  text-overflow: ellipsis } td.n { text-align: right } summary { font-weight: 600; margin: 1rem 0 .3rem }
input { font: inherit; padding: .3rem .5rem; width: 20rem; max-width: 100% } .soft { color: var(--soft) }
)";

/// A click on a head sorts by its column, numbers by their value in base units; a search leaves rows that hold its
/// words.
constexpr std::string_view script = R"(
for (const button of document.querySelectorAll("th button")) button.onclick = () => {
  const head = button.parentElement, at = [...head.parentElement.children].indexOf(head);
  const down = head.getAttribute("aria-sort") !== "descending", body = head.closest("table").tBodies[0];
  for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const of = (row) => row.cells[at].dataset.v === undefined ? row.cells[at].textContent : Number(row.cells[at].dataset.v);
  const order = (a, b) => a === b ? 0 : typeof a === typeof b ? (a < b ? -1 : 1) : typeof a === "string" ? -1 : 1;
  body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(of(a), of(b))));
};
document.querySelector("input").oninput = (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("tbody tr"))
    row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
};
)";

std::string cell(const Value* value) {
  if (!value || value->members() || value->items()) return "<td></td>";
  const std::string text = draw::xml_escaped(scalar_text(*value));
  const auto number = numeric(*value);
  if (!number) return fmt::format("<td title=\"{0}\">{0}</td>", text);
  return fmt::format("<td class=n data-v=\"{}\">{}</td>", *number, text);
}

class Tables {
 public:
  /// All lists of an object and of the objects in it.
  void add(const Members& results, const std::string& path) {
    for (const auto& [key, value] : results) {
      const std::string name = path.empty() ? words(key) : fmt::format("{}, {}", path, words(key));
      if (const Members* inner = value.members()) add(*inner, name);
      if (const Items* rows = value.items(); rows && !rows->empty() && rows->front().members()) add(*rows, name);
    }
  }
  const std::string& text() const { return out_; }

 private:
  void add(const Items& rows, const std::string& name) {
    std::vector<std::string_view> keys;
    for (const Value& row : rows)
      if (const Members* members = row.members())
        for (const auto& [key, value] : *members)
          if (!value.members() && !value.items() && std::find(keys.begin(), keys.end(), key) == keys.end())
            keys.emplace_back(key);
    out_ += fmt::format(
        "<details open><summary>{} <span class=soft>{}</span></summary>\n<div class=scroll><table><thead><tr>",
        draw::xml_escaped(name), rows.size());
    for (const std::string_view key : keys)
      out_ += fmt::format("<th><button>{}</button></th>", draw::xml_escaped(words(key)));
    out_ += "</tr></thead><tbody>\n";
    for (const Value& row : rows) {
      out_ += "<tr>";
      for (const std::string_view key : keys) out_ += cell(row.find(key));
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div></details>\n";
  }

  std::string out_;
};

}  // namespace

std::string render_html(const Response& response) {
  Response screen = response;
  screen.picture.reset();
  const std::string text = render(screen, {.format = Format::table, .quiet = true});
  const std::string title = draw::xml_escaped(headline(response));
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}</style></head><body>\n"
      "<h1>{}</h1>\n<pre>{}</pre>\n",
      title, style, title, draw::xml_escaped(text));
  for (const std::string& note : response.notes) out += fmt::format("<p class=soft>{}</p>\n", draw::xml_escaped(note));
  if (response.picture) out += fmt::format("<figure>{}</figure>\n", draw::to_svg(*response.picture));
  for (const draw::Scene& picture : response.more_pictures)
    out += fmt::format("<figure>{}</figure>\n", draw::to_svg(picture));
  Tables tables;
  tables.add(response.results, "");
  if (!tables.text().empty())
    out += fmt::format(
        "<p><input type=search placeholder=\"search all tables\" aria-label=\"search all tables\"></p>\n{}"
        "<script>{}</script>\n",
        tables.text(), script);
  return out + "</body></html>\n";
}

}  // namespace assay::report
