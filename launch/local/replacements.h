// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/backoff.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/rank_notes.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// The processes that a launcher starts in the places of lost ranks (faults.on_lost_rank: replace). They get numbers
/// that follow those of all ranks and processes before, as the supervisor numbers its children.
class Replacements {
 public:
  struct Options {
    int ranks = 0;     // with which the job begins
    int most = 0;      // processes that are started in all; 0: lost ranks are not replaced
    double delay = 1;  // seconds before the second process for the same place; doubles with each (backoff())
    std::string meeting_folder{};

    /// A place whose process has taken part, and has run for this time, begins again with the shortest delay.
    std::chrono::milliseconds runs_well = kLongestBackoff;
  };

  /// Starts a process. Returns false if there is no place for it. Throws Error if the system refuses it.
  using Start = std::function<bool(const Newcomer&)>;

  explicit Replacements(Options options)
      : options_(std::move(options)),
        notes_(options_.ranks, options_.meeting_folder),
        places_(static_cast<std::size_t>(options_.ranks)) {}

  bool enabled() const { return options_.most > 0; }

  /// Returns true if this process is not a rank yet.
  bool waits(int number) const { return enabled() && notes_.waits(number); }

  const RankNotes& notes() const { return notes_; }

  /// Plans a process in place of `number`, which `start` starts, or prints that there were too many already. If
  /// `number` waits(), the process takes the place that `number` was to take. If `start` throws Error, prints why and
  /// plans the next one. If it returns false, nobody takes this place, unless this is called again. `lost_at` is the
  /// time at which `number` was lost.
  void replace(int number, Supervisor& supervisor, const Start& start,
               std::chrono::system_clock::time_point lost_at = std::chrono::system_clock::now());

  /// Plans a process that takes part in addition to the ranks that there are. It does not count as a replacement.
  void add(Supervisor& supervisor, const Start& start);

  /// Returns the number of processes that are planned, and have not been started yet.
  int pending() const { return pending_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Place {
    int starts = 0;                            // planned since the last process there that ran well
    std::optional<Clock::time_point> since{};  // the start of the process that is there, unless the job began with it
  };

  void forgive(int lost, Place& place);
  void start_soon(const Newcomer& next, std::chrono::milliseconds delay, Supervisor& supervisor, const Start& start,
                  bool counts);
  void plan(const Newcomer& next, Supervisor& supervisor, const Start& start);
  std::chrono::milliseconds delay_after(int before) const;
  Place& place_of(const Newcomer& newcomer) { return places_.at(static_cast<std::size_t>(newcomer.place)); }

  Options options_;
  RankNotes notes_;
  std::vector<Newcomer> newcomers_{};  // in the order of their start
  std::vector<Place> places_;
  int planned_ = 0, pending_ = 0;
};

}  // namespace phalanx
