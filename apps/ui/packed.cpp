#include "ui/packed.h"

#include <zlib.h>

#include "assay/base/result.h"

namespace assay::ui {

std::string packed(std::string_view bytes, int level) {
  z_stream stream{};
  constexpr int gzip = 15 + 16, usual_memory = 8;  // the largest window, with a gzip header
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip, usual_memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw InternalError("zlib does not start");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw InternalError("zlib does not end");
  return out;
}

}  // namespace assay::ui
