// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A connected stream socket with blocking calls, each with a deadline. Not thread-safe.
///
/// Both calls throw CommError, after which the stream cannot be used: kTimeout if the deadline has passed, kPeerLost if
/// the connection has ended. The message is only the reason, such as "the connection was closed".
class TimedStream {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// The socket must be non-blocking. `check` is called every few milliseconds while a call waits, and may throw; null:
  /// nothing ends a wait before the deadline.
  explicit TimedStream(Descriptor socket, std::function<void()> check = {})
      : socket_(std::move(socket)), check_(std::move(check)) {}

  void send(std::string_view text, Deadline deadline);
  std::string receive(std::size_t bytes, Deadline deadline);

  /// Returns the socket, which the caller now owns. The stream must not be used afterwards.
  Descriptor release() { return std::move(socket_); }

 private:
  void wait_for(short events, Deadline deadline) const;

  Descriptor socket_;
  std::function<void()> check_;
};

}  // namespace phalanx
