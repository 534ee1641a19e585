#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

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

}  // namespace

Result<std::string> inflated(std::string_view bytes, std::string_view file) {
  Inflater inflater;
  if (!inflater.ready) throw InternalError("zlib does not start");
  z_stream& stream = inflater.stream;
  // zlib counts in 32 bits: input and output are handed over in pieces.
  constexpr std::size_t piece = std::size_t{1} << 26;
  constexpr std::size_t most_times = 100, always = std::size_t{1} << 26;  // what profiles reach is 5 to 40
  std::string out(std::min(piece, bytes.size() * 8 + 1024), '\0');
  std::size_t read = 0, written = 0;
  const auto damaged = [&](std::string_view what, std::string_view hint) {
    return fail(fmt::format("{}: byte {}", file, read - stream.avail_in), std::string(what), std::string(hint));
  };
  while (true) {
    if (stream.avail_in == 0 && read < bytes.size()) {
      const std::size_t size = std::min(piece, bytes.size() - read);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
      stream.avail_in = static_cast<uInt>(size);
      read += size;
    }
    if (written == out.size()) out.resize(out.size() + std::min(out.size(), piece * 16));
    const std::size_t room = std::min(piece, out.size() - written);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    const int state = inflate(&stream, Z_NO_FLUSH);
    written += room - stream.avail_out;
    if (static_cast<double>(written) > largest_profile.in(1_B))
      return damaged(fmt::format("the content is larger than {}", human(largest_profile)), "profile fewer steps");
    if (written > most_times * std::max<std::size_t>(bytes.size(), 1) && written > always)
      return damaged(fmt::format("the content is more than {} times as large as the file", most_times),
                     "no profile or program compresses like this; unpack it yourself if it is one");
    if (state == Z_STREAM_END) {
      if (stream.avail_in == 0 && read == bytes.size()) break;
      inflateReset(&stream);  // files may be several members, one behind the other
      continue;
    }
    if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && read == bytes.size() && stream.avail_out > 0))
      return damaged("the compressed data end too early", "the file was cut off; copy it again");
    if (state != Z_OK)
      return damaged(fmt::format("the compressed data are damaged ({})", stream.msg ? stream.msg : "no gzip data"),
                     "copy the file again, in binary mode; gzip -t checks it");
  }
  out.resize(written);
  return out;
}

}  // namespace assay::trace
