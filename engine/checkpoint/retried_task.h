// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/comm/store/store.h"

namespace phalanx {

/// A task in a thread of its own, which is tried again while it throws a DataError: writing to a disk that may be full,
/// slow or absent. Nobody needs to wait for it: a thread that the system does not let go outlives this object. So the
/// task must own all that it uses. Not thread-safe.
class RetriedTask {
 public:
  /// Starts the task. `pause`: time between two attempts.
  explicit RetriedTask(std::function<void()> task, Seconds pause = Seconds(0.25));
  ~RetriedTask();  // calls give_up() and does not wait
  RetriedTask(const RetriedTask&) = delete;
  RetriedTask& operator=(const RetriedTask&) = delete;

  /// Waits up to `limit`. Returns true if the task has ended: it has succeeded or failed for good.
  bool wait(Seconds limit) const;
  bool ended() const { return wait(Seconds(0)); }

  /// Returns the reason why the last attempt failed, if the task is trying again or has failed; otherwise "".
  std::string trouble() const;

  /// Makes the next failure final, or the last one if the task is between two attempts.
  void give_up();

  /// Throws what the task has thrown, if it has failed for good. Call it after it has ended.
  void check() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace phalanx
