// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/decorator.h"
#include "framework/comm/hierarchy.h"

namespace phalanx {

/// A communicator of which broadcast, all_reduce, reduce_scatter and all_gather go by groups: inside a group, and by
/// few and long messages between groups. The headers beside this one have the steps and bytes of each. Everything else
/// is the scope's.
///
/// allocate() gives memory that the groups move fastest. A reduction that does not commute goes by groups only where
/// they are runs of consecutive ranks, and is the scope's own otherwise: its order is kept in either case.
///
/// Where a group's communicator is hierarchical in turn, operations go by its groups too; see make_hierarchical().
class HierarchicalCommunicator : public Decorator {
 public:
  /// `level.intra` may be of another world than `level.scope`, but nobody else may launch on it. `keys` divide a group
  /// that is split from this one; the first is that of `level`.
  HierarchicalCommunicator(Level level, std::vector<Key> keys);

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU && Decorator::takes(device); }
  Work launch(Operation operation) override;
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  const Level& level() const { return shared_->level; }

  /// The same hierarchy of the ranks that are left of it.
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  struct Shared {  // with the operations, which may outlive this
    Level level;
    hierarchical::Scratch scratch;
  };

  bool goes_by_groups(const Operation& operation) const;

  std::shared_ptr<Shared> shared_;
  std::vector<Key> keys_;
};

/// Communicator over all ranks of a hierarchy that goes by all its levels. A level that is one group, or that has
/// groups of one rank alone, is left out; if none is left, this is the world itself.
CommunicatorPtr make_hierarchical(const Hierarchy& hierarchy);

}  // namespace phalanx
