// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace phalanx::shared_memory {

/// Called wherever the order in which ranks act can matter: before a rank publishes data for other ranks, and in every
/// iteration of a wait. Null, except in tests that decide which rank goes on (framework/testing/fuzz); a wait then does
/// nothing else.
inline std::atomic<void (*)()> schedule_point_hook{nullptr};

inline void set_schedule_point(void (*hook)()) { schedule_point_hook.store(hook, std::memory_order_release); }

inline bool scheduled() { return schedule_point_hook.load(std::memory_order_relaxed) != nullptr; }

inline void schedule_point() {
  if (auto* hook = schedule_point_hook.load(std::memory_order_acquire)) hook();
}

}  // namespace phalanx::shared_memory
