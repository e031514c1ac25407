// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/inbox.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

void Inbox::add(const Source& source, Receiver& receiver) {
  const std::lock_guard lock(mutex_);
  receivers_[source].push_back(&receiver);
  waiting_.fetch_add(1, std::memory_order_release);
}

void Inbox::remove(const Source& source, const Receiver& receiver) {
  const std::lock_guard lock(mutex_);
  const auto found = receivers_.find(source);
  if (found == receivers_.end()) return;
  waiting_.fetch_sub(static_cast<int>(std::erase(found->second, &receiver)), std::memory_order_relaxed);
  if (found->second.empty()) receivers_.erase(found);
}

void Inbox::take_all() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (auto it = receivers_.begin(); it != receivers_.end();) {
    auto& waiting = it->second;
    while (!waiting.empty() && waiting.front()->take()) {
      waiting.pop_front();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    it = waiting.empty() ? receivers_.erase(it) : std::next(it);
  }
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
