// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx::testing {

/// The body of one rank in a test. `world` is hybrid; `flat` has the same ranks without hosts.
using HybridBody = std::function<void(const CommunicatorPtr& world, const CommunicatorPtr& flat)>;

/// Runs `body` in one thread for each letter of `hosts`, which names the host of that rank: "aabb" means four ranks on
/// two hosts. Both backends are inproc, in two separate worlds, just as shm and gloo would be. An exception in a body
/// fails the test.
///
/// `levels` returns the levels of a rank (ConnectOptions).
void run_hybrid(
    const std::string& hosts, const HybridBody& body,
    const std::function<std::vector<Key>(int rank)>& levels = [](int) { return std::vector<Key>(); });

}  // namespace phalanx::testing
