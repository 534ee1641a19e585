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
    auto file = trace::MappedFile::open(argument, where);
    if (!file && hlo::looks_like_shape(argument)) return tl::unexpected(hlo::parse_shape(argument, where).error());
    if (!file) return tl::unexpected(file.error());
    out.push_back({name, "", std::nullopt, std::move(*file)});
  }
  return out;
}

Result<Source> opened(Source source) {
  if (source.part && source.part->size)
    ASSAY_SET(source.bytes, trace::part_bytes(*source.part));
  else if (source.part)
    ASSAY_SET(source.file, trace::MappedFile::open(source.part->path, "FILE"));
  const bool is_attached = !source.part && !source.file;
  source.part.reset();
  if (!trace::is_gzip(source.content())) return source;
  ASSAY_SET(source.bytes, trace::inflated(source.content(), source.name,
                                          is_attached ? trace::largest_attached : trace::largest_profile));
  source.file.reset();
  return source;
}

}  // namespace assay::verbs::profile
