// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/strategies/data_parallel_groups.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Checks that replicas that should be equal are, bit for bit. It computes a digest of every parameter and compares it
/// between the ranks that have the same parameters. Bytes on the wire: 8 for each parameter and rank.
class ReplicaCheck {
 public:
  /// With `repair`, diverged parameters get the values that most ranks have, or the values of rank 0 if there is a tie,
  /// and a warning is logged. `every_steps` is used by after_step(); 0 means never.
  ReplicaCheck(std::vector<DataParallelGroup> groups, bool repair, std::int64_t every_steps = 0);

  /// Checks after every `every_steps` steps. If replicas are not expected to be equal then, the check is done after the
  /// next step at which they are.
  void after_step(std::int64_t step, bool to_be_equal);

  /// Does the pending check, if any, after training, when all replicas are equal.
  void at_end(std::int64_t step);

  /// Returns true if a check is pending. Stored in checkpoints.
  bool due() const { return due_; }
  void set_due(bool due) { due_ = due; }

  /// Throws Error naming the step, the first parameter that differs and the ranks on which it does, on all ranks,
  /// unless the check repairs. Collective.
  void check(std::int64_t step);

 private:
  struct Divergence {
    std::string parameter;
    at::Tensor values;
    std::vector<int> ranks;  // the ranks that differ from the majority
    int source;              // the lowest rank of the majority
    Communicator* group;     // the group that these ranks belong to
  };

  static std::vector<std::vector<std::int64_t>> all_digests(const DataParallelGroup& group);
  static void find(const DataParallelGroup& group, std::vector<Divergence>& found);

  std::vector<DataParallelGroup> groups_;
  bool repair_;
  std::int64_t every_steps_;
  bool due_ = false;
};

}  // namespace phalanx
