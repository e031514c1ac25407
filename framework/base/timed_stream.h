// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
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

  /// The socket must be non-blocking.
  explicit TimedStream(Descriptor socket) : socket_(std::move(socket)) {}

  void send(std::string_view text, Deadline deadline);
  std::string receive(std::size_t bytes, Deadline deadline);

  /// Returns the socket, which the caller now owns. The stream must not be used afterwards.
  Descriptor release() { return std::move(socket_); }

 private:
  void wait_for(short events, Deadline deadline) const;

  Descriptor socket_;
};

}  // namespace phalanx
