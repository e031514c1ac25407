// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A table of counts with a row for each class, [K, columns] int64. The first batch determines K, so ranks without
/// batches may not know it.
class ClassCounts {
 public:
  void add(const at::Tensor& counts);  // [K, columns] int64 on the CPU

  /// Returns the counts of all ranks, [K, columns], and clears the table. Returns [0, 0] if no rank has called add().
  /// All calls of add() must have had the same number of columns. Collective.
  at::Tensor take(Communicator& group);

  /// Returns the table, [0, 0] without batches. See Meter.
  std::vector<at::Tensor> state() const;
  void merge_state(const std::vector<at::Tensor>& state);

 private:
  at::Tensor counts_;
};

}  // namespace phalanx
