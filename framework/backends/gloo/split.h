// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/group.h"

namespace phalanx::gloo {

/// Returns the ranks of `parent` that have this rank's color, in their new order; empty for a negative color.
/// Collective.
std::vector<int> members_of_color(Group& parent, int color, int key);

/// Returns an Exchange between the members of a new group, which are ranks of `parent` in their new order. It uses the
/// connections of the parent. Collective over the parent: if `members` is empty, this rank only takes part. Texts of
/// more than 128 bytes are refused.
Exchange exchange_through(Group& parent, const std::vector<int>& members);

/// Throws Lost if one of these members of the parent is gone.
void throw_if_lost(Group& parent, const std::vector<int>& members);

}  // namespace phalanx::gloo
