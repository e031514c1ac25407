// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/work.h"

#include <exception>
#include <utility>

#include "framework/base/log.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx {

void Work::finish() noexcept {
  if (!state_ || waited_) return;
  const bool unwinds = std::uncaught_exceptions() > 0;
  try {
    // Within an operation, all ranks complete their messages, even if the operation fails.
    const bool abandons = unwinds && !OperationQueue::runs_operation();
    auto* const abandonable = abandons ? dynamic_cast<Abandonable*>(state_.get()) : nullptr;
    if (abandonable == nullptr) return wait();
    const auto state = std::exchange(state_, nullptr);
    abandonable->abandon();
  } catch (const std::exception& error) {
    // While another failure unwinds the stack, this one is mostly a consequence of it.
    auto line = unwinds ? log_info() : log_error();
    line << "an operation whose Work was dropped without wait() failed: " << error.what();
  } catch (...) {
    log_error() << "an operation whose Work was dropped without wait() failed";
  }
}

void wait_all(std::vector<Work>& works) {
  for (auto& work : works) work.wait();
}

}  // namespace phalanx
