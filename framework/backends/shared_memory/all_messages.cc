// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/all_messages.h"

namespace phalanx::shared_memory {

void AllMessages::add(const std::shared_ptr<Messages>& messages) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const auto& one) { return one.expired(); });
  all_.push_back(messages);
}

// Does nothing if another thread is polling.
void AllMessages::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (const auto& one : all_) {
    if (const auto messages = one.lock()) messages->poll();
  }
}

}  // namespace phalanx::shared_memory
