// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/log_rate_limiter.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/server/event_poll.h"

namespace phalanx::ps {

/// The sockets at which a server listens. While accepting is paused, new connections stay in the sockets' queues. Must
/// be used only by the server's thread.
class Listeners {
 public:
  /// Listens at the addresses (framework/base/sockets.h). Throws Error if that fails. `poll` must outlive this object.
  Listeners(const std::vector<std::string>& addresses, EventPoll& poll);

  /// Returns the addresses at which the server actually listens.
  const std::vector<std::string>& addresses() const { return addresses_; }

  bool has(int socket) const;

  /// Stops accepting until a time, or until resume_soon(), and logs why.
  void pause(Clock::time_point until, const std::string& why);
  void resume_soon();

  /// Returns when accepting resumes; the maximum while it is not paused.
  Clock::time_point resumes_at() const { return resumes_at_; }

  /// Accepts again if it is time to.
  void resume_if_due();

 private:
  EventPoll& poll_;
  std::vector<Descriptor> sockets_;
  std::vector<std::string> addresses_;
  Clock::time_point resumes_at_ = Clock::time_point::max();
  LogRateLimiter log_pauses_{Seconds(60)};
};

}  // namespace phalanx::ps
