#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "assay/base/text.h"
#include "assay/profile/trace/bytes.h"

namespace assay::trace {
namespace {

/// zlib's state for gzip, freed in any case.
struct Inflater {
  z_stream stream = {};
  bool ready = inflateInit2(&stream, 15 + 16) == Z_OK;  // 15: the largest window; 16: with a gzip header
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

/// The next compressed bytes, which stay until the next call; empty at their end.
using Input = std::function<std::string_view()>;
using Output = std::function<bool(std::string_view)>;

/// Inflates all members of gzip bytes, piece by piece.
Result<void> inflate_all(const Input& input, const Output& output, Bytes largest, std::string_view file) {
  Inflater inflater;
  if (!inflater.ready) throw InternalError("zlib does not start");
  z_stream& stream = inflater.stream;
  constexpr double most_times = 100.0;  // what profiles reach is 5 to 40
  constexpr Bytes always = 64_MiB;
  std::string piece(std::size_t{1} << 20, '\0');
  Bytes read, written;
  bool ended = false;
  const auto damaged = [&](std::string_view what, std::string_view hint) {
    return fail(fmt::format("{}: byte {:.0f}", file, read.value() - stream.avail_in), std::string(what),
                std::string(hint));
  };
  const auto refill = [&] {
    if (stream.avail_in > 0 || ended) return;
    const std::string_view next = input();
    ended = next.empty();
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
    stream.avail_in = static_cast<uInt>(next.size());
    read += Bytes(static_cast<double>(next.size()));
  };
  while (true) {
    refill();
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int state = inflate(&stream, Z_NO_FLUSH);
    const std::string_view made(piece.data(), piece.size() - stream.avail_out);
    written += Bytes(static_cast<double>(made.size()));
    if (written > largest)
      return damaged(fmt::format("the content is larger than {}", human(largest)), "profile fewer steps");
    if (written > most_times * read && written > always)
      return damaged(fmt::format("the content is more than {} times as large as the file", most_times),
                     "no profile or program compresses like this; unpack it yourself if it is one");
    if (!output(made)) return damaged("the content cannot be kept", "free space in the folder of temporary files");
    if (state == Z_STREAM_END) {
      refill();
      if (stream.avail_in == 0) break;
      inflateReset(&stream);  // files may be several members, one behind the other
      continue;
    }
    if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && ended && stream.avail_out > 0))
      return damaged("the compressed data end too early", "the file was cut off; copy it again");
    if (state != Z_OK)
      return damaged(fmt::format("the compressed data are damaged ({})", stream.msg ? stream.msg : "no gzip data"),
                     "copy the file again, in binary mode; gzip -t checks it");
  }
  return {};
}

}  // namespace

Result<std::string> inflated(std::string_view bytes, std::string_view file, Bytes largest) {
  std::string out;
  const auto input = [&] {
    constexpr std::size_t most = std::size_t{1} << 26;  // zlib counts in 32 bits
    const std::string_view next = bytes.substr(0, most);
    bytes.remove_prefix(next.size());
    return next;
  };
  const auto output = [&](std::string_view piece) {
    out += piece;
    return true;
  };
  ASSAY_CHECK(inflate_all(input, output, largest, file));
  return out;
}

Result<SpooledFile> spooled(const std::string& path, std::string_view where) {
  constexpr Bytes largest_archive = 64 * 1_GiB;
  std::ifstream in(path, std::ios::binary);
  const std::shared_ptr<std::FILE> file(std::tmpfile(), [](std::FILE* of) {
    if (of) std::fclose(of);
  });
  if (!in || !file)
    return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path)), "check its permissions");
  std::string piece(std::size_t{1} << 20, '\0');
  const auto input = [&] {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    return std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount()));
  };
  const auto output = [&](std::string_view bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  };
  std::string_view first = input();
  if (is_gzip(first)) {
    const auto all = [&] { return first.empty() ? input() : std::exchange(first, {}); };
    ASSAY_CHECK(inflate_all(all, output, largest_archive, path));
  } else {
    for (; !first.empty(); first = input())
      if (!output(first))
        return fail(path, "the content cannot be kept", "free space in the folder of temporary files");
  }
  std::fflush(file.get());
  return SpooledFile{file, fmt::format("/dev/fd/{}", fileno(file.get()))};
}

}  // namespace assay::trace
