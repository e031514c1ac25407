// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/decorator.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx {

/// A communicator whose broadcast, all_reduce, reduce_scatter and all_gather work by groups: they communicate inside
/// the groups, and send few and long messages between them. collectives.h describes the steps and bytes of each. All
/// other operations are passed on to the scope.
///
/// allocate() returns the memory that the groups move fastest. A reduction that does not commute works by groups only
/// if they are runs of consecutive ranks, and otherwise runs on the scope. Its order is kept in both cases.
///
/// If the communicator of a group is itself hierarchical, operations also use its groups; see make_hierarchical().
class HierarchicalCommunicator : public Decorator {
 public:
  /// `level.intra` may belong to another world than `level.scope`, but no one else may launch operations on it. `keys`
  /// divide a group that is split from this one; the first key is the key of `level`.
  HierarchicalCommunicator(Level level, std::vector<Key> keys);

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU && Decorator::takes(device); }
  Work launch(Operation operation) override;
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  const Level& level() const { return shared_->level; }

  /// Returns the same hierarchy, restricted to the ranks of `child`.
  CommunicatorPtr wrap(CommunicatorPtr child) override;

  /// Leaves the groups between the groups, once all operations that were launched have ended, so that their other ranks
  /// do not wait for this one. Operations by groups fail from then on, with CommError::kPeerLost.
  void leave_links();

 private:
  struct Shared {  // shared with the operations, which may outlive the communicator
    Level level;
    hierarchical::Scratch scratch;
    bool has_links = true;  // false after leave_links()
  };

  bool goes_by_groups(const Operation& operation) const;

  std::shared_ptr<Shared> shared_;
  std::vector<Key> keys_;
};

/// Returns a communicator of all ranks that uses all levels of the hierarchy. A level is skipped if it is a single
/// group, or if all its groups have one rank. If no level remains, returns the world itself.
CommunicatorPtr make_hierarchical(const Hierarchy& hierarchy);

/// Returns a communicator of all ranks that uses the levels of these keys, coarsest first; without keys, the world.
/// Collective and blocking if there are keys.
CommunicatorPtr divide(CommunicatorPtr world, const std::vector<Key>& keys);

}  // namespace phalanx
