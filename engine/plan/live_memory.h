// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace phalanx {

/// Counts the memory that LibTorch's CPU allocator gives to this thread, and takes back, while this object exists, in
/// the same way as LibTorch's own profiler. Cannot be used together with that profiler.
class LiveMemory {
 public:
  LiveMemory();
  ~LiveMemory();

  std::int64_t now() const;   // bytes currently allocated
  std::int64_t peak() const;  // maximum of now() so far

 private:
  class Reports;

  std::shared_ptr<Reports> reports_;
  c10::DebugInfoGuard guard_;
};

}  // namespace phalanx
