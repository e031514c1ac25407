// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace phalanx::shared_memory {

/// Called wherever the order in which ranks act can matter: before what one publishes for the others, and in every turn
/// of a wait. Null, but for tests that decide who goes on (framework/testing/fuzz); then a wait does nothing else.
inline std::atomic<void (*)()> schedule_point_hook{nullptr};

inline void set_schedule_point(void (*hook)()) { schedule_point_hook.store(hook, std::memory_order_release); }

inline bool scheduled() { return schedule_point_hook.load(std::memory_order_relaxed) != nullptr; }

inline void schedule_point() {
  if (auto* hook = schedule_point_hook.load(std::memory_order_acquire)) hook();
}

}  // namespace phalanx::shared_memory
