// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>

#include <optional>

namespace phalanx {

/// A part of a thread's time with a name, for those who watch (NvtxRanges): from begin() to end() or to its own end.
/// Costs nanoseconds where nobody does. Ranges of a thread nest.
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
