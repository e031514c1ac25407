// SPDX-License-Identifier: Apache-2.0
#include "launch/local/event_loop.h"

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace phalanx {

void EventLoop::watch(int fd, std::function<bool()> readable) { watched_.push_back({fd, std::move(readable)}); }

void EventLoop::repeat(std::chrono::milliseconds interval, std::function<void()> action) {
  repeated_.push_back({.interval = interval, .action = std::move(action)});
}

void EventLoop::make_repeated_due() {
  for (auto& one : repeated_) one.next = {};
}

void EventLoop::call_after(std::chrono::milliseconds delay, std::function<void()> action) {
  planned_.push_back({Clock::now() + delay, std::move(action)});
}

void EventLoop::wait(int fd, std::optional<Clock::time_point> deadline) {
  const auto sooner = [&deadline](Clock::time_point other) {
    deadline = deadline ? std::min(*deadline, other) : other;
  };
  for (const auto& one : repeated_) sooner(one.next);
  for (const auto& planned : planned_) sooner(planned.at);
  int timeout = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    timeout = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }
  std::vector<pollfd> sources{{.fd = fd, .events = POLLIN, .revents = 0}};
  for (const auto& watched : watched_) sources.push_back({.fd = watched.fd, .events = POLLIN, .revents = 0});
  if (::poll(sources.data(), sources.size(), timeout) <= 0) return;
  for (std::size_t i = 0; i + 1 < sources.size(); ++i) {
    const auto happened = sources[i + 1].revents;
    if (happened == 0) continue;
    // At its end, the descriptor would always be ready, and this loop would spin. Only some kinds clear POLLIN there.
    if (!watched_[i].readable() || (happened & POLLIN) == 0) watched_[i].fd = -1;
  }
}

void EventLoop::run_repeated() {
  for (auto& one : repeated_) {
    if (Clock::now() < one.next) continue;
    one.next = Clock::now() + one.interval;
    one.action();
  }
}

void EventLoop::call_planned() {
  for (std::size_t i = 0; i < planned_.size();) {
    if (planned_[i].at > Clock::now()) {
      ++i;
      continue;
    }
    const auto action = std::move(planned_[i].action);
    planned_.erase(planned_.begin() + static_cast<std::ptrdiff_t>(i));
    action();
  }
}

}  // namespace phalanx
