// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/parallel/slice.h"

namespace phalanx {

/// A bucket in as many contiguous parts as there are ranks, nearly equal, some of them empty where it is short.
///
/// Cut anywhere, they are cut at multiples of 16 elements, so that vectorised updates of the parts round as that of the
/// whole does. Cut between parameters, each border lies between the two parameters where it is nearest to an equal cut;
/// so are buckets with parameters that do not lie row by row.
class Shards {
 public:
  /// Parts for the first `owners` of the ranks, empty ones for the others.
  Shards(const Slice& bucket, int ranks, Cut cut, int owners);
  Shards(const Slice& bucket, int ranks, Cut cut) : Shards(bucket, ranks, cut, ranks) {}

  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t count(int rank) const { return counts_[rank]; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::vector<std::int64_t> begins_, counts_;
};

/// A bucket whose parts the ranks of a group update, each its own.
class ShardedBucket {
 public:
  ShardedBucket(Slice all, const Communicator& group, Cut cut, int owners)
      : all_(std::move(all)),
        shards_(all_, group.size(), cut, owners),
        rank_(group.rank()),
        own_(part(all_, shards_.begin(rank_), shards_.count(rank_))) {}

  const Slice& all() const { return all_; }
  const Slice& own() const { return own_; }

  /// Launches the mean of the own part's gradients over the group; what the others hold of theirs is not defined.
  Work reduce_gradients(Communicator& group) const {
    return group.reduce_scatter(own_.gradients, all_.gradients, Reduction::kMean, shards_.counts());
  }

  /// Launches the exchange that gives every rank the values of all parts.
  Work gather_values(Communicator& group) const { return group.all_gather(all_.values, own_.values, shards_.counts()); }

  /// The optimizer zeroes the gradients that it has used; the next backward adds to the others too.
  void zero_other_gradients() const;

 private:
  Slice all_;
  Shards shards_;
  int rank_;
  Slice own_;
};

}  // namespace phalanx
