// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace phalanx {

/// Returns the time since this host has booted. Unlike CLOCK_MONOTONIC, it goes on while the host is suspended.
std::chrono::nanoseconds boot_time();

/// The permission of the ranks of a host to act as members of the job, which the launcher's agent there renews: it says
/// until when they may act, and which ranks of other hosts have certainly ended. It lies in memory that the agent
/// shares with the processes that it forks afterwards. The agent writes it; ranks read it. Thread-safe.
///
/// The launcher goes on without a host that is silent once the lease there is over for certain. So a rank must not
/// change what the ranks share, such as the run folder, and must not agree with others on anything, without a lease.
class HostLease {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;

  /// Makes the lease of the ranks of a job with `ranks` ranks, which holds until `until`. Throws Error if there is no
  /// memory.
  HostLease(int ranks, std::chrono::nanoseconds until, Clock clock = boot_time);
  ~HostLease();
  HostLease(const HostLease&) = delete;
  HostLease& operator=(const HostLease&) = delete;

  /// Sets the time, by the clock, until which the lease holds.
  void set_end(std::chrono::nanoseconds until);
  bool holds() const;

  /// Notes that a rank of the job has ended, or will never act again because its lease is over. Other numbers than
  /// those of the job are ignored.
  void declare_ended(int rank);
  bool has_ended(int rank) const;

 private:
  struct Page;
  int ranks_;
  Clock clock_;
  Page* page_;
};

/// Makes a lease that of this process, or with null, removes it. Not thread-safe: call it before there are other
/// threads.
void set_lease_of_process(std::shared_ptr<HostLease> lease);

/// Returns true if this process knows from its agent that a rank of the job has ended for certain.
bool is_known_to_have_ended(int rank);

/// Returns true if the lease of this process is over. Without one, it never is.
bool lease_is_over();

/// Ends this process by SIGKILL if its lease is over, so that it writes nothing more. Does nothing without a lease. It
/// is cheap enough for every wait that lasts some milliseconds.
void end_without_lease();

}  // namespace phalanx
