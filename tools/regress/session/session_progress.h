// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/console.h"
#include "tools/history/records.h"

namespace phalanx::regress {

/// The end of a case, as people see it.
struct EndedCase {
  std::string name{};
  history::CaseState state = history::CaseState::kPassed;
  std::string reason{};
  double seconds = 0;
  std::string folder{};  // of its last run; empty: it has not run
};

/// Counts of the cases of a session.
struct Counts {
  std::size_t total = 0, ended = 0, failed = 0;
};

/// Returns the lines for a case that has ended: "[ 3/12] passed  quickstart-ranks=2  4.1 s". If it has failed, the
/// reason and its folder follow.
std::string ended_lines(const Counts& counts, const EndedCase& ended);

/// Returns the line of a terminal, at most `columns` wide: "3/12 ended, 1 failed, about 2:10 left; running: ...".
/// `seconds` have passed since the first case began, in which `measured` cases have ended; `running` has the running
/// cases, with the seconds since each began.
std::string status_line(const Counts& counts, std::size_t measured, double seconds,
                        const std::vector<std::pair<std::string, double>>& running, int columns);

/// Tells people how a session goes: a line for each case that ends and, on a terminal, a last line about the cases that
/// run.
class SessionProgress {
 public:
  /// `ended` of the cases had ended before this process began.
  SessionProgress(Console& console, std::size_t total, std::size_t ended);
  ~SessionProgress();
  SessionProgress(const SessionProgress&) = delete;
  SessionProgress& operator=(const SessionProgress&) = delete;

  void case_ended(const EndedCase& ended);

  /// Draws the line about the running cases if there is a terminal, a few times per second at most.
  void update(const std::vector<std::pair<std::string, double>>& running);

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& lines);

  Console& console_;
  Counts counts_;
  const std::size_t ended_before_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point drawn_at_{};
  bool drawn_ = false;
};

}  // namespace phalanx::regress
