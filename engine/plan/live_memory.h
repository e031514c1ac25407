// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace phalanx {

/// Counts what LibTorch's CPU allocator gives this thread, and takes back from it, while this exists: as LibTorch's own
/// profiler does. Not together with that profiler.
class LiveMemory {
 public:
  LiveMemory();
  ~LiveMemory();

  std::int64_t now() const;   // bytes given and not taken back
  std::int64_t peak() const;  // the most of them at any time

 private:
  class Reports;

  std::shared_ptr<Reports> reports_;
  c10::DebugInfoGuard guard_;
};

}  // namespace phalanx
