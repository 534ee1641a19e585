#include "assay/ask/verbs/profile/hlo.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::profile {

Result<std::vector<Source>> sources_of(const std::vector<std::string>& arguments, std::string_view where,
                                       const Context& context) {
  std::vector<Source> out;
  for (const std::string& argument : arguments) {
    const auto& attached = context.surroundings.attached;
    if (const auto file = attached.find(argument); file != attached.end()) {
      out.push_back({argument, std::string(file->second)});
      continue;
    }
    if (is_program_text(argument)) {
      out.push_back({"", argument});
      continue;
    }
    ASSAY_TRY(listed, trace::listed_profiles(argument, where));
    if (listed) {
      for (trace::FilePart& part : *listed) out.push_back({part.name, "", std::move(part)});
      continue;
    }
    const std::size_t folder = argument.rfind('/');
    const std::string name = folder == std::string::npos ? argument : argument.substr(folder + 1);
    if (arguments.size() > 2) {
      out.push_back({name, "", trace::FilePart{argument, name, 0, std::nullopt}});
      continue;
    }
    auto bytes = trace::file_bytes(argument, where);
    if (!bytes && hlo::looks_like_shape(argument)) return tl::unexpected(hlo::parse_shape(argument, where).error());
    if (!bytes) return tl::unexpected(bytes.error());
    out.push_back({name, std::move(*bytes)});
  }
  return out;
}

Result<std::string> bytes_of(Source source) {
  if (source.part) ASSAY_SET(source.bytes, trace::part_bytes(*source.part));
  if (!trace::is_gzip(source.bytes)) return std::move(source.bytes);
  return trace::inflated(source.bytes, source.name);
}

}  // namespace assay::verbs::profile
