// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/group_table.h"

#include <utility>

#include "framework/base/error.h"

namespace phalanx {

GroupTable::GroupTable(ParameterGroups groups) : groups_(std::move(groups)) {
  for (const auto& group : groups_) {
    try {
      matches_.emplace_back(group.match, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      throw ConfigError("parameter_groups: \"" + group.match + "\" is not a regular expression: " + error.what());
    }
  }
  groups_.emplace_back();
}

std::size_t GroupTable::of(const std::string& parameter) const {
  std::size_t group = 0;
  while (group < matches_.size() && !std::regex_search(parameter, matches_[group])) ++group;
  return group;
}

}  // namespace phalanx
