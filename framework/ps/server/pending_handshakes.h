// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/log_rate_limiter.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/server/session.h"

namespace phalanx::ps {

/// The connections that have not identified themselves yet, oldest first. Must be used only by the server's thread.
class PendingHandshakes {
 public:
  /// `greeting` is the time within which a connection must identify itself.
  explicit PendingHandshakes(Seconds greeting) : greeting_(greeting) {}

  void add(std::shared_ptr<Session> session) { sessions_.push_back(std::move(session)); }
  void remove(const std::shared_ptr<Session>& session) { std::erase(sessions_, session); }

  std::size_t size() const { return sessions_.size(); }

  /// Return, and take_oldest() also removes, the oldest of at least one connection.
  const Session& oldest() const { return *sessions_.front(); }
  std::shared_ptr<Session> take_oldest() {
    auto oldest = std::move(sessions_.front());
    sessions_.pop_front();
    return oldest;
  }

  /// Returns the time by which the oldest connection must have identified itself; the maximum if there are no
  /// connections.
  Clock::time_point due() const {
    return sessions_.empty() ? Clock::time_point::max() : oldest().since + duration_of(greeting_);
  }

  /// Returns the text to append to a log line about the end of such a connection, or nothing if the line must be
  /// skipped, since anyone could fill the log with such lines.
  std::optional<std::string> pass_log_line(const std::string& why) { return log_lines_.pass(why); }

 private:
  Seconds greeting_;
  std::deque<std::shared_ptr<Session>> sessions_;
  LogRateLimiters log_lines_{Seconds(60)};
};

}  // namespace phalanx::ps
