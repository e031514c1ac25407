// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <regex>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx {

/// Finds the group of a parameter. Parameters that no group matches are in an additional last group, whose factors are
/// 1.
class GroupTable {
 public:
  /// Throws ConfigError if a group's `match` is not a regular expression.
  explicit GroupTable(ParameterGroups groups);

  std::size_t size() const { return groups_.size(); }
  const ParameterGroup& operator[](std::size_t group) const { return groups_[group]; }
  std::size_t of(const std::string& parameter) const;

 private:
  ParameterGroups groups_;
  std::vector<std::regex> matches_;  // one per group, except the last
};

}  // namespace phalanx
