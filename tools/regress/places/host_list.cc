// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/host_list.h"

#include <algorithm>
#include <sstream>

#include "framework/base/error.h"

namespace phalanx::regress {

std::vector<HostSlots> parse_hosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const HostSlots host = parse_host(name);
    if (std::ranges::count(hosts, host.name, &HostSlots::name) > 0) {
      throw ConfigError("--on hosts:" + text + ": " + host.name + " is named twice");
    }
    hosts.push_back(host);
  }
  if (hosts.empty()) throw ConfigError("--on hosts: name the hosts, as in --on hosts:node1,node2");
  return hosts;
}

std::vector<std::size_t> choose_hosts(const std::vector<bool>& taken, int count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < taken.size() && static_cast<int>(chosen.size()) < count; ++i) {
    if (!taken[i]) chosen.push_back(i);
  }
  if (static_cast<int>(chosen.size()) < count) chosen.clear();
  return chosen;
}

std::string hosts_override(const std::vector<std::string>& names, int ranks) {
  const int each = std::max(1, ranks / static_cast<int>(names.size()));
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name + ":" + std::to_string(each);
  return "launch.hosts=[" + list + "]";
}

}  // namespace phalanx::regress
