// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/collectives/hierarchical/communicator.h"

namespace phalanx::hybrid {

/// All ranks by one backend, those of each host by a faster one too: broadcast, all_reduce, reduce_scatter and
/// all_gather go by hosts, everything else by the backend of all ranks.
///
/// A group that is split from it is hybrid in turn; or, where it is on one host, its collectives are the faster
/// backend's (HostCommunicator).
///
/// The two backends do not drive each other. Where messages (send, recv) move only while somebody waits for MPI, those
/// of a rank rest while it is inside its host with a collective: a rank that such a collective waits for must not
/// itself wait for these messages before it joins.
class HybridCommunicator final : public HierarchicalCommunicator {
 public:
  explicit HybridCommunicator(Level hosts);

  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr shrink() override { refuse_shrink("hybrid"); }
};

}  // namespace phalanx::hybrid
