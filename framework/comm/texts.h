// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

/// Texts among the ranks of a group, of any lengths on each. Collective; they block, and throw what the two collectives
/// throw of which each is made: one of the lengths, one of the letters.
namespace phalanx {

/// Rank 0's text on all ranks; the others' own are not looked at.
std::string broadcast_text(const std::string& text, Communicator& group);

/// The texts of all ranks, in rank order.
std::vector<std::string> all_gather_text(const std::string& mine, Communicator& group);

/// The same on rank 0; nothing elsewhere.
std::vector<std::string> gather_text(const std::string& mine, Communicator& group);

}  // namespace phalanx
