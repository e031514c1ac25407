// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {

/// All-reduces one slice in place among the N ranks of `inter`. It has two steps, and several slices may be in progress
/// at a time. First every rank sends each other rank that rank's part of the slice, and combines its own part in rank
/// order. Then it sends its combined part to all other ranks. This is the direct exchange, used for both halves of
/// Rabenseifner's all-reduce (2004).
///
/// 2 steps; for n bytes, each rank sends 2 (N - 1) / N n, which is the minimum. All N - 1 messages of a step are sent
/// at once, so it is for few groups.
///
///   scatter(), combine(), gather(), wait()      in this order; combine() and wait() block
class Exchange {
 public:
  /// `op` is applied without Reduction::finish(): the result of a mean is the sum.
  Exchange(CommunicatorPtr inter, const at::Tensor& slice, Reduction op);

  void scatter();
  void combine();
  void gather();
  void wait();

  /// Returns this rank's part of the slice, which is combined after combine().
  const at::Tensor& own() const { return own_; }

  static constexpr int kMaxGroups = 16;

 private:
  at::Tensor part(int rank) const { return parts_.of(slice_, rank); }
  void wait_for_messages();

  CommunicatorPtr inter_;
  at::Tensor slice_;
  Reduction op_;
  std::vector<std::int64_t> counts_;
  PartLayout parts_;
  at::Tensor own_;
  std::vector<at::Tensor> received_;  // by rank; the other ranks' elements of this rank's part
  std::vector<Work> messages_;
};

}  // namespace phalanx::hierarchical
