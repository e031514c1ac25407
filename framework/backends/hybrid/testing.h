// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// What one rank of a test does: `world` is hybrid, `flat` are the same ranks without hosts.
using HybridBody = std::function<void(const CommunicatorPtr& world, const CommunicatorPtr& flat)>;

/// Runs `body` on a thread for each letter of `hosts`, which names the host that the rank is on: "aabb" are four ranks
/// on two hosts. Both backends are inproc: two worlds, as shm and gloo would be. An exception in a body fails the test.
void run_hybrid(const std::string& hosts, const HybridBody& body);

}  // namespace phalanx::testing
