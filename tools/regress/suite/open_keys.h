// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"

namespace phalanx::regress {

/// Returns a node as YAML in one line: `{pipe: 2, tensor: 2}`.
std::string to_line(const config::Node& node);

/// Rewrites the sections of a suite whose keys are keys of configs into the form of the schema, keeping all places:
///
///     matrix: {ranks: [1, 2]}         matrix: {ranks: {values: [1, 2]}}
///     set: {train.max_steps: 40}      set: {train.max_steps: {value: 40}}
///     exclude: [{ranks: 2}]           exclude: [{when: {ranks: {values: [2]}}}]
///
/// Values that are sections or lists become texts. Appends a problem for an axis that is not a list of values.
void rewrite_open_keys(config::Node& suite, std::vector<ConfigProblem>& problems);

}  // namespace phalanx::regress
