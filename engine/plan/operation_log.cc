// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/operation_log.h"

#include <utility>

namespace phalanx {

void OperationLog::add(AxisBits axes, const Operation& operation) { add(axes, operation.call.op, bytes_of(operation)); }

void OperationLog::add(AxisBits axes, Op op, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  phalanx::add(counts_, axes, op, bytes);
}

OperationCounts OperationLog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

}  // namespace phalanx
