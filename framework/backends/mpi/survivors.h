// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/group.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Lets the ranks of a group that have not ended form a new one; implements Communicator::shrink(). Needs ulfm().
///
///   1. Revokes the group, and all that were split from it, so that ranks that wait for this one in any of them find
///      out.
///   2. Begins an agreement, which is complete when all ranks that have not ended are here. Unlike step 3 it has a
///      deadline.
///   3. Has MPI agree on who has ended, and create the communicator of the others. A rank that ends meanwhile is left
///      out, or is in the new group, whose operations then fail; all ranks get the same group. MPI has no deadline for
///      this: a rank that is stopped meanwhile keeps all others waiting until it continues or ends.
///   4. Agrees in the new group that all of its living ranks have it: see await_living_ranks().
///
/// MPI can leave out only ranks that have ended. If another rank does not come within the group's timeout, all get
/// CommError::kTimeout, and the job cannot go on. Throws kPeerLost if the group has been shrunk before. `sequence` is
/// the number of the call, for messages.
std::shared_ptr<Group> form_survivors(Group& group, std::uint64_t sequence);

/// Blocks until all ranks of a group that have not ended have called this. A communicator that was just created must
/// not be revoked before: Open MPI 5.0 crashes if it is told so while it still creates it. Needs ulfm(). Throws
/// CommError::kTimeout after the group's timeout. `where` begins the message.
void await_living_ranks(const Group& group, const std::string& where);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
