// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"

namespace phalanx::config {

/// Lays "key.path=value", the value being YAML, over the tree: replaces what is at that path, and makes the sections on
/// the way that are missing. `model: lenet` becomes `model: {name: lenet}` when a key below model is set. Whether the
/// schema has the path is not looked at. Problems have the origin "--set key.path=value".
void lay_over(Node& root, const std::string& assignment, std::vector<ConfigProblem>& problems);

/// What a problem of this assignment names as its origin.
std::string origin_of(const std::string& assignment);

}  // namespace phalanx::config
