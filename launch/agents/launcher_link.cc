// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/launcher_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "launch/agents/agent.h"
#include "launch/agents/order_line.h"

namespace phalanx {
using std::chrono::milliseconds;

LauncherLink::LauncherLink(int input, Console& launcher, std::chrono::nanoseconds length, int numbers)
    : input_(input),
      interval_(beat_interval(length)),
      lease_(length, boot_time()),
      of_ranks_(std::make_shared<HostLease>(numbers, lease_.end())),
      launcher_(launcher) {
  ::fcntl(input_, F_SETFL, ::fcntl(input_, F_GETFL) | O_NONBLOCK);
}

LauncherLink::~LauncherLink() {
  if (!thread_.joinable()) return;
  stop_.raise();
  thread_.join();
}

void LauncherLink::start() {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void LauncherLink::run() {
  while (true) {
    milliseconds nap{0};
    {
      const std::lock_guard lock(mutex_);
      move();
      if (ended_ || over_) return;
      nap = std::chrono::ceil<milliseconds>(std::max(next_beat_ - boot_time(), std::chrono::nanoseconds(0)));
    }
    std::array<pollfd, 2> sources{
        {{.fd = input_, .events = POLLIN, .revents = 0}, {.fd = stop_.descriptor(), .events = POLLIN, .revents = 0}}};
    ::poll(sources.data(), sources.size(), static_cast<int>(nap.count()));
    if (sources[1].revents != 0) return;
  }
}

LauncherLink::News LauncherLink::take() {
  const std::lock_guard lock(mutex_);
  move();
  news_.clear();  // this call returns all of it
  unread_.ended = ended_;
  unread_.lease_is_over = over_;
  return std::exchange(unread_, {});
}

// Sends no beat any more once the lease is over or the launcher is gone: the agent ends its ranks. If they take longer
// than the lease because they wait for a disk, the launcher was not silent.
void LauncherLink::move() {
  if (!ended_) read_input();
  const auto now = boot_time();
  if (ended_ || over_ || now < std::min(next_beat_, lease_.end())) return;
  if (now >= lease_.end()) {
    over_ = true;
    news_.raise();
  } else {
    next_beat_ = now + interval_;
    launcher_.draw(beat_text(lease_.send(now)));
  }
}

void LauncherLink::read_input() {
  std::array<char, 256> chunk;
  while (true) {
    const ssize_t count = ::read(input_, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      ended_ = true;
      news_.raise();
      return;
    }
    pending_.append(chunk.data(), static_cast<std::size_t>(count));
    for (std::size_t end; (end = pending_.find('\n')) != pending_.npos; pending_.erase(0, end + 1)) {
      obey(pending_.substr(0, end));
    }
  }
}

void LauncherLink::obey(const std::string& line) {
  if (const auto beat = number_after(kAnswer, line)) {
    lease_.answered(*beat);
    of_ranks_->set_end(lease_.end());
  } else if (const auto rank = small_number_after(kEnded, line)) {
    of_ranks_->declare_ended(*rank);
  } else {
    unread_.orders.push_back(line);
    news_.raise();
  }
}

}  // namespace phalanx
