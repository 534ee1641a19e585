#include "assay/engine/plan/collective_matmul.h"

#include "assay/base/result.h"
#include "assay/engine/kernels/product.h"

namespace assay::engine {
namespace {

const DimensionNames a_names{"I", "J"}, b_names{"J", "K"}, c_names{"I", "K"};

template <class T>
Array<T> matmul(const Array<T>& a, const Array<T>& b) {
  return product(a, a_names, b, b_names, c_names);
}

/// A stream that travels one way around the ring: its direction, and its share of each chunk.
struct Stream {
  std::int64_t way;
  Chunk share;
};

std::vector<Stream> streams_of(Directions directions, std::int64_t size) {
  if (directions == Directions::one) return {{1, {0, size}}};
  const std::int64_t half = block_size(size, 2);
  return {{1, chunk(size, half, 0)}, {-1, chunk(size, half, 1)}};
}

/// One ring along an axis, seen from all devices at once.
template <class T>
struct Ring {
  VirtualDevices<T>& devices;
  int axis;
  Dtype dtype;

  std::int64_t size() const { return devices.mesh().size(axis); }
  /// The position `steps` upstream of a device.
  std::int64_t origin(std::size_t device, std::int64_t way, std::int64_t steps) const {
    const std::int64_t n = size(), place = devices.at(device)[static_cast<std::size_t>(axis)];
    return ((place - way * steps) % n + n) % n;
  }

  /// Blocks travel all the way around: blocks[stream][device]. Every device sends a block, works on it, then receives
  /// the next one; `work` gets the device, the stream, and the block's original position.
  template <class Work>
  void pass_around(const std::vector<Stream>& streams, std::vector<Shards<T>> blocks, Work work) const {
    for (std::int64_t step = 0; step < size(); ++step) {
      const bool sends = step + 1 < size();
      for (std::size_t d = 0; sends && d < devices.count(); ++d)
        for (std::size_t s = 0; s < streams.size(); ++s)
          devices.send(d, devices.neighbour(d, axis, streams[s].way), blocks[s][d], dtype);
      for (std::size_t d = 0; d < devices.count(); ++d)
        for (std::size_t s = 0; s < streams.size(); ++s) work(d, s, origin(d, streams[s].way, step), blocks[s][d]);
      for (std::size_t d = 0; sends && d < devices.count(); ++d)
        for (std::size_t s = 0; s < streams.size(); ++s)
          blocks[s][d] = devices.receive(d, devices.neighbour(d, axis, -streams[s].way));
    }
  }

  /// Sums travel around: each device adds its product for the sum's destination. sums[stream][device].
  template <class Product>
  std::vector<Shards<T>> sum_up(const std::vector<Stream>& streams, Product product_for) const {
    std::vector<Shards<T>> sums(streams.size(), Shards<T>(devices.count()));
    for (std::size_t d = 0; d < devices.count(); ++d)
      for (std::size_t s = 0; s < streams.size(); ++s) sums[s][d] = product_for(d, s, origin(d, streams[s].way, 1));
    for (std::int64_t step = 2; step <= size(); ++step) {
      for (std::size_t d = 0; d < devices.count(); ++d)
        for (std::size_t s = 0; s < streams.size(); ++s)
          devices.send(d, devices.neighbour(d, axis, streams[s].way), std::move(sums[s][d]), dtype);
      for (std::size_t d = 0; d < devices.count(); ++d) {
        for (std::size_t s = 0; s < streams.size(); ++s) {
          Array<T> own = product_for(d, s, origin(d, streams[s].way, step));
          add(own, devices.receive(d, devices.neighbour(d, axis, -streams[s].way)));
          sums[s][d] = std::move(own);
        }
      }
    }
    return sums;
  }
};

/// The streams of A, cut along the gathered dimension.
template <class T>
std::vector<Shards<T>> cut(const Shards<T>& a, std::size_t dim, const std::vector<Stream>& streams) {
  std::vector<Shards<T>> blocks(streams.size());
  for (std::size_t s = 0; s < streams.size(); ++s)
    for (const Array<T>& shard : a)
      blocks[s].push_back(part(shard, dim, streams[s].share.start, streams[s].share.count));
  return blocks;
}

/// Partial products of the rows of one position, summed over the ring; streams share the columns of B.
template <class T>
std::vector<Shards<T>> scattered_sums(const Ring<T>& ring, const Shards<T>& a, const Shards<T>& b,
                                      const std::vector<Stream>& streams) {
  const std::int64_t rows = a.front().shape[0];
  if (rows % ring.size() != 0) throw InternalError("rows of a collective matmul are not a multiple of its ring");
  const std::int64_t block = rows / ring.size();
  const std::vector<Shards<T>> columns = cut(b, 1, streams);
  return ring.sum_up(streams, [&](std::size_t d, std::size_t s, std::int64_t place) {
    return matmul(part(a[d], 0, place * block, block), columns[s][d]);
  });
}

/// A zero C for every device, to be filled with blocks.
template <class T>
Shards<T> empty_results(const Shards<T>& b, std::int64_t rows) {
  Shards<T> c;
  for (const Array<T>& shard : b) c.push_back(zeros<T>({rows, shard.shape[1]}));
  return c;
}

}  // namespace

template <class T>
Shards<T> gather_rows_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                             Directions directions, Dtype dtype) {
  const Ring<T> ring{devices, axis, dtype};
  const std::int64_t rows = a.front().shape[0];
  const std::vector<Stream> streams = streams_of(directions, rows);
  Shards<T> c = empty_results(b, rows * ring.size());
  ring.pass_around(streams, cut(a, 0, streams),
                   [&](std::size_t d, std::size_t s, std::int64_t place, const Array<T>& block) {
                     const Array<T> some = matmul(block, b[d]);
                     copy_block(some, {0, 0}, some.shape, c[d], {place * rows + streams[s].share.start, 0});
                   });
  return c;
}

template <class T>
Shards<T> gather_columns_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                                Directions directions, Dtype dtype) {
  const Ring<T> ring{devices, axis, dtype};
  const std::int64_t columns = a.front().shape[1];
  const std::vector<Stream> streams = streams_of(directions, columns);
  Shards<T> c = empty_results(b, a.front().shape[0]);
  ring.pass_around(streams, cut(a, 1, streams),
                   [&](std::size_t d, std::size_t s, std::int64_t place, const Array<T>& block) {
                     const Chunk share = streams[s].share;
                     add(c[d], matmul(block, part(b[d], 0, place * columns + share.start, share.count)));
                   });
  return c;
}

template <class T>
Shards<T> reduce_scatter_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                                Directions directions, Dtype dtype) {
  const Ring<T> ring{devices, axis, dtype};
  const std::vector<Stream> streams = streams_of(directions, b.front().shape[1]);
  const std::vector<Shards<T>> sums = scattered_sums(ring, a, b, streams);
  Shards<T> c = empty_results(b, a.front().shape[0] / ring.size());
  for (std::size_t s = 0; s < streams.size(); ++s)
    for (std::size_t d = 0; d < c.size(); ++d)
      copy_block(sums[s][d], {0, 0}, sums[s][d].shape, c[d], {0, streams[s].share.start});
  return c;
}

template <class T>
Shards<T> all_reduce_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                            Directions directions, Dtype dtype) {
  const Ring<T> ring{devices, axis, dtype};
  const std::vector<Stream> streams = streams_of(directions, b.front().shape[1]);
  Shards<T> c = empty_results(b, a.front().shape[0]);
  const std::int64_t rows = a.front().shape[0] / ring.size();
  ring.pass_around(streams, scattered_sums(ring, a, b, streams),
                   [&](std::size_t d, std::size_t s, std::int64_t place, const Array<T>& block) {
                     copy_block(block, {0, 0}, block.shape, c[d], {place * rows, streams[s].share.start});
                   });
  return c;
}

#define ASSAY_INSTANTIATE_ONE(function, T) \
  template Shards<T> function(VirtualDevices<T>&, const Shards<T>&, const Shards<T>&, int, Directions, Dtype);
#define ASSAY_INSTANTIATE(T)                      \
  ASSAY_INSTANTIATE_ONE(gather_rows_matmul, T)    \
  ASSAY_INSTANTIATE_ONE(gather_columns_matmul, T) \
  ASSAY_INSTANTIATE_ONE(reduce_scatter_matmul, T) \
  ASSAY_INSTANTIATE_ONE(all_reduce_matmul, T)
ASSAY_INSTANTIATE(double)
ASSAY_INSTANTIATE(float)
#undef ASSAY_INSTANTIATE
#undef ASSAY_INSTANTIATE_ONE

}  // namespace assay::engine
