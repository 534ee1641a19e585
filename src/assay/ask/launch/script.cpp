#include "assay/ask/launch/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/launch/plan.h"
#include "assay/ask/launch/shell.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

/// Text with every {name} replaced once; what is put in is not looked at again. A value of several lines continues at
/// the indentation of its first.
std::string with_values(std::string_view text, const Pairs& values) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& v) { return text.substr(i).starts_with("{" + v.first + "}"); });
    if (text[i] != '{' || found == values.end()) {
      out += text[i++];
      continue;
    }
    if (found->second.empty() && out.ends_with(' ') && !text.substr(0, i).ends_with("\n")) out.pop_back();
    const std::size_t line = out.rfind('\n') + 1;
    const std::string lead = out.substr(line);
    const bool indents = !lead.empty() && lead.find_first_not_of(' ') == std::string::npos;
    for (const char c : found->second) {
      out += c;
      if (c == '\n' && indents) out += lead;
    }
    i += found->first.size() + 2;
  }
  // Lines that ended up empty but for their indentation, and blanks where nothing was put in.
  std::string tidy;
  for (const std::string& line : lines_in(out)) {
    const std::size_t end = line.find_last_not_of(' ');
    tidy += (end == std::string::npos ? "" : line.substr(0, end + 1)) + "\n";
  }
  return tidy;
}

std::string option_words(const Line& line) {
  if (line.value == "true" && !line.is_text) return shell_quoted(line.name);
  std::string out = shell_quoted(line.name);
  for (const std::string& word : line.is_text ? std::vector<std::string>{line.value} : split(line.value, ','))
    out += " " + shell_quoted(word);
  return out;
}

std::string file_text(const Target& target, Style style, const std::vector<Line>& lines) {
  const std::string content = write_document(style, lines);
  std::string end = "END";
  while (content.find(end) != std::string::npos) end += "_";
  return fmt::format("cat > {} <<'{}'\n{}{}", shell_quoted(target.file), end, content, end);
}

/// The options in a list of the shell, or in a file that the script writes; dotted names among arguments are of a file.
std::string body_of(const Target& target, const std::vector<Line>& options) {
  std::string out;
  if (target.style != Style::arguments && target.style != Style::overrides) {
    if (target.style == Style::json)
      for (const Line& line : options) out += fmt::format("# {}: {}\n", line.name, line.reason);
    return out + file_text(target, target.style, options);
  }
  std::vector<Line> listed = options, filed;
  if (target.style == Style::arguments && !target.file.empty()) {
    const auto is_listed = [](const Line& line) { return line.name.starts_with('-'); };
    std::copy_if(options.begin(), options.end(), std::back_inserter(filed),
                 [&](const Line& l) { return !is_listed(l); });
    std::erase_if(listed, [&](const Line& line) { return !is_listed(line); });
  }
  if (!filed.empty()) {
    out += file_text(target, Style::yaml, filed) + "\n";
    listed.push_back(
        {.name = target.file_option, .value = target.file, .reason = "what has no argument", .is_text = true});
  }
  out += "arguments=(\n";
  for (const Line& line : listed) {
    const bool is_override = target.style == Style::overrides && !line.name.starts_with('-');
    out += fmt::format("  {}{}\n", is_override ? shell_quoted(line.name + "=" + line.value) : option_words(line),
                       line.reason.empty() ? "" : "  # " + line.reason);
  }
  return out + ")";
}

std::string count_of(const Settings& plan, std::string_view field) {
  const auto found = plan.find(field);
  return found == plan.end() ? "1" : found->second;
}

}  // namespace

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<std::string> write_script(const Target& target, const std::vector<Line>& lines, const Settings& plan,
                                 const ScriptParts& parts) {
  const bool has_list = target.style == Style::arguments || target.style == Style::overrides;
  std::vector<Line> options;
  std::string first, starts, reasons, environment, behind = has_list ? "\"${arguments[@]}\"" : "";
  for (const Line& line : lines) {
    for (const unsigned char c : line.name + line.value)
      if (c < 0x20 || c == 0x7f)
        return fail("--emit " + target.id, fmt::format("{} holds a control character", in_quotes(line.value)),
                    "rename the file");
    if (line.environment)
      environment += fmt::format("export {}={}  # {}\n", line.name, shell_quoted(line.value), line.reason);
    else if (line.first)
      first += (first.empty() ? "" : " ") + shell_quoted(line.value);
    else if (line.launcher)
      starts += (starts.empty() ? "" : " ") + option_words(line);
    else if (!has_list && line.name.starts_with('-'))  // of the script that the command names
      behind += (behind.empty() ? "" : " ") + option_words(line);
    else
      options.push_back(line);
    const bool in_command = line.first || line.launcher || (!has_list && line.name.starts_with('-'));
    if (in_command && !line.environment && !line.reason.empty())
      reasons += fmt::format("# {}: {}\n", line.first ? "model" : line.name, line.reason);
  }
  const std::string rendezvous = rendezvous_of(target, plan), servers = count_of(plan, "servers");
  std::string command = with_values(target.command, {{"launcher", starts},
                                                     {"rendezvous", rendezvous},
                                                     {"first", first},
                                                     {"file", shell_quoted(target.file)},
                                                     {"options", behind}});
  while (command.ends_with('\n')) command.pop_back();
  std::string header;
  for (const std::string& line : parts.header) header += fmt::format("# {}\n", line);
  if (servers != "1" && !target.router.empty())
    header += fmt::format("# one of {} servers that share nothing; in front of them: {}\n", servers, target.router);
  if (parts.launcher && target.image.empty() && parts.launcher->script.find("{image}") != std::string::npos)
    header += fmt::format("# put in your own image: none of {} is published\n", target.name);
  const std::string body = environment + body_of(target, options);
  std::string text;
  if (!parts.launcher) {
    text = "#!/usr/bin/env bash\n" + header + "set -euo pipefail\n" + body + "\n" + reasons;
    for (const std::string_view variable : {"MASTER_ADDR", "NODE_RANK"})
      if (rendezvous.find(variable) != std::string::npos)
        text += fmt::format(": \"${{{}:?run this on every node, with {} in {}}}\"\n", variable,
                            variable == "NODE_RANK" ? "its number from 0" : "the address of the first one", variable);
    return text + command + "\n";
  }
  const auto& resources = parts.launcher->resources;
  const auto resource =
      std::find_if(resources.begin(), resources.end(), [&](const auto& r) { return r.first == parts.maker; });
  if (!resources.empty() && resource == resources.end())
    return fail("--launcher " + parts.launcher->id, fmt::format("it has no name for chips of {}", parts.maker),
                "leave it out: the plain script runs anywhere");
  std::string before = header;
  if (before.ends_with('\n')) before.pop_back();
  if (reasons.ends_with('\n')) reasons.pop_back();
  const bool serves = target.verb == "serve", spans = count_of(plan, "server_nodes") != "1";
  const Launcher& launcher = *parts.launcher;
  return with_values(!serves ? launcher.script
                     : spans ? launcher.serve_over_nodes
                             : launcher.serve,
                     {{"header", before},
                      {"name", parts.name},
                      {"nodes", count_of(plan, "nodes")},
                      {"servers", servers},
                      {"last_server", exact_number(*parse_number(servers) - 1.0)},
                      {"server_nodes", count_of(plan, "server_nodes")},
                      {"port", target.port},
                      {"node_chips", count_of(plan, "node_chips")},
                      {"resource", resource == resources.end() ? "" : resource->second},
                      {"image", target.image.empty() ? "registry.example.com/" + target.id : target.image},
                      {"body", body},
                      {"reasons", reasons},
                      {"command", command}});
}

}  // namespace assay::launch
