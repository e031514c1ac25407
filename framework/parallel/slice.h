// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// What one rank's optimizer updates: a run of elements with the gradient for each. The segments say which parameters
/// they are, or which parts of them; elements between segments belong to none. Where the run lies is nobody's business
/// but that of who made it, so that any way of sharing parameters among ranks is a list of slices for each:
///
///   replicas    whole(bucket): every rank updates all buckets.
///   flat cuts   part(whole(bucket), begin, count): a view of the bucket, cut where that makes equal shares, also
///               inside of parameters (ZeRO stage 1). Gradients may lie in memory of the rank's own instead (stage 2).
///   row shards  every parameter divided along its first dimension (dim-0 shards, as those of FSDP): a run of the
///               rank's own with the segments that row_shards() gives. Rows [a, b) of a parameter of shape
///               [n, rest...] are a segment with offset a * rest and count (b - a) * rest.
///
/// A rank of model parallelism has slices of its own part of the model in the same way.
struct Slice {
  at::Tensor values;                // [n]
  at::Tensor gradients;             // [n]
  std::vector<Segment> segments{};  // in the order in which they lie in the run
};

/// All of a bucket.
inline Slice whole(const Bucket& bucket) { return {bucket.values, bucket.gradients, bucket.segments}; }

/// Elements [begin, begin + count) of a slice.
inline Slice part(const Slice& slice, std::int64_t begin, std::int64_t count) {
  return {slice.values.narrow(0, begin, count), slice.gradients.narrow(0, begin, count),
          cut(slice.segments, begin, count)};
}

/// The rows of each parameter that rank `rank` of `ranks` has, nearly equally many, laid out one parameter behind the
/// other in a run that ends with the last segment. `parameters` are whole; a scalar is one row. Those of which the rank
/// has no row are left out. Throws std::invalid_argument for a parameter in parts, or one that does not lie row by row.
std::vector<Segment> row_shards(const std::vector<Segment>& parameters, int rank, int ranks);

/// Where parameters may be cut when ranks share their update.
enum class Cut {
  kAnywhere,          // the optimizer looks at elements alone; rows are elements, too
  kBetweenParameters  // it looks at whole parameters
};

}  // namespace phalanx
