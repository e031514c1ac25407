// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "framework/comm/store/store.h"

namespace phalanx {

/// Runs tasks that only observe a run. The run must not end because such a task fails, for example on a full disk.
class BestEffort {
 public:
  /// Calls `task`. If the task throws, writes the reason and `what_happens_now` to the log and to standard error,
  /// unless the previous call failed as well: "metrics.jsonl: No space left on device; the run continues".
  void attempt(const std::function<void()>& task, const char* what_happens_now);

 private:
  bool reported_ = false;
};

/// Calls `task` until it does not throw a DataError, at most for `patience`, and then rethrows its error. Writes the
/// first reason to the log and to standard error.
void insist(const std::function<void()>& task, Seconds patience);

}  // namespace phalanx
