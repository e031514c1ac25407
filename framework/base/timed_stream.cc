// SPDX-License-Identifier: Apache-2.0
#include "framework/base/timed_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "framework/base/error.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

constexpr std::int64_t kCheck = 5, kLongest = 60'000;  // milliseconds of one wait

[[noreturn]] void fail() { throw CommError(CommError::Kind::kPeerLost, std::strerror(errno)); }

}  // namespace

void TimedStream::send(std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && !not_ready()) fail();
    if (count < 0) {
      wait_for(POLLOUT, deadline);
    } else {
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
}

std::string TimedStream::receive(std::size_t bytes, Deadline deadline) {
  std::string text(bytes, '\0');
  for (std::size_t received = 0; received < bytes;) {
    const ssize_t count = ::recv(socket_.get(), text.data() + received, bytes - received, 0);
    if (count == 0) throw CommError(CommError::Kind::kPeerLost, "the connection was closed");
    if (count < 0 && !not_ready()) fail();
    if (count < 0) {
      wait_for(POLLIN, deadline);
    } else {
      received += static_cast<std::size_t>(count);
    }
  }
  return text;
}

void TimedStream::wait_for(short events, Deadline deadline) const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  if (left < 0) throw CommError(CommError::Kind::kTimeout, "no answer in time");
  pollfd ready{.fd = socket_.get(), .events = events, .revents = 0};
  const std::int64_t longest = check_ ? kCheck : kLongest;
  const bool waits_on = ::poll(&ready, 1, static_cast<int>(std::min(left + 1, longest))) <= 0;
  if (check_ && waits_on) check_();
}

}  // namespace phalanx
