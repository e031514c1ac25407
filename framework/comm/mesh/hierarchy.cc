// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/hierarchy.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>

#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

int group_of(const Groups& groups, int rank) {
  const auto has_rank = [rank](const std::vector<int>& group) { return std::ranges::binary_search(group, rank); };
  return static_cast<int>(std::ranges::find_if(groups, has_rank) - groups.begin());
}

CommunicatorPtr split_inter(const Level& level, int intra_rank) {
  const int color = is_cartesian(level.groups) || intra_rank == 0 ? intra_rank : -1;
  return level.scope->split(color, level.group);
}

}  // namespace

Groups group_by_key(const std::vector<std::string>& keys) {
  Groups groups;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    const auto [entry, first] = numbers.emplace(keys[rank], groups.size());
    if (first) groups.emplace_back();
    groups[entry->second].push_back(static_cast<int>(rank));
  }
  return groups;
}

bool is_cartesian(const Groups& groups) {
  return std::ranges::all_of(groups, [&](const auto& group) { return group.size() == groups.front().size(); });
}

bool Level::in_rank_order() const {
  int next = 0;
  for (const auto& group : groups) {
    for (const int rank : group) {
      if (rank != next++) return false;
    }
  }
  return true;
}

Level split_by_key(const std::string& name, const CommunicatorPtr& scope, const std::string& key) {
  const MeasuredInputs measured;  // a key may be the name of a host
  Level level{.name = name, .scope = scope, .groups = group_by_key(all_gather_text(key, *scope))};
  level.group = group_of(level.groups, scope->rank());
  level.intra = scope->split(level.group, scope->rank());
  level.inter = split_inter(level, level.intra->rank());
  return level;
}

Level link(const std::string& name, const CommunicatorPtr& scope, CommunicatorPtr intra) {
  const at::Tensor leader = at::full({1}, static_cast<std::int64_t>(scope->rank()), at::kLong);
  intra->broadcast(leader, 0).wait();
  const auto key = std::to_string(*leader.const_data_ptr<std::int64_t>());
  Level level{
      .name = name, .scope = scope, .intra = std::move(intra), .groups = group_by_key(all_gather_text(key, *scope))};
  level.group = group_of(level.groups, scope->rank());
  const auto& members = level.groups[level.group];
  if (static_cast<int>(members.size()) != level.intra->size() || members[level.intra->rank()] != scope->rank()) {
    throw std::invalid_argument("link: " + level.intra->name() + " is not a group of " + scope->name() +
                                " in the order of its ranks");
  }
  level.inter = split_inter(level, level.intra->rank());
  return level;
}

Hierarchy::Hierarchy(CommunicatorPtr world, const std::vector<Key>& keys) {
  std::vector<int> all;
  for (int rank = 0; rank < world->size(); ++rank) all.push_back(rank);
  levels_.push_back({.name = "world", .scope = world, .intra = world, .inter = nullptr, .groups = {all}});
  std::int64_t cartesian = 1;
  for (const auto& key : keys) {
    levels_.push_back(split_by_key(key.name, levels_.back().intra, key.value));
    if (!levels_.back().cartesian()) cartesian = 0;
  }
  const at::Tensor everywhere = at::full({1}, cartesian, at::kLong);
  world->all_reduce(everywhere, Reduction::kMin).wait();
  cartesian_ = *everywhere.const_data_ptr<std::int64_t>() == 1;
}

std::string Hierarchy::describe() const {
  std::string text = "world of " + std::to_string(world()->size()) + " ranks";
  for (int number = 1; number <= depth(); ++number) {
    const Level& division = level(number);
    text += " > " + division.name + ": " + std::to_string(division.groups.size()) + " groups, " +
            (division.cartesian() ? "cartesian" : "tree");
  }
  return text;
}

}  // namespace phalanx
