// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "launch/job/invitations.h"
#include "launch/job/lost_servers.h"
#include "launch/job/world.h"
#include "launch/local/meeting_folder.h"

namespace phalanx {

/// The world of a job that goes on without the ranks that it loses, and takes in newcomers in their places
/// (faults.on_lost_rank: shrink or replace). Belongs to one rank.
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

  /// Creates the world of a newcomer: waits until the others let it take part, connects to them, and fills `recovery`
  /// with the history of the job and nothing_carried(). `rank.number_in_job` is that of the newcomer. Returns nothing
  /// if `stopped` returns true meanwhile. Throws Error if the others go on without it, and CommError.
  static std::optional<ShrinkingWorld> join(const Newcomer& self, const Rank& rank, const ExperimentConfig& config,
                                            const LaunchEnvironment& launched, Recovery& recovery,
                                            const std::function<bool()>& stopped);

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
  ///
  /// If some ranks are parameter servers (roles.server), they are part of the world like the others. If only such ranks
  /// are left, they leave. Throws Error if a part of the parameters is lost with all servers that had it. Until
  /// training has gone on after a loss, these are servers of the world before it.
  [[nodiscard]] bool shrink(Recovery& recovery);

  /// Returns true if this rank has left the world in shrink(). There are no connections any more.
  bool leaves() const { return leaves_; }

  /// Returns false once a newcomer takes part whose processor is of another kind than that of the others.
  bool same_processors() const { return same_processors_; }

  /// Replaces the world by one to which newcomers have been added that wait in the meeting folder, as many as are whole
  /// replicas. If some of them do not connect within 10 s, or a rank is lost meanwhile, the world stays as it is.
  /// Collective after NewcomersWait; the same holds for what uses the world before. Adds the newcomers to `recovery`.
  /// Throws CommError of kind kPeerLost if a rank is lost; shrink() has to follow.
  void grow(const LaunchEnvironment& launched, Recovery& recovery);

  /// Returns true if newcomers for at least a whole replica wait. Cheap enough to be called in each step: it looks into
  /// the meeting folder every 50 ms at most, and remembers what it saw until then, or until grow(). If the meeting
  /// folder cannot be used, as on a full disk, here or in grow(), the first rank tells the person once, and nobody is
  /// invited for a minute.
  bool newcomers_wait() { return invitations_.newcomers_wait(ranks()); }

  /// Blocks while these ranks are fewer than faults.min_ranks, up to faults.wait seconds since they are, of which the
  /// person is told once. Returns true as soon as enough newcomers wait; grow() has to follow. Returns false if there
  /// are enough ranks, if the time is over, if `stopped` returns true on a rank, or if nobody replaces lost ranks.
  /// Collective. Throws CommError of kind kPeerLost if a rank is lost; shrink() has to follow.
  [[nodiscard]] bool await_newcomers(const std::function<bool()>& stopped);

 private:
  void replace_group();
  void fit_config();
  void use_members_of(const Attempt& attempt);
  void share_history(bool joins, Recovery& recovery);
  Invitations::Ranks ranks() const;
  void leave(const std::string& reason);
  void note_centre(const Recovery& recovery);
  std::vector<int> ranks_with_centre() const;
  void require_servers(const std::vector<int>& left) const;
  std::vector<Stranded> take_over(Recovery& recovery);
  void share_losses(std::vector<int> left, const std::vector<Stranded>& stranded, std::vector<LostRank>& losses) const;

  Connections connections_;
  Rank rank_;
  ExperimentConfig config_;
  int started_;                // ranks with which the job began
  std::vector<int> everyone_;  // the numbers of all ranks that have ever taken part, ascending
  std::vector<int> members_;   // the numbers in the job of the ranks of the last world in which all replicas were whole
  Invitations invitations_;
  std::optional<std::chrono::steady_clock::time_point> waits_until_{};  // set while there are too few ranks
  ServingRanks serving_;

  // The parameters that servers keep (LeftCentre), as far as this rank knows: their order, and, if they are on the
  // servers of a world, the ranks of that world.
  struct Centre {
    std::int64_t order = -1;
    std::vector<int> ranks{};
  };
  Centre centre_{};
  bool leaves_ = false;
  bool same_processors_ = true;
};

}  // namespace phalanx
