#include "assay/ask/sweep/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "assay/base/text.h"

namespace assay::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view all_rows = "rows.jsonl", origin_file = "answered_by.txt", journal_prefix = "rank-",
                           journal_suffix = ".jsonl";

Result<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return fail(path, "the file cannot be read", "name another directory with --results");
  return text;
}

/// Makes a file at once or not at all, if there is none yet: another rank may be doing the same.
void make_whole(const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  std::ofstream(draft, std::ios::binary) << text;
  if (::link(draft.c_str(), path.c_str()) != 0 && !fs::exists(path)) std::rename(draft.c_str(), path.c_str());
  std::remove(draft.c_str());
}

bool write_all(int handle, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(handle, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Error Store::unwritable(const std::string& path) const {
  return {Error::Kind::input,
          "--results",
          fmt::format("{} cannot be written: {}", in_quotes(path), std::strerror(errno)),
          "name a directory that may be written to and has room",
          {}};
}

Result<std::unique_ptr<Store>> Store::open(const std::string& directory, const std::string& answered_by, int rank) {
  std::unique_ptr<Store> store(new Store(directory));
  std::error_code failed;
  fs::create_directories(directory, failed);
  const std::string origin = fmt::format("{}/{}", directory, origin_file);
  if (!fs::exists(origin, failed)) make_whole(origin, answered_by);
  if (!fs::exists(origin, failed)) return tl::unexpected<Error>(store->unwritable(origin));
  ASSAY_TRY(before, file_text(origin));
  if (before != answered_by)
    return fail("--results",
                fmt::format("the rows in {} were answered by {}, and this is {}", in_quotes(directory), trim(before),
                            trim(answered_by)),
                "name another directory, or remove this one to ask again");
  store->own_path_ = fmt::format("{}/{}{}{}", directory, journal_prefix, rank, journal_suffix);
  store->own_ = ::open(store->own_path_.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0666);
  if (store->own_ < 0) return tl::unexpected<Error>(store->unwritable(store->own_path_));
  if (::flock(store->own_, LOCK_EX | LOCK_NB) != 0)
    return fail("--results", fmt::format("another process is writing rows to {}", in_quotes(directory)),
                "wait for it, or name another directory");
  ASSAY_CHECK(store->refresh());
  // What was cut short is no row: the next one starts on a line of its own.
  const auto own = std::find_if(store->files_.begin(), store->files_.end(),
                                [&](const File& file) { return file.path == store->own_path_; });
  if (own != store->files_.end() && ::ftruncate(store->own_, static_cast<off_t>(own->read)) != 0)
    return tl::unexpected<Error>(store->unwritable(store->own_path_));
  return store;
}

Store::~Store() {
  if (own_ >= 0) ::close(own_);
  for (const File& file : files_)
    if (file.handle >= 0) ::close(file.handle);
}

Result<void> Store::find_files() {
  std::error_code failed;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, failed)) {
    const std::string name = entry.path().filename().string();
    if (name == all_rows || (name.starts_with(journal_prefix) && name.ends_with(journal_suffix)))
      found.push_back(fmt::format("{}/{}", directory_, name));
  }
  std::sort(found.begin(), found.end());
  for (const std::string& path : found) {
    const bool known = std::any_of(files_.begin(), files_.end(), [&](const File& file) { return file.path == path; });
    if (known) continue;
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0 && errno == ENOENT) continue;  // the first rank has just joined all rows into one file
    if (handle < 0)
      return fail("--results", fmt::format("{} cannot be read: {}", in_quotes(path), std::strerror(errno)), "");
    files_.push_back({path, 0, handle});
  }
  return {};
}

Result<void> Store::read_new_rows(std::size_t at) {
  File& file = files_[at];
  struct stat state = {};
  if (::fstat(file.handle, &state) != 0) return {};
  const auto end = static_cast<std::uint64_t>(state.st_size);
  constexpr std::uint64_t at_once = 16 << 20;  // far longer than a row
  while (file.read < end) {
    ASSAY_TRY(fresh, text({at, file.read, std::min(end - file.read, at_once)}));
    std::size_t from = 0;
    for (std::size_t newline = fresh.find('\n'); newline != std::string::npos; newline = fresh.find('\n', from)) {
      const std::string_view line = std::string_view(fresh).substr(from, newline - from);
      if (const auto row = read_row(line))
        places_.try_emplace(row->request, Place{at, file.read + from, newline - from});
      from = newline + 1;
    }
    if (from == 0) break;  // the last line is not whole yet
    file.read += from;
  }
  return {};
}

Result<void> Store::refresh() {
  ASSAY_CHECK(find_files());
  for (std::size_t i = 0; i < files_.size(); ++i) ASSAY_CHECK(read_new_rows(i));
  return {};
}

Result<void> Store::add(const Row& row) {
  const std::string line = line_of(row);
  const std::lock_guard held(guard_);
  if (!write_all(own_, line)) return tl::unexpected<Error>(unwritable(own_path_));
  return {};
}

Result<std::string> Store::text(const Place& place) const {
  std::string out(place.length, '\0');
  std::size_t read = 0;
  while (read < out.size()) {
    const ssize_t got = ::pread(files_[place.file].handle, out.data() + read, out.size() - read,
                                static_cast<off_t>(place.offset + read));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail("--results", fmt::format("{} cannot be read", in_quotes(files_[place.file].path)),
                  "was it changed meanwhile? Run the same command again");
    read += static_cast<std::size_t>(got);
  }
  return out;
}

Result<Row> Store::row(const std::string& request) const {
  ASSAY_TRY(line, text(places_.at(request)));
  auto row = read_row(line);
  if (!row) return fail("--results", "a row was changed while it was read", "run the same command again");
  return std::move(*row);
}

Result<void> Store::finish(std::span<const std::string> requests) {
  ASSAY_CHECK(refresh());
  const std::string path = fmt::format("{}/{}", directory_, all_rows), draft = path + ".new";
  const int file = ::open(draft.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return tl::unexpected<Error>(unwritable(draft));
  std::unordered_map<std::string, bool> written;
  const auto write_row = [&](const std::string& request, const Place& place) -> Result<void> {
    if (!written.try_emplace(request, true).second) return {};
    ASSAY_TRY(line, text(place));
    if (!write_all(file, line + "\n")) return tl::unexpected<Error>(unwritable(draft));
    return {};
  };
  Result<void> done;
  for (const std::string& request : requests)
    if (const auto place = places_.find(request); done && place != places_.end())
      done = write_row(request, place->second);
  std::vector<const std::string*> others;
  for (const auto& [request, place] : places_)
    if (!written.contains(request)) others.push_back(&request);
  std::sort(others.begin(), others.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
  for (const std::string* request : others)
    if (done) done = write_row(*request, places_.at(*request));
  const bool closed = ::fsync(file) == 0 && ::close(file) == 0;
  if (!done) return done;
  if (!closed || std::rename(draft.c_str(), path.c_str()) != 0) return tl::unexpected<Error>(unwritable(path));
  for (File& each : files_) {
    if (each.path != path) std::remove(each.path.c_str());
    ::close(each.handle);
  }
  files_.clear();
  places_.clear();
  return refresh();
}

}  // namespace assay::sweep
