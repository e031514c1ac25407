// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/partition/slice.h"

namespace phalanx {

/// The division of a bucket into contiguous parts, one per rank and nearly equal. If the bucket is short, some are
/// empty.
///
/// With Cut::kAnywhere, the borders are multiples of 16 elements, so that vectorised updates of the parts round like an
/// update of the whole bucket. With Cut::kBetweenParameters, each border is the one between two parameters that is
/// nearest to an equal division; the same holds for all buckets with parameters that are not stored row by row.
class Shards {
 public:
  /// Divides the bucket among the first `owners` ranks. The other ranks get empty parts.
  Shards(const Slice& bucket, int ranks, Cut cut, int owners);
  Shards(const Slice& bucket, int ranks, Cut cut) : Shards(bucket, ranks, cut, ranks) {}

  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t count(int rank) const { return counts_[rank]; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::vector<std::int64_t> begins_, counts_;
};

/// A bucket whose parts are updated by the ranks of a group, each rank updating its own.
class ShardedBucket {
 public:
  ShardedBucket(Slice all, const Communicator& group, Cut cut, int owners)
      : all_(std::move(all)),
        shards_(all_, group.size(), cut, owners),
        rank_(group.rank()),
        own_(part(all_, shards_.begin(rank_), shards_.count(rank_))) {}

  const Slice& all() const { return all_; }
  const Slice& own() const { return own_; }

  /// Launches the mean of the gradients of this rank's part over the group. The gradients of other parts are undefined
  /// afterwards.
  Work reduce_gradients(Communicator& group) const {
    return group.reduce_scatter(own_.gradients, all_.gradients, Reduction::kMean, shards_.counts());
  }

  /// Launches the exchange that gives every rank the values of all parts.
  Work gather_values(Communicator& group) const { return group.all_gather(all_.values, own_.values, shards_.counts()); }

  /// Zeroes the gradients outside of this rank's part. The optimizer zeroes only those that it has used, and the next
  /// backward adds to all of them.
  void zero_other_gradients() const;

 private:
  Slice all_;
  Shards shards_;
  int rank_;
  Slice own_;
};

}  // namespace phalanx
