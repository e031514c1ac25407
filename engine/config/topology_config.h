// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx {

/// A key of the user's own, by which ranks are divided into groups. Exactly one of its fields is set.
struct LevelKeyConfig {
  std::string variable;
  std::vector<std::string> hosts;
  std::int64_t ranks = 0;

  template <class V>
  void visit(V& v) {
    v("variable", variable, "environment variable; ranks with equal values form a group");
    v("hosts", hosts, "names of the hosts of each group, such as [\"node1,node2\", \"node3,node4\"]");
    v("ranks", ranks, "number of consecutive ranks of each group", config::at_least(0));
  }
};

/// Section `framework.topology` of a config: which ranks are near each other.
struct TopologyConfig {
  std::vector<std::string> levels;
  std::map<std::string, LevelKeyConfig> keys;

  template <class V>
  void visit(V& v) {
    v("levels", levels,
      "levels by which collectives divide the ranks, coarsest first: host, numa, or names of `keys`; empty: by host "
      "with backend hybrid, otherwise none");
    v("keys", keys, "keys of your own for `levels`, by name");
  }
};

/// Adds a problem for each level that is unknown or repeated, and for each key that does not have exactly one field.
void check_topology(std::vector<ConfigProblem>& problems, const TopologyConfig& topology);

/// Returns the levels with the values of `rank`, which is the calling thread's rank. It must already be bound to its
/// cores. Throws ConfigError if the rank has no value: its thread may run on several NUMA nodes, its host is in no
/// group, or the variable is not set.
std::vector<Key> level_keys(const TopologyConfig& topology, int rank);

}  // namespace phalanx
