// SPDX-License-Identifier: Apache-2.0
#include "framework/base/wall_clock.h"

#include <atomic>

namespace phalanx {
namespace {

std::atomic<std::chrono::seconds> wall_clock_shift{std::chrono::seconds(0)};

}  // namespace

std::chrono::system_clock::time_point wall_time() {
  return std::chrono::system_clock::now() + wall_clock_shift.load(std::memory_order_relaxed);
}

double wall_seconds() { return std::chrono::duration<double>(wall_time().time_since_epoch()).count(); }

void shift_wall_clock(std::chrono::seconds shift) { wall_clock_shift.store(shift, std::memory_order_relaxed); }

}  // namespace phalanx
