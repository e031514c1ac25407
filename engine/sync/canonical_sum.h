// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Terms of a sum over shards 0, 1, ..., V - 1, added pairwise in one tree, whoever adds which of them: 2k to 2k + 1,
/// then pairs of pairs, and so on (pairwise summation: Higham 1993, The Accuracy of Floating Point Summation,
/// section 2). Where V is no power of two, the trees that remain are added from the last to the first.
class PairwiseSum {
 public:
  /// Terms of shards [first, first + count), added already: a power of two of them, of which `first` is a multiple.
  struct Node {
    int first = 0, count = 1;
    at::Tensor values;  // taken over, and changed
  };

  /// Nodes come in the order of their shards, without gaps.
  void add(Node node);

  /// What could not be added yet, in order; begins anew.
  std::vector<Node> take();

  /// The sum, once all shards from 0 on have come; begins anew.
  at::Tensor total();

 private:
  std::vector<Node> nodes_;
};

/// A sum over V shards of which rank r of P holds shards [r V / P, (r + 1) V / P), with bits that do not depend on P.
///
/// Every rank adds its own shards as they come, holding log2(V / P) + 1 of them at most. Then each rank gets its part
/// of the others' sums (all_to_all), adds them in the order of the shards, and all gather the parts. Wire: (k + 1) (P -
/// 1) / P n per rank, for n bytes of a term and the k nodes of a rank's shards: 1 where V / P is a power of two.
class CanonicalSum {
 public:
  /// Throws std::invalid_argument where the group's size does not divide `shards`.
  CanonicalSum(CommunicatorPtr group, int shards);

  int first() const { return first_of(group_->rank()); }     // of this rank's shards
  int last() const { return first_of(group_->rank() + 1); }  // and the one behind them

  /// Shards of this rank, one after the other. `values`: [n], copied.
  void add(int shard, const at::Tensor& values);

  /// Writes the sum over all ranks' shards. `sum`: [n]. Collective.
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
