// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/part_layout.h"

namespace phalanx::hierarchical {

/// All-reduce in place of one slice among the N ranks of `inter`, in two steps that can be under way for several slices
/// at a time: every rank sends each other its part of the slice and combines its own, in the order of the ranks; then
/// it sends its own to all. The direct exchange in both halves of Rabenseifner's all-reduce (2004).
///
/// 2 steps; n bytes: 2 (N - 1) / N n sent by each rank, the least there can be. All N - 1 messages of a step are sent
/// at once, so it is for few groups.
///
///   scatter(), combine(), gather(), wait()      in this order; combine() and wait() block
class Exchange {
 public:
  /// `op` combines and does not end: of a mean this is the sum.
  Exchange(CommunicatorPtr inter, const at::Tensor& slice, Reduction op);

  void scatter();
  void combine();
  void gather();
  void wait();

  /// This rank's part of the slice: combined after combine().
  const at::Tensor& own() const { return own_; }

  static constexpr int kMostGroups = 16;

 private:
  at::Tensor part(int rank) const { return parts_.of(slice_, rank); }
  void wait_for_messages();

  CommunicatorPtr inter_;
  at::Tensor slice_;
  Reduction op_;
  std::vector<std::int64_t> counts_;
  PartLayout parts_;
  at::Tensor own_;
  std::vector<at::Tensor> received_;  // by rank; the others' elements of this rank's part
  std::vector<Work> messages_;
};

}  // namespace phalanx::hierarchical
