// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/run_state.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The shares of a checkpoint that one rank has in memory: its own, and those of ranks whose neighbour it is. The
/// shares of all ranks together are a checkpoint.
struct Copy {
  std::int64_t number = 0;  // of this copy among all copies of a job; the same on all ranks
  Manifest manifest{};      // position, ranks, optimizer updates, and the last evaluation; other fields are empty
  std::map<int, std::shared_ptr<Snapshot>> shares{};  // by the rank that took it, of manifest.ranks ranks
  std::chrono::steady_clock::time_point taken{};      // by this rank
};

/// The copies that a rank has received completely, newest first: two, or one at the beginning of a run.
using KeptCopies = std::vector<Copy>;

/// Returns the neighbour of each rank, which keeps its copies: a rank of the next host, or the next rank if all ranks
/// are on one host. `hosts`: the host of each rank. With equal numbers of ranks on all hosts, each rank is the
/// neighbour of one other. If replicas consist of several consecutive ranks, which are lost together, the same holds of
/// replicas, and a rank's neighbour is the one in its place of the next replica; if these two share a host, of a
/// replica that shares none, if there is one. In a single replica, each rank is its own neighbour.
std::vector<int> neighbours_of(const std::vector<std::string>& hosts, int ranks_per_replica = 1);

/// Copies the state that belongs to each rank into the memory of its neighbour, while training continues. In a single
/// replica, each rank keeps its own share only, which is of use for ranks that are about to join.
///
/// take() copies this rank's share of a checkpoint, launches the messages that bring it to the neighbour, and returns.
/// The messages move while the ranks wait for each other in the steps that follow. Each take() begins with the end of
/// the messages of the copy before, and tells the other ranks of it; when all have said so, that copy is valid, and the
/// one before it is dropped. So at any time all ranks have all shares of at least one copy.
///
/// take() and arrive() are collective, and all calls must come from one thread. They throw CommError.
class Copies {
 public:
  /// `state` and `kept` must outlive this object. `kept` may have copies of an earlier world of the job, with other
  /// numbers of ranks; they are dropped like any others. `ranks_per_replica` is as in neighbours_of(). Collective.
  Copies(CommunicatorPtr world, const RunState& state, KeptCopies& kept, int ranks_per_replica = 1);

  /// Copies this rank's share. `manifest` has the fields named in Copy, except for `ranks`, and is the same on all
  /// ranks. `replicas_equal` is as in take_snapshot().
  void take(Manifest manifest, bool replicas_equal);

  /// Blocks until the messages of the last copy have arrived on this rank.
  void arrive();

  /// Does the same after a peer was lost. A copy whose messages do not arrive any more is dropped. Does not throw.
  void keep_what_arrives();

 private:
  std::shared_ptr<Snapshot> memory_for(int owner);
  void drop_older_copies();

  CommunicatorPtr world_, messages_;
  const RunState& state_;
  WritePlan plan_;
  KeptCopies& kept_;
  int neighbour_ = 0;                               // which keeps this rank's share
  std::vector<int> owners_;                         // of the shares that this rank keeps for others
  std::optional<Copy> next_;                        // its messages have been launched
  std::vector<Work> works_;                         // of next_
  std::map<int, std::shared_ptr<Snapshot>> spare_;  // memory of dropped shares, by owner
};

/// Restores `state` on the ranks that are left, from the newest copy of which they have all shares together, and drops
/// all other copies. Shares that a single rank had are kept by all of them from then on, so the loss of another rank
/// can be survived before the next copy is valid. Each rank needs the memory of a whole checkpoint meanwhile.
///
/// Returns the copy, which is in `kept`. Returns null, on all ranks, if they have all shares of no copy, since a rank
/// and its neighbour were lost; then nothing changes. Collective among the ranks that are left. Throws DataError and
/// CommError.
const Copy* restore_copy(KeptCopies& kept, RunState& state, Communicator& world);

}  // namespace phalanx
