// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

#include "engine/plan/operation_counts.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Counts operations in groups of more than one rank. Thread-safe.
class OperationLog {
 public:
  void add(AxisBits axes, const Operation& operation);
  void add(AxisBits axes, Op op, std::int64_t bytes);

  /// Returns the operations since the last call.
  OperationCounts take();

 private:
  std::mutex mutex_;
  OperationCounts counts_;
};

}  // namespace phalanx
