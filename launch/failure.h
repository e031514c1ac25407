// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The environment variable by which a launcher names a folder of its own to the ranks on its host. A failure that
/// cannot be left in the log folder, as on a full disk, is left there.
constexpr const char* kSpareFailureFolder = "PHALANX_FAILURE_FOLDER";

/// Why a rank failed: left in the run's log folder for the process that reports it.
struct Failure {
  int rank = 0;
  std::string host{};
  std::string log{};       // path of the rank's log file; empty: it has none
  std::string message{};   // may have several lines
  bool secondary = false;  // a consequence of another rank's failure: a peer was lost
  double time = 0;         // seconds since the epoch
};

/// The current time, for Failure::time.
double failure_time();

/// Writes `failure` to `folder` as rank<r>.failure, atomically replacing an earlier one. If the folder cannot be
/// written, writes it to the one that kSpareFailureFolder names. Never throws, because it runs while another error is
/// being handled: if neither can be written, it prints a line to stderr.
void leave_failure(const std::string& folder, const Failure& failure) noexcept;

/// All failures left in `folder`; the first cause first: primary before secondary, then by time. One that cannot be
/// read is still a failure of that rank, with a message that says so; one that another process takes meanwhile is not
/// there. A folder that is not there has none.
std::vector<Failure> read_failures(const std::string& folder);

/// The same of `folder` and, unless it is empty, of the folder `spare`; and removes them.
std::vector<Failure> take_failures(const std::string& folder, const std::string& spare = "");

/// Whether this process should report the job's failure: true for the first process that asks in `folder` since
/// forget_failures(). For ranks without a supervising launcher; the marker file stays.
bool claim_report(const std::string& folder);

/// Removes what an earlier job left in `folder`.
void forget_failures(const std::string& folder);

/// Whether `a` is more likely to have caused `b` than the reverse: the order of take_failures().
bool more_original(const Failure& a, const Failure& b);

}  // namespace phalanx
