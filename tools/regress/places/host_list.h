// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/launch/host_slots.h"

namespace phalanx::regress {

/// Parses the hosts of `--on hosts:a,b:4`. Throws ConfigError for a malformed or repeated name, and for no host.
std::vector<HostSlots> parse_hosts(const std::string& text);

/// Returns the free host with the smallest number first, as indices: the first `count` hosts that are not `taken`.
/// Returns none if there are fewer.
std::vector<std::size_t> choose_hosts(const std::vector<bool>& taken, int count);

/// Returns the override of a config that starts `ranks` ranks on these hosts, spread evenly:
/// "launch.hosts=[a:2, b:2]".
std::string hosts_override(const std::vector<std::string>& names, int ranks);

}  // namespace phalanx::regress
