#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The texts of all ranks, of any lengths, in rank order. Collective.
std::vector<std::string> all_gather_text(const std::string& mine, Communicator& group);

/// The same on rank 0; nothing elsewhere. Collective.
std::vector<std::string> gather_text(const std::string& mine, Communicator& group);

}  // namespace phalanx
