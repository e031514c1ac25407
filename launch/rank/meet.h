// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {

/// Returns the store through which the ranks find each other: at the address that their launcher gives, or else at rank
/// 0's host, whose address MPI broadcasts. `interface` is what the user has set (wanted_interface()). Collective.
/// Throws ConfigError if the launcher says nothing and the ranks were not started for MPI, and what rendezvous() and
/// rendezvous_by_broadcast() throw.
Rendezvous meet(const LaunchEnvironment& launched, const std::string& interface, Seconds timeout);

/// Makes the rest of this process, Open MPI and NCCL use the interface that the user has set (PHALANX_INTERFACE),
/// unless the libraries' own variables are set. Changes the environment, so no other thread may read it at the same
/// time. Throws ConfigError if this host has no such interface.
void use_interface(const std::string& interface);

}  // namespace phalanx
