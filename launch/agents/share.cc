// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/share.h"

#include <stdlib.h>

#include <algorithm>
#include <sstream>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch/host_slots.h"

namespace phalanx {

std::vector<HostShare> divide_among_hosts(const std::vector<std::string>& hosts, int ranks) {
  std::vector<HostSlots> places;
  for (const auto& host : hosts) {
    places.push_back(parse_host(host));
    const auto& name = places.back().name;
    if (std::ranges::count(places, name, &HostSlots::name) == 1) continue;
    throw ConfigError(
        {{.origin = "config",
          .key = "launch.hosts",
          .message = name + " is named twice, so its ranks would be bound to the same cores; give it all " +
                     "its slots at once (" + name + ":slots)"}});
  }
  const auto slots = total_slots(places);
  const int count = static_cast<int>(places.size());
  const int equal_slots = (ranks + count - 1) / count;
  std::vector<HostShare> shares;
  int first = 0;
  for (int i = 0; i < count; ++i) {
    const int room = slots ? std::max(1, places[i].slots) : ranks / count + (i < ranks % count ? 1 : 0);
    const int here = std::min(room, ranks - first);
    shares.push_back({.host = places[i].name, .first_rank = first, .ranks = here, .slots = slots ? room : equal_slots});
    first += here;
  }
  if (first == ranks) return shares;
  throw ConfigError(
      {{.origin = "config",
        .key = "launch.ranks",
        .message = std::to_string(ranks) + " ranks are more than the " + std::to_string(slots.value_or(0)) +
                   " slots of launch.hosts; start fewer ranks, or give the hosts more slots (name:slots)"}});
}

std::string to_text(const AgentOrder& order) {
  return std::to_string(order.first_rank) + " " + std::to_string(order.ranks) + " " +
         std::to_string(order.ranks_of_job) + " " + order.rendezvous;
}

std::optional<AgentOrder> take_agent_order() {
  const auto text = environment(kAgentOrder);
  if (!text) return std::nullopt;
  ::unsetenv(kAgentOrder);
  AgentOrder order;
  std::istringstream words(*text);
  words >> order.first_rank >> order.ranks >> order.ranks_of_job >> std::ws;
  const bool numbers = !words.fail();
  std::getline(words, order.rendezvous);
  const bool fit = order.first_rank >= 0 && order.ranks >= 0 && order.ranks_of_job > 0;
  if (numbers && fit && !order.rendezvous.empty()) return order;
  throw ConfigError(std::string("environment: ") + kAgentOrder + " is \"" + *text +
                    "\", not three numbers and a URL; the launcher of Phalanx sets it, so unset it");
}

}  // namespace phalanx
