// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace phalanx {

/// Keeps log lines that others can cause at will from filling the disk: lets one line pass per interval and counts the
/// rest. Not thread-safe.
class LogRateLimiter {
 public:
  explicit LogRateLimiter(std::chrono::duration<double> interval)
      : interval_(std::chrono::duration_cast<Clock::duration>(interval)) {}

  /// Returns the text to append to a line that is due, such as " (and 12 more)". Returns nothing if the line must be
  /// skipped.
  std::optional<std::string> pass() {
    const auto now = Clock::now();
    if (now < next_) {
      ++skipped_;
      return {};
    }
    next_ = now + interval_;
    std::string more = skipped_ > 0 ? " (and " + std::to_string(skipped_) + " more)" : "";
    skipped_ = 0;
    return more;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::duration interval_;
  Clock::time_point next_{};
  std::int64_t skipped_ = 0;
};

/// Limits the lines of each kind separately, so that a flood of one kind does not hide the others. Kinds beyond
/// kMaxKinds share a limit. Not thread-safe.
class LogRateLimiters {
 public:
  static constexpr std::size_t kMaxKinds = 16;

  explicit LogRateLimiters(std::chrono::duration<double> interval) : interval_(interval) {}

  /// As LogRateLimiter::pass(), for a line of this kind, such as the reason of a failure.
  std::optional<std::string> pass(const std::string& kind) {
    const std::string key = limiters_.contains(kind) || limiters_.size() < kMaxKinds ? kind : "";
    return limiters_.try_emplace(key, interval_).first->second.pass();
  }

 private:
  const std::chrono::duration<double> interval_;
  std::map<std::string, LogRateLimiter> limiters_{};
};

}  // namespace phalanx
