// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace phalanx {

/// Ends this process if ranks that are its threads do not end after one of them has failed, as a launcher ends ranks
/// that are processes: a thread that hangs cannot be stopped by itself, and would keep the process from reporting the
/// failure.
class EndAfterFailure {
 public:
  /// `patience`: the time that the other ranks have to end by themselves.
  explicit EndAfterFailure(std::chrono::milliseconds patience = std::chrono::milliseconds(3500));
  ~EndAfterFailure();
  EndAfterFailure(const EndAfterFailure&) = delete;
  EndAfterFailure& operator=(const EndAfterFailure&) = delete;

  /// Starts the countdown, at whose end the process exits with `status` unless this object has been destroyed. Only the
  /// first call counts. Thread-safe.
  void failed(int status);

 private:
  void watch();

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> status_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace phalanx
