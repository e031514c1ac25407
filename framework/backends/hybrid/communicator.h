// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/collectives/hierarchical/hierarchical_communicator.h"

namespace phalanx::hybrid {

/// A communicator that connects all ranks by one backend, and the ranks of each host by a faster one as well.
/// broadcast, all_reduce, reduce_scatter and all_gather work by hosts; all other operations use the backend of all
/// ranks.
///
/// A group that is split from it is hybrid, too. If it lies on one host, its collectives use the faster backend
/// (HostCommunicator).
///
/// The two backends do not make progress for each other. If messages (send, recv) move only while a rank waits for MPI,
/// the messages of a rank stop while it is in a collective inside its host. So a rank that such a collective waits for
/// must not wait for these messages before it joins the collective.
///
/// Hosts may be grouped by further keys, such as racks: then the links between hosts are hierarchical, and so are those
/// of groups that are split from the communicator.
class HybridCommunicator final : public HierarchicalCommunicator {
 public:
  /// `above` are the keys of the levels above hosts, coarsest first. Collective and blocking if there are any.
  HybridCommunicator(Level hosts, std::vector<Key> above);

  CommunicatorPtr split(int color, int key) override;

  /// Works as survivors.h says. If each rank that is left is on another host, or all of them on one, the group is no
  /// hybrid one any more, as with split().
  CommunicatorPtr do_shrink() override;
  std::string why_no_shrink() const override;

 private:
  CommunicatorPtr combine(CommunicatorPtr all, CommunicatorPtr host) const;

  std::vector<Key> above_;
};

}  // namespace phalanx::hybrid
