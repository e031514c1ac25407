// SPDX-License-Identifier: Apache-2.0
#include "launch/job/lost_servers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "framework/base/text.h"

namespace phalanx {

int ServingRanks::count(const std::vector<int>& ranks) const {
  return static_cast<int>(std::ranges::count_if(ranks, [this](int rank) { return serves(rank); }));
}

std::string lost_parts(const std::vector<int>& before, const std::vector<int>& left, const ServingRanks& serving) {
  std::vector<int> servers;
  std::ranges::copy_if(before, std::back_inserter(servers), [&](int rank) { return serving.serves(rank); });
  const std::size_t copies = std::min(static_cast<std::size_t>(serving.replicas), servers.size());
  const auto is_lost = [&](std::size_t server) { return !std::ranges::binary_search(left, servers[server]); };
  for (std::size_t part = 0; part < servers.size(); ++part) {
    std::vector<std::string> lost;
    for (std::size_t i = 0; i < copies && is_lost((part + i) % servers.size()); ++i) {
      lost.push_back(std::to_string(servers[(part + i) % servers.size()]));
    }
    if (lost.size() < copies) continue;
    const std::string remedy = copies > 1 || serving.replicas > 1
                                   ? "launch.restarts, to start such a job again from a checkpoint"
                                   : "roles.replicas: 2 with roles.server: 2 or more, to go on without a server, or "
                                     "launch.restarts";
    return (lost.size() == 1 ? "Rank " : "Ranks ") + join(lost, " and ") +
           (lost.size() == 1 ? ", a parameter server, is lost" : ", parameter servers, are lost") +
           ", and no other server has the same part of the parameters; set " + remedy;
  }
  return "";
}

}  // namespace phalanx
