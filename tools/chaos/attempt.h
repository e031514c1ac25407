// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/regress/places/process.h"

namespace phalanx::chaos {

/// One process of an attempt: train, which starts the ranks, or a single rank of it.
struct Start {
  std::vector<std::string> command{};
  std::vector<std::pair<std::string, std::string>> variables{};  // set in its environment
};

/// An attempt to carry out a run: the processes that were started for it, from their start to their end. It notices
/// when the fault happens, which a file shows, and when the run says something after that. The processes are killed
/// when this object is destroyed.
class Attempt {
 public:
  using Clock = std::chrono::steady_clock;

  /// Standard output and error go to files in `folder`, which must exist. `note`: the path of the file whose creation
  /// shows that the fault has happened; empty: the fault happens at the start. Throws Error if a process cannot be
  /// started.
  Attempt(const std::vector<Start>& starts, const std::string& folder, std::string note);

  /// Looks at everything once. Returns true when all processes have ended.
  bool poll();

  /// Polls for `seconds`, or until all processes have ended.
  void wait(double seconds);

  /// Polls until the fault has happened. Returns false if the run ended, or `seconds` have passed, before.
  bool wait_for_fault(double seconds);

  /// Returns the exit status once all processes have ended: the first one that is not 0, or 0.
  int status() const;

  /// Sends a signal to the processes, or to their groups.
  void signal(int number);
  void signal_groups(int number);

  bool fault_has_happened() const { return noted_at_.has_value(); }

  /// Returns the time from the fault until the run said something on standard error; empty: it has not.
  std::optional<double> detected_seconds() const;

  /// Returns what the processes have written to standard error so far.
  std::string errors() const;

 private:
  std::uintmax_t written() const;

  std::string folder_, note_;
  std::vector<std::unique_ptr<regress::Process>> processes_;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> noted_at_{}, shown_at_{};
  std::uintmax_t written_before_ = 0;  // bytes on standard error when the fault happened
};

}  // namespace phalanx::chaos
