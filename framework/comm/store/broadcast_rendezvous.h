// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {

/// Sends the text of rank 0 to all ranks and returns it. Collective; the texts of other ranks are ignored.
using Broadcast = std::function<std::string(const std::string& text)>;

/// Connects ranks that can broadcast a text, as MPI's ranks can, but have no store. Rank 0 hosts a store at a free port
/// and broadcasts its addresses, of which each rank uses the first that it reaches. The store admits only ranks with
/// the job's secret (job_secret()), or else with a new secret, which is broadcast too. It listens at the address of
/// `interface` if that is not empty (AddressWish), otherwise at all addresses of the host.
///
/// Collective. Throws the same error on all ranks if rank 0 cannot listen, and a CommError::kTimeout that lists the
/// addresses which were tried if this rank does not reach any.
Rendezvous rendezvous_by_broadcast(const RankInfo& rank_info, const Broadcast& broadcast, const std::string& interface,
                                   Seconds timeout);

}  // namespace phalanx
