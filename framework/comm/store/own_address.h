// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// Returns the address of this host for the peers of this rank. If they are on several hosts, ranks tell each other
/// through the store what they know of their hosts (peer_network.h), so that all addresses belong to a common network.
/// `first_host` is the name or address at which this rank has reached rank 0's host, if it knows one
/// (Rendezvous::host), and `interface` what the user has set (wanted_interface()).
///
/// Collective. Throws ConfigError if no address fits, and what Store::get() throws.
OwnAddress find_own_address(Store& store, const RankInfo& rank_info, const std::string& first_host,
                            const std::string& interface);

}  // namespace phalanx
