// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace phalanx {

/// The ranks of a job that are parameter servers (roles.server), by their numbers in the job.
struct ServingRanks {
  int first = std::numeric_limits<int>::max();  // and all ranks after it
  int replicas = 1;                             // roles.replicas

  bool serves(int rank) const { return rank >= first; }
  int count(const std::vector<int>& ranks) const;
};

/// Returns a message for the user if all servers that had some part are lost; otherwise returns an empty string. Part i
/// is on server i and on those that follow it, on `serving.replicas` servers in all, or on every one if there are
/// fewer. `before`: the ranks of the world with these servers, which may be an earlier one than the last; `left`: the
/// ranks that are left. Both are ascending.
std::string lost_parts(const std::vector<int>& before, const std::vector<int>& left, const ServingRanks& serving);

}  // namespace phalanx
