// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The environment variable with which a launcher gives the ranks on its host a spare folder for failures, used if the
/// log folder cannot be written, for example because the disk is full.
constexpr const char* kSpareFailureFolder = "PHALANX_FAILURE_FOLDER";

/// The reason why a rank failed. The rank writes it to the run's log folder for the process that reports it.
struct Failure {
  int rank = 0;
  std::string host{};
  std::string log{};       // path of the rank's log file; empty without a log
  std::string message{};   // may have several lines
  bool secondary = false;  // a consequence of another rank's failure: a peer was lost
  double time = 0;         // seconds since the epoch
  int status = 0;          // the rank's ExitStatus; 0: unknown

  /// It does not count against the host (launch.exclude_after): a launcher that was stalled ends the leases of all
  /// hosts.
  bool spares_host = false;
};

/// Returns the current time, for Failure::time.
double failure_time();

/// Writes `failure` to `folder` as rank<r>.failure, atomically replacing an earlier one. If the folder cannot be
/// written, uses the folder that kSpareFailureFolder names. Never throws, because it is called while another error is
/// being handled: if both folders fail, it prints a line to stderr.
void write_failure(const std::string& folder, const Failure& failure) noexcept;

/// Returns all failures in `folder`, the most likely first cause first: primary ones before secondary ones, then
/// by time. A file that cannot be read gives a failure of its rank with a message that says so. A file that another
/// process removes during the call is skipped. A missing folder has no failures.
std::vector<Failure> read_failures(const std::string& folder);

/// Returns the failures of `folder` and, unless it is empty, of the folder `spare`, in the same order, and removes
/// them.
std::vector<Failure> take_failures(const std::string& folder, const std::string& spare = "");

/// Notes in `folder` that the job has gone on without a rank that it has lost, and removes the failure of this rank.
/// Never throws: at worst, the launcher takes the loss for the cause of a later failure.
void mark_lost(const std::string& folder, const Failure& failure) noexcept;

/// Notes in `folder` that training has begun: from now on, the job can go on without a rank that it loses. Never
/// throws: at worst, the next loss ends the job.
void note_training(const std::string& folder) noexcept;

/// Returns true if note_training() has been called for `folder`.
bool training_has_begun(const std::string& folder);

/// Returns the ranks that mark_lost() has noted in `folder`, ascending, and the same after removing these notes and
/// that of note_training().
std::vector<int> lost_ranks(const std::string& folder);
std::vector<int> take_lost_ranks(const std::string& folder);

/// Returns what mark_lost() has noted in `folder`.
std::vector<Failure> lost_notes(const std::string& folder);

/// Returns true if this process should report the job's failure, i.e. if it is the first one to ask in `folder` since
/// remove_failures(). For ranks without a supervising launcher. The marker file stays.
bool claim_report(const std::string& folder);

/// Removes the failures and the marker of an earlier job in `folder`.
void remove_failures(const std::string& folder);

/// Returns the path of the stack trace that a rank leaves if it crashes (crash_trace.h).
std::string crash_path(const std::string& folder, int rank);

/// Returns the functions of that trace whose names are known, innermost first. Empty if there is no trace.
std::vector<std::string> crash_frames(const std::string& folder, int rank);

/// Returns true if `a` is more likely to have caused `b` than the reverse. This is the order of take_failures().
bool is_more_likely_cause(const Failure& a, const Failure& b);

}  // namespace phalanx
