// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>

#include "framework/comm/store/store.h"

namespace phalanx {

/// Calls `ready` until it returns true, and returns false if it has not done so within `timeout`. It pauses in between:
/// briefly at first, because ranks mostly wait for something that is about to happen; then for up to 20 ms, because a
/// thousand ranks may poll one server.
template <class Ready>
bool poll_until(const Ready& ready, Seconds timeout) {
  using std::chrono::microseconds;
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + timeout;
  for (microseconds nap{50};; nap = std::min(nap * 3 / 2, microseconds(20'000))) {
    if (ready()) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(nap);
  }
}

/// Formats a time as "1.5 s".
inline std::string in_seconds(Seconds time) {
  std::ostringstream text;
  text.precision(3);
  text << time.count() << " s";
  return text.str();
}

}  // namespace phalanx
