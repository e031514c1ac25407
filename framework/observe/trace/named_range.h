// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>

#include <optional>

namespace phalanx {

/// A named interval of a thread's time, from begin() to end() or to the destructor, for tools such as NvtxRanges. Costs
/// a few nanoseconds if no tool is active. The ranges of a thread nest.
class NamedRange {
 public:
  void begin(const char* name) {
    range_.emplace(at::RecordScope::USER_SCOPE);
    if (range_->isActive()) range_->before(name);
  }
  void end() { range_.reset(); }

 private:
  std::optional<at::RecordFunction> range_;
};

}  // namespace phalanx
