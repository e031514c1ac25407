// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Ranks sorted into groups: groups[g] are the ranks of group g, ascending; groups are in the order of their lowest
/// ranks, which are their leaders.
using Groups = std::vector<std::vector<int>>;

/// The groups of ranks 0, 1, ... of which rank r has keys[r]: equal keys, one group.
Groups group_by_key(const std::vector<std::string>& keys);

/// Whether all groups are of one size.
bool is_cartesian(const Groups& groups);

/// A communicator divided into groups, and what links the groups.
///
///   cartesian  groups of equal size: inter is the ranks that have this one's rank in their groups, so there are as
///              many links as a group has ranks
///   tree       otherwise: inter is the groups' leaders, intra rank 0; all others have none
///
/// Rank r of intra is groups[group][r] of scope; rank g of inter is a rank of group g.
struct Level {
  std::string name{};       // what the groups have in common: "host", "numa", ...
  CommunicatorPtr scope{};  // what is divided
  CommunicatorPtr intra{};  // this rank's group, in the order of scope
  CommunicatorPtr inter{};  // null on ranks of a tree that are no leaders
  Groups groups{};          // ranks of scope
  int group = 0;            // this rank's

  bool cartesian() const { return is_cartesian(groups); }
  bool leads() const { return intra->rank() == 0; }

  /// Whether every group is a run of consecutive ranks: only then group by group is in the order of the ranks.
  bool in_rank_order() const;
};

/// Divides `scope` by key: ranks with equal keys, of any bytes, are a group. Collective, blocking.
Level divide(const std::string& name, const CommunicatorPtr& scope, const std::string& key);

/// The same where the groups can talk already: `intra` is this rank's, and may be of another backend. Collective over
/// scope, blocking. Throws std::invalid_argument where intra has not the order of scope.
Level link(const std::string& name, const CommunicatorPtr& scope, CommunicatorPtr intra);

/// By what a level is divided: this rank's value of what the name says.
struct Key {
  std::string name;
  std::string value;
};

/// A world divided again and again: level 0 is the world as one group, level 1 divides it by the first key, level 2
/// divides level 1's groups by the second. A value: copies share the communicators.
///
///   Hierarchy hierarchy(world, {{"host", host_key()}, {"numa", numa_key()}});
///   hierarchy.level(1).intra;  // the ranks of this host
///
/// A key is compared inside a group of the level above alone: NUMA node 0 of two hosts are two groups.
class Hierarchy {
 public:
  /// Collective, blocking, with the same names on all ranks.
  Hierarchy(CommunicatorPtr world, const std::vector<Key>& keys);

  const CommunicatorPtr& world() const { return levels_.front().intra; }

  /// How many keys divide the world.
  int depth() const { return static_cast<int>(levels_.size()) - 1; }

  /// From 0 to depth(); level i + 1 divides level(i).intra. Throws std::out_of_range.
  const Level& level(int number) const { return levels_.at(static_cast<std::size_t>(number)); }

  /// Whether every level is cartesian, in all of the world. The same on all ranks.
  bool is_cartesian() const { return cartesian_; }

  /// Groups at the first level: the number of nodes where the first key is the host.
  int nodes() const { return depth() == 0 ? 1 : static_cast<int>(levels_[1].groups.size()); }

  /// As this rank sees it: "world of 8 ranks > host: 2 groups, cartesian > numa: 2 groups, tree".
  std::string describe() const;

 private:
  std::vector<Level> levels_;
  bool cartesian_ = true;
};

}  // namespace phalanx
