#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Why a rank ended, left in the run's log folder for whoever reports it.
struct Failure {
  int rank = 0;
  std::string host{};
  std::string log{};       // path of the rank's log file; empty: it has none
  std::string message{};   // may have several lines
  bool secondary = false;  // the echo of another rank's failure: a peer was lost
  double time = 0;         // seconds since the epoch
};

/// Now, as Failure::time has it.
double failure_time();

/// Leaves `failure` in `folder` as rank<r>.failure, in place of an earlier one. A reader never sees half of it. Never
/// throws: it runs while something else is being reported, so a folder that cannot be written gets a line on stderr.
void leave_failure(const std::string& folder, const Failure& failure) noexcept;

/// All failures left in `folder`; the first cause first: primary before secondary, then by time. One that cannot be
/// read is still a failure of that rank, with a message that says so; one that another process takes meanwhile is not
/// there. A folder that is not there has none.
std::vector<Failure> read_failures(const std::string& folder);

/// The same, and removes them.
std::vector<Failure> take_failures(const std::string& folder);

/// Whether this process is to report the job's failure: true for the first that asks in `folder` since
/// forget_failures(). For ranks that nobody watches; the note of it stays.
bool claim_report(const std::string& folder);

/// Removes what an earlier job in `folder` has left.
void forget_failures(const std::string& folder);

/// Whether `a` is the likelier cause of `b` than the other way round: the order of take_failures().
bool more_original(const Failure& a, const Failure& b);

}  // namespace phalanx
