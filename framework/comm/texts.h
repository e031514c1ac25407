// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/communicator.h"

/// Exchange of texts among the ranks of a group, which may differ in length. Collective and blocking. Each function
/// consists of two collectives, one for the lengths and one for the characters, and throws their errors.
namespace phalanx {

/// Returns the text of rank `source` on all ranks. The texts of the other ranks are ignored.
std::string broadcast_text(std::string_view text, Communicator& group, int source = 0);

/// Returns the texts of all ranks, in rank order.
std::vector<std::string> all_gather_text(const std::string& mine, Communicator& group);

/// Returns the texts of all ranks on rank 0, and nothing on the other ranks.
std::vector<std::string> gather_text(const std::string& mine, Communicator& group);

}  // namespace phalanx
