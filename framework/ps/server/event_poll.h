// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "framework/base/descriptor.h"
#include "framework/base/wakeup.h"
#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// The sockets that a server's thread waits for. Must be used only by that thread, except for interrupt() and stop().
class EventPoll {
 public:
  /// Throws Error if the system has no descriptor left.
  EventPoll();

  /// Watch a socket for `events` (EPOLLIN, EPOLLOUT), instead of those it was watched for. A socket that is closed is
  /// forgotten. Throw Error if the system refuses it.
  void add(int socket, std::uint32_t events) { control(EPOLL_CTL_ADD, socket, events); }
  void change(int socket, std::uint32_t events) { control(EPOLL_CTL_MOD, socket, events); }
  void remove(int socket) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr); }

  /// Blocks until a socket is ready, until `due`, or until interrupt() or stop() is called. Returns the events, whose
  /// data is the socket; they are valid until the next call. Polls for a while before it sleeps, because waking up
  /// takes longer than a small request.
  std::span<const epoll_event> wait(Clock::time_point due);

  /// Make wait() return, now or when it is called next. Thread-safe.
  void interrupt() const { interrupt_.raise(); }
  void stop() const { stop_.raise(); }

  /// Returns true once wait() has returned because of stop().
  bool stopped() const { return stopped_; }

 private:
  void control(int how, int socket, std::uint32_t events);
  bool is_wakeup(int descriptor);

  Descriptor epoll_;
  Wakeup stop_{"cannot start a server"}, interrupt_{"cannot start a server"};
  bool stopped_ = false;
  std::array<epoll_event, 64> events_{};
};

}  // namespace phalanx::ps
