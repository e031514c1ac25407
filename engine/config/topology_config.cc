// SPDX-License-Identifier: Apache-2.0
#include "engine/config/topology_config.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "engine/config/config_problems.h"
#include "framework/base/environment.h"
#include "framework/base/text.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

bool is_built_in(const std::string& name) { return name == kHostLevel || name == kNumaLevel; }

std::vector<std::string> known_levels(const TopologyConfig& topology) {
  std::vector<std::string> names{kHostLevel, kNumaLevel};
  for (const auto& [name, key] : topology.keys) names.push_back(name);
  return names;
}

std::vector<std::string> hosts_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream text(list);
  for (std::string name; std::getline(text, name, ',');) {
    const auto first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
    if (first != std::string::npos) names.push_back(name.substr(first, last - first + 1));
  }
  return names;
}

// Returns the number of the group that has the host. The host may have a domain, which the group may omit.
std::optional<std::size_t> group_of_host(const std::vector<std::string>& groups, const std::string& host) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto names = hosts_in(groups[group]);
    const auto is_host = [&](const std::string& name) {
      return name == host || name == host.substr(0, host.find('.'));
    };
    if (std::ranges::any_of(names, is_host)) return group;
  }
  return std::nullopt;
}

std::string own_value(const std::string& name, const LevelKeyConfig& key, int rank) {
  const std::string place = "framework.topology.keys." + name;
  if (key.ranks > 0) return std::to_string(rank / key.ranks);
  if (!key.hosts.empty()) {
    if (const auto group = group_of_host(key.hosts, host_name())) return std::to_string(*group);
    throw ConfigError(place + ".hosts: no group has this host, " + host_name());
  }
  if (const auto value = environment(key.variable)) return *value;
  throw ConfigError(place + ".variable: " + key.variable + " is not set on rank " + std::to_string(rank) +
                    "; set it for all ranks, or list the hosts of each group in " + place + ".hosts");
}

std::string numa_value(int rank) {
  std::string node = numa_key();
  if (node != kUnbound) return node;
  throw ConfigError("framework.topology.levels: numa: rank " + std::to_string(rank) +
                    " may run on several NUMA nodes; set launch.bind_to: numa, or have the launcher bind the ranks");
}

}  // namespace

void check_topology(std::vector<ConfigProblem>& problems, const TopologyConfig& topology) {
  const auto known = known_levels(topology);
  for (std::size_t i = 0; i < topology.levels.size(); ++i) {
    const std::string& level = topology.levels[i];
    const std::string place = "framework.topology.levels[" + std::to_string(i) + "]";
    const auto first = static_cast<std::size_t>(std::ranges::find(topology.levels, level) - topology.levels.begin());
    refuse_if(problems, first < i, place.c_str(), level + " is listed twice");
    if (std::ranges::find(known, level) != known.end()) continue;
    refuse_if(problems, true, place.c_str(),
              "\"" + level + "\" is neither host nor numa nor one of framework.topology.keys");
    problems.back().suggestion = nearest(level, known);
  }
  for (const auto& [name, key] : topology.keys) {
    const std::string place = "framework.topology.keys." + name;
    refuse_if(problems, is_built_in(name), place.c_str(), "this name has a meaning of its own; use another");
    const int fields = int{!key.variable.empty()} + int{!key.hosts.empty()} + int{key.ranks > 0};
    refuse_if(problems, fields != 1, place.c_str(), "needs exactly one of variable, hosts and ranks");
  }
}

std::vector<Key> level_keys(const TopologyConfig& topology, int rank) {
  std::vector<Key> keys;
  for (const auto& level : topology.levels) {
    const std::string value = level == kHostLevel   ? host_key()
                              : level == kNumaLevel ? numa_value(rank)
                                                    : own_value(level, topology.keys.at(level), rank);
    keys.push_back({level, value});
  }
  return keys;
}

}  // namespace phalanx
