// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/backends/gloo/group.h"

namespace phalanx::gloo {

/// Lets the remaining ranks of a group agree on who is left, and returns the connections of the group that they form;
/// implements Communicator::shrink(). Breaks the group, so that peers that wait for this rank find out.
///
/// The ranks connect their Control, and exchange the messages of membership::Agreement. A rank counts as ended if it
/// refuses connections there, or if the launcher says so (host_lease.h). Ranks that are silent count as lost after the
/// group's timeout; then the others go on if they are a quorum. When they have agreed, they tell each other their new
/// addresses over the same connections, so no store is needed, and connect. If one of them is lost before all are
/// connected, they agree again on the next view.
///
/// Throws a CommError::kPeerLost if the others have gone on without this rank, if too few answer, or if this rank has
/// called it for this group before, even if the first call has failed: what a rank has promised the others in the
/// agreement on a view holds for ever. A rank that sends what cannot be read is a CommError::kSystem, which names it.
std::shared_ptr<Transport> connect_survivors(Group& group);

}  // namespace phalanx::gloo
