// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace phalanx {

/// Ends this process if one of its rank threads has failed and the others do not end, as a launcher does with ranks
/// that are processes. A thread that hangs cannot be stopped on its own, and would keep the process from reporting the
/// failure.
class EndAfterFailure {
 public:
  /// `grace` is the time that the other ranks have to end by themselves.
  explicit EndAfterFailure(std::chrono::milliseconds grace = std::chrono::milliseconds(3500));
  ~EndAfterFailure();
  EndAfterFailure(const EndAfterFailure&) = delete;
  EndAfterFailure& operator=(const EndAfterFailure&) = delete;

  /// Starts the countdown. When it is over, the process exits with `status`, unless this object has been destroyed.
  /// Only the first call counts. Thread-safe.
  void failed(int status);

 private:
  void watch();

  const std::chrono::milliseconds grace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> status_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace phalanx
