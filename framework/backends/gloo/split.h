// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/group.h"

namespace phalanx::gloo {

/// Ranks of `parent` with the color of this one, in their new order. Collective; empty for a negative color.
std::vector<int> members_of_color(Group& parent, int color, int key);

/// Exchange between the members of a new group, ranks of `parent` in their new order, by the parent's own connections.
/// Collective over the parent: where `members` is empty this rank only takes part.
Exchange exchange_through(Group& parent, const std::vector<int>& members);

}  // namespace phalanx::gloo
