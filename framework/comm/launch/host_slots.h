// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A host on which to start ranks, in the syntax of mpirun: "node1" or "node1:4".
struct HostSlots {
  std::string name;
  int slots = 0;  // number of ranks; 0: not given
};

/// Parses a host. Names are DNS names or IPv4 addresses: letters, digits, '.', '-' and '_', beginning with a letter or
/// digit. Throws a ConfigError that describes the expected syntax for anything else.
HostSlots parse_host(const std::string& text);

/// Returns the number of ranks for which hosts have slots. If some have slots, a host without any has one; if none has,
/// the hosts take any number, and nothing is returned.
std::optional<std::int64_t> total_slots(const std::vector<HostSlots>& hosts);

}  // namespace phalanx
