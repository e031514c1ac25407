// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/observe/chrome_trace.h"

namespace phalanx {

inline constexpr const char* kOperatorsLane = "operators";

struct CollectedOperators;

/// While it lives, collects every operator of LibTorch that this thread runs, and those of backwards that it begins,
/// also in threads of devices, with what they call in turn. Costs about a microsecond for each. One at a time in a
/// thread, which also destroys it.
class OperatorTrace {
 public:
  OperatorTrace();
  ~OperatorTrace();
  OperatorTrace(const OperatorTrace&) = delete;
  OperatorTrace& operator=(const OperatorTrace&) = delete;

  /// Those that have ended, in the order in which they did; they are on kOperatorsLane.
  std::vector<TraceEvent> take();

 private:
  std::shared_ptr<CollectedOperators> collected_;
  c10::DebugInfoGuard guard_;
  std::uint64_t callback_;
};

}  // namespace phalanx
