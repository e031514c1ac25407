// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "engine/strategies/strategies.h"
#include "framework/comm/communicator.h"
#include "phalanx/distributed_data_parallel.h"

namespace phalanx {

/// Returns a section of a config that selects `name`, as YAML: "{name: sgd, lr: 0.1}".
std::string section_text(const std::string& name, const std::map<std::string, std::string>& keys);

/// Returns the strategy that the options select for the ranks of a group, with `auto` resolved; the same on all ranks.
/// Throws ConfigError for unknown names and keys, and for strategies that a program's own loop cannot run.
Strategies::Choice choose_strategy(const DistributedDataParallelOptions& options, const Communicator& group);

}  // namespace phalanx
