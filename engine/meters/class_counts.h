// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A table of counts with a row for each class, [K, columns] int64. K is what the first batch has, and may be unknown
/// to ranks without any.
class ClassCounts {
 public:
  void add(const at::Tensor& counts);  // [K, columns] int64 on the CPU

  /// The counts of all ranks, which have called add() with as many columns, [K, columns]; [0, 0] where nobody has.
  /// Starts anew. Collective.
  at::Tensor take(Communicator& group);

  /// The table, [0, 0] without batches. See Meter.
  std::vector<at::Tensor> state() const;
  void absorb(const std::vector<at::Tensor>& state);

 private:
  at::Tensor counts_;
};

}  // namespace phalanx
