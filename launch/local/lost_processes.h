// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/failure/failure.h"
#include "launch/failure/verdict.h"
#include "launch/local/child_ranks.h"
#include "launch/local/launch_local.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// Returns true if the others go on without a rank that has ended with this status and left this failure.
bool is_loss(const LocalLaunch& options, int rank, int status, const std::optional<Failure>& failure);

/// The processes of this host without which the others go on, as far as the launcher can tell, and their part in the
/// outcome of the job. Tells the ranks why a process is lost by the failures in the log folder. Not thread-safe.
class LostProcesses {
 public:
  /// The arguments must outlive the object.
  LostProcesses(const LocalLaunch& options, const ChildRanks& children) : options_(options), children_(children) {}

  /// Returns true if add() has found that this rank is lost, or add_newcomer() was called for it.
  bool has(int rank) const;

  /// Notes that a process has failed that was not a rank yet, and tells the person why.
  void add_newcomer(const Supervisor::End& end);

  /// Returns true if the others go on without a process that has failed, and then makes sure that there is a reason,
  /// which they tell.
  bool add(const Supervisor::End& end);

  /// Makes sure that there is a failure of each rank that has ended the job. Returns the status of the first cause
  /// among the ranks that are not lost, or their most serious one; kDone: all are lost.
  int conclude(const std::vector<Supervisor::End>& ends) const;

  /// Removes the ends of ranks that the others have noted as lost, and the failures that these ends explain as well. A
  /// rank that has ended the job counts, even if the others have noted it as lost meanwhile.
  void settle(std::vector<RankEnd>& ends, std::vector<Failure>& failures) const;

 private:
  bool has_ended_job(int rank) const;

  // Removes the ends of ranks whose loss the others have not noticed, if all others have ended well: they needed
  // nothing more from these ranks. A rank that has given a reason may have failed at something that others do not do.
  void leave_out_unneeded(std::vector<RankEnd>& ends) const;

  void describe(const Supervisor::End& end, const std::string& message) const;

  const LocalLaunch& options_;
  const ChildRanks& children_;
  std::vector<int> lost_{};        // ranks without which the others go on
  std::vector<int> described_{};   // lost ranks whose failures this process has written
  std::vector<Failure> ending_{};  // of ranks that have ended the job
};

}  // namespace phalanx
