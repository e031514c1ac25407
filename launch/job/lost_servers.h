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

/// Returns what to tell a person if the values of some part are lost with the servers that had them; otherwise returns
/// an empty string. Server i of S had part i, and so had the servers that follow it, `serving.replicas` or S in all.
/// `before`: the ranks of the world with these servers; `left`: those of them that are left. Both are ascending.
std::string lost_parts(const std::vector<int>& before, const std::vector<int>& left, const ServingRanks& serving);

}  // namespace phalanx
