// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// The elements that one rank's optimizer updates: a run of elements with the gradient of each. The segments name the
/// parameters, or the parts of parameters, in it; elements between segments belong to no parameter. Only the code that
/// makes a slice needs to know where the run lies, so that any way of sharing parameters among ranks is a list of
/// slices for each rank:
///
///   replicas    whole(bucket): every rank updates all buckets.
///   flat cuts   part(whole(bucket), begin, count): a view of the bucket, cut into equal shares, also inside of
///               parameters (ZeRO stage 1). Gradients may lie in the rank's private memory instead (stage 2).
///   row shards  every parameter sharded along its first dimension (dim-0 shards, as in FSDP): a private
///               run of the rank with the segments that row_shards() returns. Rows [a, b) of a parameter of shape
///               [n, rest...] are a segment with offset a * rest and count (b - a) * rest.
///
/// In model parallelism, a rank has slices of its part of the model in the same way.
struct Slice {
  at::Tensor values;                // [n]
  at::Tensor gradients;             // [n]
  std::vector<Segment> segments{};  // in the order in which they lie in the run
};

/// Returns all of a bucket as a slice.
inline Slice whole(const Bucket& bucket) { return {bucket.values, bucket.gradients, bucket.segments}; }

/// Returns elements [begin, begin + count) of a slice.
inline Slice part(const Slice& slice, std::int64_t begin, std::int64_t count) {
  return {slice.values.narrow(0, begin, count), slice.gradients.narrow(0, begin, count),
          cut(slice.segments, begin, count)};
}

/// Returns the segments of the rows that rank `rank` of `ranks` has of each parameter, nearly equally many on each
/// rank. They lie one parameter after the other in a run that ends with the last segment. `parameters` are whole; a
/// scalar is one row. Parameters of which the rank has no row are omitted. Throws std::invalid_argument for a parameter
/// in parts, or one that does not lie row by row.
std::vector<Segment> row_shards(const std::vector<Segment>& parameters, int rank, int ranks);

/// The places where parameters may be cut when ranks share their update.
enum class Cut {
  kAnywhere,          // the optimizer works on single elements; rows consist of elements too
  kBetweenParameters  // the optimizer needs whole parameters
};

}  // namespace phalanx
