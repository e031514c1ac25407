// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/end_after_failure.h"

#include <unistd.h>

#include "framework/base/blocked_signals.h"

namespace phalanx {

EndAfterFailure::EndAfterFailure(std::chrono::milliseconds grace) : grace_(grace) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  thread_ = std::thread([this] { watch(); });
}

EndAfterFailure::~EndAfterFailure() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void EndAfterFailure::failed(int status) {
  {
    const std::lock_guard lock(mutex_);
    if (!status_) status_ = status;
  }
  changed_.notify_one();
}

void EndAfterFailure::watch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_ || status_; });
  const bool all_ended = changed_.wait_for(lock, grace_, [this] { return over_; });
  if (!all_ended) ::_exit(*status_);  // destructors would wait for the hanging thread
}

}  // namespace phalanx
