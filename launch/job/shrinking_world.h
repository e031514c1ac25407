// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "launch/failure/record_exception.h"
#include "launch/job/world.h"

namespace phalanx {

/// The world of a job that goes on without the ranks that it loses (faults.on_lost_rank: shrink). Belongs to one rank.
class ShrinkingWorld {
 public:
  struct Rank {
    int number_in_job = 0;
    bool thread = false;       // it is a thread of the process of all ranks
    std::string log_folder{};  // of the run
  };

  /// `connections` are those of all ranks of the job. Throws ConfigError if there is more than one: the ranks that are
  /// left could not agree about the others, or if these ranks cannot agree on who is left (why_no_shrink()).
  ShrinkingWorld(Connections connections, Rank rank, const ExperimentConfig& config);

  /// Returns the connections of the ranks that there are now.
  const Connections& connections() const { return connections_; }
  Communicator& world() const { return *connections_.front().group; }

  /// Returns the config of the job for these ranks.
  const ExperimentConfig& config() const { return config_; }

  /// Replaces the world by one of the ranks that are left, after an error of kind CommError::kPeerLost, and survives
  /// further losses meanwhile. The first of them tells the person who was lost and why, and takes over the console.
  /// Everything else that uses the world before must have been destroyed. Adds the lost ranks to `recovery`. Collective
  /// among the ranks that are left. Returns false, on all of them, if none is lost. Throws CommError if the others have
  /// gone on without this rank; it is not secondary(), so this rank counts as lost.
  ///
  /// If replicas consist of several ranks (section mesh of the config), a replica that has lost one is lost as a whole:
  /// its other ranks count as lost, too, and leave the world. For them, leaves() is true after that, and they have to
  /// end without an error. Throws Error if no replica is whole.
  [[nodiscard]] bool shrink(Recovery& recovery);

  /// Returns true if this rank has left the world in shrink(). There are no connections any more.
  bool leaves() const { return leaves_; }

 private:
  void replace_group();
  std::int64_t ranks_per_replica() const;
  void leave();
  std::vector<Stranded> take_over(Recovery& recovery);
  std::string tell(const std::vector<int>& lost, const std::vector<Stranded>& stranded,
                   const std::vector<LostRank>& before) const;
  std::string reason_of(int lost) const;

  Connections connections_;
  Rank rank_;
  ExperimentConfig config_;
  int started_;               // ranks with which the job began
  std::vector<int> members_;  // the numbers in the job of the ranks of the last world in which all replicas were whole
  bool leaves_ = false;
};

/// Adds the hook that tells the person on rank 0, once training goes on, how long this has taken, and completes the
/// entries of Recovery::lost. `recovery` and `world` must outlive the engine's training.
void tell_when_it_goes_on(Recovery& recovery, const Communicator& world, Engine& engine);

/// Returns the error of a run that was saved after step `step` with `left` ranks.
TooFewRanks too_few_ranks(const Recovery& recovery, int left, const ExperimentConfig& config, std::int64_t step);

}  // namespace phalanx
