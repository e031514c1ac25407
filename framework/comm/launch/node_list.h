// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// Returns the names in a list of nodes in Slurm's notation, in order: "gpu[01-03,7]-ib,login" is gpu01-ib, gpu02-ib,
/// gpu03-ib, gpu7-ib, login. Numbers keep their leading zeros, and a name may have several brackets. Throws ConfigError
/// for a list that is malformed or has more than 65,536 names.
std::vector<std::string> expand_node_list(const std::string& list);

/// Returns the numbers in a list of tasks per node in Slurm's notation, in the order of the nodes: 2, 2, 2, 1 for
/// "2(x3),1". Returns nothing for a list that is malformed or has more than 65,536 numbers.
std::optional<std::vector<int>> parse_task_counts(const std::string& list);

}  // namespace phalanx
