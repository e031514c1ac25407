// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/live_memory.h"

#include <algorithm>

namespace phalanx {

class LiveMemory::Reports final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now += bytes;
    peak = std::max(peak, now);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t now = 0, peak = 0;
};

LiveMemory::LiveMemory()
    : reports_(std::make_shared<Reports>()), guard_(c10::DebugInfoKind::PROFILER_STATE, reports_) {}
LiveMemory::~LiveMemory() = default;

std::int64_t LiveMemory::now() const { return reports_->now; }
std::int64_t LiveMemory::peak() const { return reports_->peak; }

}  // namespace phalanx
