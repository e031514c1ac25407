// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/sync/replica_groups.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Whether replicas that are to be equal are, bit for bit: a digest of every parameter, compared between the ranks that
/// have the same ones. Bytes on the wire: 8 for each parameter and rank.
class ReplicaCheck {
 public:
  /// `repair`: give diverged parameters the values that most ranks have, those of rank 0 where none are more, and log
  /// it. `every_steps`: for after_step(); 0: never.
  ReplicaCheck(std::vector<ReplicaGroup> groups, bool repair, std::int64_t every_steps = 0);

  /// Checks after every so many steps; where replicas are not to be equal then, after the next step at which they are.
  void after_step(std::int64_t step, bool to_be_equal);

  /// After training, when all replicas are equal: the check that was still to come.
  void at_end(std::int64_t step);

  /// Whether one is to come, for checkpoints.
  bool due() const { return due_; }
  void set_due(bool due) { due_ = due; }

  /// Throws Error naming the step, the first parameter that differs and the ranks where it does, on all ranks alike,
  /// unless it repairs. Collective.
  void check(std::int64_t step);

 private:
  struct Divergence {
    std::string parameter;
    at::Tensor values;
    std::vector<int> ranks;  // that differ from most
    int source;              // the lowest that does not
    Communicator* group;     // of these ranks
  };

  static std::vector<std::vector<std::int64_t>> all_digests(const ReplicaGroup& group);
  static void find(const ReplicaGroup& group, std::vector<Divergence>& found);

  std::vector<ReplicaGroup> groups_;
  bool repair_;
  std::int64_t every_steps_;
  bool due_ = false;
};

}  // namespace phalanx
