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

/// Waits for another thread or process to change shared memory: spins while the answer is likely near, then gives the
/// core away, then naps, so that a long wait costs no core. Not thread-safe: one per waiting thread.
class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// `ranks`: how many of them share `cores` (0: as many as this thread may use); with more ranks than cores it hardly
  /// spins.
  explicit Waiter(int ranks, int cores = 0) : spins_(ranks <= (cores > 0 ? cores : usable_cores()) ? 4000 : 20) {}

  /// Returns when ready() holds. Calls check(elapsed), which may throw to give up, now and then while waiting, and
  /// idle() more often, which may do something useful meanwhile.
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
  static constexpr std::uint64_t kYields = 4096;  // some milliseconds
  static constexpr std::uint64_t kYieldsBetweenChecks = 32;
  static constexpr std::chrono::microseconds kNap{50};

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
      std::this_thread::sleep_for(kNap);
    }
  }

  int spins_;
};

}  // namespace phalanx::shared_memory
