// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/shared_poller.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace phalanx::ps {

bool SharedPoller::poll(std::unique_lock<std::mutex>& lock, const Channel& channel, Clock::time_point deadline) {
  std::array<pollfd, 2> ready{
      pollfd{channel.socket(), static_cast<short>(channel.has_output() ? POLLIN | POLLOUT : POLLIN), 0},
      pollfd{wakeup_.descriptor(), POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  polling_ = true;
  lock.unlock();
  const int count = ::poll(ready.data(), ready.size(), static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000)));
  lock.lock();
  polling_ = false;
  if (ready[1].revents != 0) wakeup_.clear();
  return count > 0;
}

}  // namespace phalanx::ps
