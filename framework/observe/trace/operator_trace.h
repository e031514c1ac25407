// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/observe/trace/chrome_trace.h"

namespace phalanx {

inline constexpr const char* kOperatorsLane = "operators";

struct CollectedOperators;

/// While an object of this class exists, it collects every LibTorch operator that this thread runs, including nested
/// ones and the operators of backward passes that it starts, even if they run in device threads. Costs about a
/// microsecond per operator. A thread can have only one at a time, and must destroy it itself.
class OperatorTrace {
 public:
  OperatorTrace();
  ~OperatorTrace();
  OperatorTrace(const OperatorTrace&) = delete;
  OperatorTrace& operator=(const OperatorTrace&) = delete;

  /// Returns the operators that have ended, in the order in which they ended, all on kOperatorsLane.
  std::vector<TraceEvent> take();

 private:
  std::shared_ptr<CollectedOperators> collected_;
  c10::DebugInfoGuard guard_;
  std::uint64_t callback_;
};

}  // namespace phalanx
