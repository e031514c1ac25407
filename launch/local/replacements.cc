// SPDX-License-Identifier: Apache-2.0
#include "launch/local/replacements.h"

#include <cstddef>
#include <optional>
#include <utility>

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

void Replacements::replace(int number, Supervisor& supervisor, const Start& start,
                           std::chrono::system_clock::time_point lost_at) {
  Newcomer next{.in_place_of = number, .place = number, .lost_at = lost_at};
  if (number >= options_.ranks) {
    const Newcomer& before = newcomers_.at(static_cast<std::size_t>(number - options_.ranks));
    next.place = before.place;
    if (waits(number)) next = before;
  }
  forgive(number, place_of(next));
  plan(next, supervisor, start);
}

// Forgets earlier starts for a place whose process has run well until it was lost.
void Replacements::forgive(int lost, Place& place) {
  const auto since = std::exchange(place.since, std::nullopt);  // it is asked only once about this process
  if (since && !waits(lost) && Clock::now() - *since >= options_.runs_well) place.starts = 0;
}

void Replacements::add(Supervisor& supervisor, const Start& start) {
  const Newcomer next{
      .in_place_of = kNobody, .place = static_cast<int>(places_.size()), .lost_at = std::chrono::system_clock::now()};
  places_.push_back({.starts = 1});
  start_soon(next, std::chrono::milliseconds(0), supervisor, start, /*counts=*/false);
}

void Replacements::plan(const Newcomer& next, Supervisor& supervisor, const Start& start) {
  if (planned_ == options_.most) {
    print_to_console("No process takes the place of " + described(next) + ": " + std::to_string(planned_) +
                     " have been started already (faults.replacements)");
    return;
  }
  ++planned_;
  const int before = place_of(next).starts++;
  start_soon(next, delay_after(before), supervisor, start, /*counts=*/true);
}

void Replacements::start_soon(const Newcomer& next, std::chrono::milliseconds delay, Supervisor& supervisor,
                              const Start& start, bool counts) {
  ++pending_;
  supervisor.call_after(delay, [this, next = next, &supervisor, start, counts]() mutable {
    --pending_;
    next.number = options_.ranks + static_cast<int>(newcomers_.size());
    try {
      if (start(next)) {
        newcomers_.push_back(next);
        place_of(next).since = Clock::now();
      } else if (counts) {
        --planned_;
        --place_of(next).starts;
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
