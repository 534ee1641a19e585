// embed OUTPUT HEADER FUNCTION ROOT FILE...: writes a C++ source that holds the files, whose names are relative to
// ROOT, and defines FUNCTION (with its namespace), which HEADER declares: it returns them.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// The bytes as adjacent string literals, one for each line. Octal escapes have three digits, so they end by themselves;
// '?' is escaped because two of them may look like a trigraph.
void write_literals(std::ostream& out, const std::string& bytes) {
  out << '"';
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte == '\n') {
      out << "\\n";
      if (i + 1 < bytes.size()) out << "\"\n\"";
    } else if (byte == '"' || byte == '\\') {
      out << '\\' << bytes[i];
    } else if (byte >= ' ' && byte <= '~' && byte != '?') {
      out << bytes[i];
    } else {
      out << '\\' << char('0' + byte / 64) << char('0' + byte / 8 % 8) << char('0' + byte % 8);
    }
  }
  out << '"';
}

// The latest day on which a source of a file was read: what stands after "accessed = " at the start of a line.
std::string latest_access(const std::string& bytes) {
  const std::string key = "\naccessed = ", form = "2026-11-15";
  std::string latest;
  for (std::size_t at = 0; (at = bytes.find(key, at)) != std::string::npos;)
    latest = std::max(latest, bytes.substr(at += key.size(), form.size()));
  return latest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 4) {
    std::cerr << "usage: embed OUTPUT HEADER FUNCTION ROOT FILE...\n";
    return 2;
  }
  const std::string &output = arguments[0], &header = arguments[1], &function = arguments[2], &root = arguments[3];
  std::vector<std::string> names(arguments.begin() + 4, arguments.end());
  std::sort(names.begin(), names.end());

  std::ofstream out(output, std::ios::binary);
  out << "#include <array>\n\n#include \"" << header << "\"\n\nnamespace {\n\n"
      << "constexpr std::array<assay::hardware::EmbeddedFile, " << names.size() << "> files{{\n";
  for (const std::string& name : names) {
    std::ifstream in(root + "/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in) {
      std::cerr << "embed: cannot read " << root << "/" << name << "\n";
      return 1;
    }
    out << "{";
    write_literals(out, name);
    out << ", std::string_view(\n";
    write_literals(out, bytes);
    out << ", " << bytes.size() << "), \"" << latest_access(bytes) << "\"},\n";
  }
  out << "}};\n\n}  // namespace\n\nstd::span<const assay::hardware::EmbeddedFile> " << function
      << "() { return files; }\n";
  out.close();
  if (!out) {
    std::cerr << "embed: cannot write " << output << "\n";
    return 1;
  }
}
