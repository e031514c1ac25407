// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server/event_poll.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>

#include "framework/base/error.h"

namespace phalanx::ps {
namespace {

constexpr std::chrono::microseconds kRequestSpin(50);  // time to poll for the next request before sleeping

// Returns the timeout for epoll_wait until `due`, or -1 for no timeout.
int milliseconds_to(Clock::time_point due) {
  if (due == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

}  // namespace

EventPoll::EventPoll() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw Error(std::string("cannot start a server: ") + std::strerror(errno));
  add(stop_.descriptor(), EPOLLIN);
  add(interrupt_.descriptor(), EPOLLIN);
}

void EventPoll::control(int how, int socket, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = socket}};
  if (::epoll_ctl(epoll_.get(), how, socket, &event) != 0) {
    throw Error(std::string("cannot watch a connection: ") + std::strerror(errno));
  }
}

std::span<const epoll_event> EventPoll::wait(Clock::time_point due) {
  const auto spin_end = Clock::now() + kRequestSpin;
  while (true) {
    const bool spin = Clock::now() < spin_end;
    const int count =
        ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), spin ? 0 : milliseconds_to(due));
    if (count > 0 || (count == 0 && !spin)) {
      const auto end = std::remove_if(events_.begin(), events_.begin() + count,
                                      [this](const epoll_event& event) { return is_wakeup(event.data.fd); });
      return {events_.data(), static_cast<std::size_t>(end - events_.begin())};
    }
    if (count < 0 && errno != EINTR) throw Error(std::string("epoll_wait: ") + std::strerror(errno));
    ::sched_yield();
  }
}

// Returns true if the descriptor is one that wakes this thread, and notes why.
bool EventPoll::is_wakeup(int descriptor) {
  if (descriptor == stop_.descriptor()) {
    stopped_ = true;
    return true;
  }
  if (descriptor != interrupt_.descriptor()) return false;
  interrupt_.clear();
  return true;
}

}  // namespace phalanx::ps
