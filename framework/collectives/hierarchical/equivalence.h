// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// Fails unless the collectives of `tested` leave bitwise what those of `flat`, of the same ranks in the same order,
/// do: all dtypes and reductions, even and uneven parts, in place and not, from nothing to several pieces. Collective.
void expect_same_collectives(Communicator& flat, Communicator& tested);

}  // namespace phalanx::testing
