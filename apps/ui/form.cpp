#include "ui/form.h"

#include <fmt/format.h>

#include "ui/http.h"

namespace assay::ui {
namespace {

/// The value of NAME="..." or NAME=... among the parameters of a header.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  const std::string wanted = fmt::format("{}=", name);
  for (std::size_t at = header.find(wanted); at != std::string_view::npos; at = header.find(wanted, at + 1)) {
    if (at == 0 || (header[at - 1] != ' ' && header[at - 1] != ';')) continue;  // the end of another name
    std::string_view value = header.substr(at + wanted.size());
    if (!value.starts_with('"')) return std::string(value.substr(0, value.find_first_of("; ")));
    value.remove_prefix(1);
    const std::size_t quote = value.find('"');
    if (quote == std::string_view::npos) return std::nullopt;
    return std::string(value.substr(0, quote));
  }
  return std::nullopt;
}

/// The Content-Disposition line in the head of a part.
std::string_view disposition(std::string_view head) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    if (lower_case(line.substr(0, line.find(':'))) == "content-disposition") return line;
  }
  return {};
}

}  // namespace

std::optional<std::string> form_boundary(std::string_view content_type) {
  if (!lower_case(content_type.substr(0, content_type.find(';'))).starts_with("multipart/form-data"))
    return std::nullopt;
  return parameter(content_type, "boundary");
}

std::optional<Form> read_form(std::string_view body, std::string_view boundary) {
  const std::string first = fmt::format("--{}", boundary), next = fmt::format("\r\n{}", first);
  if (boundary.empty() || !body.starts_with(first)) return std::nullopt;
  body.remove_prefix(first.size());
  Form form;
  while (!body.starts_with("--")) {  // "--" ends the last part
    const std::size_t head_end = body.find("\r\n\r\n"), end = body.find(next);
    if (!body.starts_with("\r\n") || end == std::string_view::npos || head_end > end || end - head_end < 4)
      return std::nullopt;
    const std::string_view header = disposition(body.substr(2, head_end - 2));
    const std::string_view content = body.substr(head_end + 4, end - head_end - 4);
    if (auto file = parameter(header, "filename"))
      form.files.push_back({std::move(*file), content});
    else if (parameter(header, "name") == "request")
      form.request = content;
    body.remove_prefix(end + next.size());
  }
  return form;
}

}  // namespace assay::ui
