// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "framework/comm/hierarchy.h"
#include "framework/comm/part_layout.h"

namespace phalanx::hierarchical {

/// Memory in which ranks sort parts: two halves of kPieceBytes, of the kind that the group moves fastest, taken at
/// first use and kept.
class Scratch {
 public:
  explicit Scratch(CommunicatorPtr intra) : intra_(std::move(intra)) {}

  /// Half 0 or 1, of `elements`. Collective over intra the first time.
  at::Tensor half(int number, std::int64_t elements, c10::ScalarType dtype);

 private:
  CommunicatorPtr intra_;
  at::Tensor bytes_;
};

/// Which parts travel together, in the order in which they lie in scratch memory: ranks of scope.
///   cartesian  bundle i: the parts of rank i of every group
///   tree       bundle g: the parts of group g
std::vector<std::vector<int>> bundles_of(const Level& level);

/// How many elements of each part a piece has, so that a piece of all parts fits into half the scratch.
std::int64_t piece_length(int ranks, c10::ScalarType dtype);

/// How many pieces that makes of the longest part.
int pieces_of_parts(const PartLayout& parts, c10::ScalarType dtype);

/// One piece of every rank's part, in scratch memory, bundle by bundle. Refers to `parts`.
class Staging {
 public:
  Staging(const std::vector<std::vector<int>>& bundles, const PartLayout& parts, int piece, Scratch& scratch,
          c10::ScalarType dtype);

  const at::Tensor& all() const { return all_; }
  at::Tensor bundle(int number) const;

  Counts bundle_counts() const { return bundle_counts_; }            // elements of each bundle
  Counts counts_in(int bundle) const { return counts_.at(bundle); }  // of each part in it
  at::Tensor own(const at::Tensor& part, int rank) const;            // this piece of a part that lies alone

  void copy_in(const at::Tensor& parts);         // from all parts in rank order
  void copy_out(const at::Tensor& parts) const;  // to them

 private:
  struct Run {
    std::int64_t begin;   // in all parts in rank order
    std::int64_t offset;  // in scratch
    std::int64_t count;
  };
  std::int64_t count(int rank) const;

  const PartLayout* parts_;
  std::int64_t first_;   // element of each part that the piece begins with
  std::int64_t length_;  // at most
  std::vector<Run> runs_;
  std::vector<std::int64_t> bundle_counts_;
  std::vector<std::vector<std::int64_t>> counts_;
  at::Tensor all_;
};

}  // namespace phalanx::hierarchical
