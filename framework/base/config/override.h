// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"

namespace phalanx::config {

/// Applies "key.path=value", where the value is YAML, to the tree: replaces the node at this path, and creates missing
/// sections on the way. `model: lenet` becomes `model: {name: lenet}` when a key below model is set. Does not check
/// whether the schema has the path. Problems have the origin "--set key.path=value".
void apply_override(Node& root, const std::string& assignment, std::vector<ConfigProblem>& problems);

/// Returns the origin that problems of this assignment name.
std::string origin_of(const std::string& assignment);

}  // namespace phalanx::config
