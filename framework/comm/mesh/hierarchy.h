// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Ranks sorted into groups. groups[g] are the ranks of group g, ascending. Groups are in the order of their lowest
/// ranks, which are their leaders.
using Groups = std::vector<std::vector<int>>;

/// Sorts ranks 0, 1, ... into groups, where rank r has the key keys[r]: ranks with equal keys are one group.
Groups group_by_key(const std::vector<std::string>& keys);

/// Returns true if all groups have the same size.
bool is_cartesian(const Groups& groups);

/// A communicator split into groups, and the communicators that link the groups.
///
///   cartesian  All groups have the same size. inter consists of the ranks that have this one's rank in their groups,
///              so there are as many links as a group has ranks.
///   tree       Otherwise inter consists of the leaders of the groups (rank 0 of intra); all other ranks have none.
///
/// Rank r of intra is rank groups[group][r] of scope; rank g of inter is in group g.
struct Level {
  std::string name{};             // property that the ranks of a group share: "host", "numa", ...
  CommunicatorPtr scope{};        // the communicator that is split
  CommunicatorPtr intra{};        // this rank's group, in the order of scope
  CommunicatorPtr inter{};        // null on ranks of a tree that are not leaders
  bool inter_has_levels = false;  // inter divides its ranks itself, so collectives use its collectives, not messages
  Groups groups{};                // ranks of scope
  int group = 0;                  // index of this rank's group

  bool cartesian() const { return is_cartesian(groups); }
  bool leads() const { return intra->rank() == 0; }

  /// Returns true if every group is a run of consecutive ranks. Only then are the ranks, group by group, in rank order.
  bool in_rank_order() const;
};

/// Splits `scope` by key: ranks with equal keys, which may be any bytes, form a group. Collective, blocking.
Level split_by_key(const std::string& name, const CommunicatorPtr& scope, const std::string& key);

/// Builds a level from groups that already have communicators: `intra` is this rank's group, and may use another
/// backend. Collective over scope, blocking. Throws std::invalid_argument if intra is not in the order of scope.
Level link(const std::string& name, const CommunicatorPtr& scope, CommunicatorPtr intra);

/// A criterion by which a level is split, with this rank's value.
struct Key {
  std::string name;
  std::string value;

  bool operator==(const Key&) const = default;
};

/// The names of the levels whose keys are host_key() and numa_key() (framework/comm/launch/locality.h).
inline constexpr const char* kHostLevel = "host";
inline constexpr const char* kNumaLevel = "numa";

/// A world that is split repeatedly: level 0 is the world as one group, level 1 splits it by the first key, and
/// level 2 splits the groups of level 1 by the second. A value type: copies share the communicators.
///
///   Hierarchy hierarchy(world, {{"host", host_key()}, {"numa", numa_key()}});
///   hierarchy.level(1).intra;  // the ranks of this host
///
/// Keys are compared only within a group of the level above: NUMA nodes 0 of two hosts are two groups.
class Hierarchy {
 public:
  /// Collective, blocking, with the same names on all ranks.
  Hierarchy(CommunicatorPtr world, const std::vector<Key>& keys);

  const CommunicatorPtr& world() const { return levels_.front().intra; }

  /// Returns the number of keys that split the world.
  int depth() const { return static_cast<int>(levels_.size()) - 1; }

  /// Returns a level, from 0 to depth(); level i + 1 splits level(i).intra. Throws std::out_of_range.
  const Level& level(int number) const { return levels_.at(static_cast<std::size_t>(number)); }

  /// Returns true if every level is cartesian in the whole world. The same on all ranks.
  bool is_cartesian() const { return cartesian_; }

  /// Returns the number of groups at the first level, which is the number of nodes if the first key is the host.
  int nodes() const { return depth() == 0 ? 1 : static_cast<int>(levels_[1].groups.size()); }

  /// Describes the hierarchy as this rank sees it: "world of 8 ranks > host: 2 groups, cartesian > numa: 2 groups,
  /// tree".
  std::string describe() const;

 private:
  std::vector<Level> levels_;
  bool cartesian_ = true;
};

}  // namespace phalanx
