// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server/listeners.h"

#include <sys/epoll.h>

#include <algorithm>

#include "framework/base/log.h"
#include "framework/base/sockets.h"

namespace phalanx::ps {

Listeners::Listeners(const std::vector<std::string>& addresses, EventPoll& poll) : poll_(poll) {
  for (const auto& address : addresses) {
    sockets_.push_back(listen_at(address));
    addresses_.push_back(address_of(sockets_.back().get()));
    poll_.add(sockets_.back().get(), EPOLLIN);
  }
}

bool Listeners::has(int socket) const {
  return std::ranges::any_of(sockets_, [&](const auto& one) { return one.get() == socket; });
}

void Listeners::pause(Clock::time_point until, const std::string& why) {
  resumes_at_ = until;
  for (const auto& socket : sockets_) poll_.change(socket.get(), 0);
  if (const auto more = log_pauses_.pass()) {
    log_warning() << "parameter server: connections have to wait: " << why << *more;
  }
}

void Listeners::resume_soon() {
  if (resumes_at_ != Clock::time_point::max()) resumes_at_ = Clock::now();
}

void Listeners::resume_if_due() {
  if (resumes_at_ > Clock::now()) return;
  resumes_at_ = Clock::time_point::max();
  for (const auto& socket : sockets_) poll_.change(socket.get(), EPOLLIN);
}

}  // namespace phalanx::ps
