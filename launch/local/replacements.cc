// SPDX-License-Identifier: Apache-2.0
#include "launch/local/replacements.h"

#include <cstddef>

#include "framework/base/error.h"
#include "launch/backoff.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

std::string described(const Newcomer& newcomer) {
  if (newcomer.in_place_of == kNobody) return "a rank that was to join";
  return "rank " + std::to_string(newcomer.in_place_of);
}

}  // namespace

void Replacements::replace(int number, Supervisor& supervisor, const Start& start) {
  Newcomer next{.in_place_of = number, .place = number, .lost_at = std::chrono::system_clock::now()};
  if (number >= options_.ranks) {
    const Newcomer& before = newcomers_.at(static_cast<std::size_t>(number - options_.ranks));
    next.place = before.place;
    if (waits(number)) next = before;
  }
  plan(next, supervisor, start);
}

void Replacements::add(Supervisor& supervisor, const Start& start) {
  const Newcomer next{
      .in_place_of = kNobody, .place = static_cast<int>(used_.size()), .lost_at = std::chrono::system_clock::now()};
  used_.push_back(1);
  start_soon(next, std::chrono::milliseconds(0), supervisor, start, /*counts=*/false);
}

void Replacements::plan(const Newcomer& next, Supervisor& supervisor, const Start& start) {
  if (planned_ == options_.most) {
    print_to_console("No process takes the place of " + described(next) + ": " + std::to_string(planned_) +
                     " have been started already (faults.replacements)");
    return;
  }
  ++planned_;
  const int before = used_.at(static_cast<std::size_t>(next.place))++;
  start_soon(next, delay_after(before), supervisor, start, /*counts=*/true);
}

void Replacements::start_soon(const Newcomer& next, std::chrono::milliseconds delay, Supervisor& supervisor,
                              const Start& start, bool counts) {
  supervisor.call_after(delay, [this, next = next, &supervisor, start, counts]() mutable {
    next.number = options_.ranks + static_cast<int>(newcomers_.size());
    try {
      if (start(next)) {
        newcomers_.push_back(next);
      } else if (counts) {
        --planned_;
      }
    } catch (const Error& error) {  // the system has no process left; the ranks go on
      print_to_console((next.in_place_of == kNobody
                            ? "A rank does not join yet: "
                            : "Rank " + std::to_string(next.in_place_of) + " is not replaced yet: ") +
                       std::string(error.what()));
      plan(next, supervisor, start);
    }
  });
}

// Returns the time to wait for the next process of a place, after `before` others.
std::chrono::milliseconds Replacements::delay_after(int before) const {
  if (before == 0) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(backoff(options_.delay, before - 1));
}

}  // namespace phalanx
