// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// Fails unless the collectives of `tested` and `flat` give bitwise the same results. Both have the same ranks in the
/// same order. Covers all dtypes and reductions, even and uneven parts, in-place and out-of-place operations, and sizes
/// from zero to several pieces. Collective.
void expect_same_collectives(Communicator& flat, Communicator& tested);

}  // namespace phalanx::testing
