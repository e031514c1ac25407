// SPDX-License-Identifier: Apache-2.0
#include "launch/local/replacements.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "framework/base/error.h"
#include "launch/local/print_to_console.h"

namespace phalanx {

void Replacements::replace(int number, Supervisor& supervisor, const Start& start) {
  Newcomer next{.in_place_of = number, .place = number, .lost_at = std::chrono::system_clock::now()};
  if (number >= options_.ranks) {
    const Newcomer& before = newcomers_.at(static_cast<std::size_t>(number - options_.ranks));
    next.place = before.place;
    if (waits(number)) next = before;
  }
  plan(next, supervisor, start);
}

void Replacements::plan(Newcomer next, Supervisor& supervisor, const Start& start) {
  if (planned_ == options_.most) {
    print_to_console("No process takes the place of rank " + std::to_string(next.in_place_of) + ": " +
                     std::to_string(planned_) + " have been started already (faults.replacements)");
    return;
  }
  ++planned_;
  const int before = used_.at(static_cast<std::size_t>(next.place))++;
  supervisor.call_after(delay_after(before), [this, next, &supervisor, start]() mutable {
    next.number = options_.ranks + static_cast<int>(newcomers_.size());
    try {
      if (!start(next)) {
        --planned_;
        return;
      }
    } catch (const Error& error) {  // the system has no process left; the ranks go on
      print_to_console("Rank " + std::to_string(next.in_place_of) + " is not replaced yet: " + error.what());
      plan(next, supervisor, start);
      return;
    }
    newcomers_.push_back(next);
  });
}

// Returns the time to wait for the next process of a place, after `before` others.
std::chrono::milliseconds Replacements::delay_after(int before) const {
  if (before == 0) return std::chrono::milliseconds(0);
  const double seconds = std::min(60.0, std::ldexp(options_.delay, std::min(before - 1, 30)));
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace phalanx
