// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/line_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "framework/base/error.h"

namespace phalanx::bench {

void LineSocket::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) throw Error(name_ + " has ended");
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

std::string LineSocket::receive(Seconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + timeout;
  while (received_.find('\n') == std::string::npos) {
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int count = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count()) + 1) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", timeout.count());
      throw Error(name_ + " has not answered for " + seconds + " s");
    }
    char chunk[512];
    const ssize_t bytes = ::read(socket_.get(), chunk, sizeof(chunk));
    if (bytes <= 0) throw Error(name_ + " has ended; its output on standard error says why");
    received_.append(chunk, static_cast<std::size_t>(bytes));
  }
  const auto end = received_.find('\n');
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::string LineSocket::ask(const std::string& line, Seconds timeout) {
  send(line);
  return receive(timeout);
}

}  // namespace phalanx::bench
