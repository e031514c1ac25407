// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "framework/backends/shared_memory/schedule_point.h"
#include "framework/base/cores.h"

namespace phalanx::shared_memory {

/// Waits for another thread or process to change shared memory. It first spins, for changes that come soon, then yields
/// the core, and then sleeps for short times, so that a long wait does not occupy a core. Not thread-safe: each waiting
/// thread needs its own.
class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// `ranks` is the number of ranks that share `cores` (0: as many cores as this thread may use). With more ranks than
  /// cores it hardly spins.
  explicit Waiter(int ranks, int cores = 0) : spins_(ranks <= (cores > 0 ? cores : usable_cores()) ? 4000 : 20) {}

  /// Blocks until ready() returns true. While it waits, it calls check(elapsed) from time to time, which may throw to
  /// give up, and idle() more often, which may do useful work.
  template <class Ready, class Check, class Idle>
  void wait(const Ready& ready, const Check& check, const Idle& idle) const {
    for (int i = 0; i < spins_ && !scheduled(); ++i) {
      if (ready()) return;
      relax();
    }
    const auto start = Clock::now();
    for (std::uint64_t i = 0;; ++i) {
      if (ready()) return;
      idle();
      if (i % kYieldsBetweenChecks == 0) check(Clock::now() - start);
      give_way(i);
    }
  }

  template <class Ready, class Check>
  void wait(const Ready& ready, const Check& check) const {
    wait(ready, check, [] {});
  }

 private:
  static constexpr std::uint64_t kYields = 4096;  // a few milliseconds
  static constexpr std::uint64_t kYieldsBetweenChecks = 32;
  static constexpr std::chrono::microseconds kSleep{50};

  static void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static void give_way(std::uint64_t turn) {
    if (scheduled()) {
      schedule_point();
    } else if (turn < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }

  int spins_;
};

}  // namespace phalanx::shared_memory
