// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Adds terms for shards 0, 1, ..., V - 1 pairwise in one fixed tree, regardless of which rank adds which of them: 2k
/// and 2k + 1, then pairs of pairs, and so on (pairwise summation: Higham 1993, The Accuracy of Floating Point
/// Summation, section 2). If V is not a power of two, the remaining trees are added from the last to the first.
class PairwiseSum {
 public:
  /// The sum of the terms of shards [first, first + count). `count` is a power of two and divides `first`.
  struct Node {
    int first = 0, count = 1;
    at::Tensor values;  // moved in and modified
  };

  /// Adds a node. Nodes must come in the order of their shards, without gaps.
  void add(Node node);

  /// Returns the nodes that could not be combined yet, in order, and clears the sum.
  std::vector<Node> take();

  /// Returns the sum and clears it. All shards from 0 on must have been added.
  at::Tensor total();

 private:
  std::vector<Node> nodes_;
};

/// Sums over V shards, of which rank r of P holds [r V / P, (r + 1) V / P). The bits of the result do not depend on P.
///
/// Every rank adds its own shards as they are computed and holds at most log2(V / P) + 1 sums of them. Each rank then
/// gets its part of the other ranks' sums (all_to_all), adds them in the order of the shards, and all ranks gather the
/// parts. Wire: (k + 1) (P - 1) / P n bytes per rank, where n is the size of a term and k the number of nodes of a
/// rank's shards, which is 1 if V / P is a power of two.
class CanonicalSum {
 public:
  /// Throws std::invalid_argument if the group's size does not divide `shards`.
  CanonicalSum(CommunicatorPtr group, int shards);

  int first() const { return first_of(group_->rank()); }     // this rank's first shard
  int last() const { return first_of(group_->rank() + 1); }  // one past this rank's last shard

  /// Adds this rank's shards, in order. `values`: [n], copied.
  void add(int shard, const at::Tensor& values);

  /// Writes the sum over the shards of all ranks. `sum`: [n]. Collective.
  void finish(const at::Tensor& sum);

 private:
  int first_of(int rank) const { return rank * (shards_ / group_->size()); }
  std::vector<PairwiseSum::Node> exchange(const std::vector<PairwiseSum::Node>& own,
                                          const std::vector<std::int64_t>& parts);

  CommunicatorPtr group_;
  int shards_;
  PairwiseSum own_;
};

}  // namespace phalanx
