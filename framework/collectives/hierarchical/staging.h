// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {

/// Memory in which ranks sort parts: two halves of at least kPieceBytes each. It is of the kind that the group moves
/// fastest, is allocated at first use, and is kept.
class Scratch {
 public:
  explicit Scratch(CommunicatorPtr intra) : intra_(std::move(intra)) {}

  /// Returns `elements` elements of half 0 or 1. Collective over intra if it must allocate memory, as in the first
  /// call.
  at::Tensor half(int number, std::int64_t elements, c10::ScalarType dtype);

 private:
  CommunicatorPtr intra_;
  at::Tensor bytes_;
};

/// Returns the parts that travel together, in the order in which they lie in scratch memory. Parts are named by their
/// ranks of scope.
///   cartesian  bundle i: the parts of rank i of every group
///   tree       bundle g: the parts of group g
std::vector<std::vector<int>> bundles_of(const Level& level);

/// Returns the number of elements of each part in a piece, chosen so that a piece of all parts fits into half of the
/// scratch memory.
std::int64_t piece_length(int ranks, c10::ScalarType dtype);

/// Returns the number of pieces of that length in the longest part.
int pieces_of_parts(const PartLayout& parts, c10::ScalarType dtype);

/// One piece of every rank's part, in scratch memory, bundle by bundle. Keeps a reference to `parts`.
class Staging {
 public:
  Staging(const std::vector<std::vector<int>>& bundles, const PartLayout& parts, int piece, Scratch& scratch,
          c10::ScalarType dtype);

  const at::Tensor& all() const { return all_; }
  at::Tensor bundle(int number) const;

  Counts bundle_counts() const { return bundle_counts_; }            // elements of each bundle
  Counts counts_in(int bundle) const { return counts_.at(bundle); }  // of each part in the bundle
  // Returns this piece of a part that is not in scratch memory.
  at::Tensor own(const at::Tensor& part, int rank) const;

  void copy_in(const at::Tensor& parts);         // from the parts of all ranks, in rank order
  void copy_out(const at::Tensor& parts) const;  // to all parts in rank order

 private:
  struct Run {
    std::int64_t begin;   // offset in the parts of all ranks
    std::int64_t offset;  // offset in scratch memory
    std::int64_t count;
  };
  std::int64_t count(int rank) const;

  const PartLayout* parts_;
  std::int64_t first_;   // first element of each part in the piece
  std::int64_t length_;  // maximum elements of each part
  std::vector<Run> runs_;
  std::vector<std::int64_t> bundle_counts_;
  std::vector<std::vector<std::int64_t>> counts_;
  at::Tensor all_;
};

}  // namespace phalanx::hierarchical
