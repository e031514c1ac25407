// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A host to start ranks on, as mpirun takes it: "node1" or "node1:4".
struct HostSlots {
  std::string name;
  int slots = 0;  // how many ranks; 0: not said
};

/// Reads one. Names are those of DNS or IPv4 addresses: letters, digits, '.', '-' and '_', a letter or digit first.
/// Throws ConfigError for anything else, which says what is expected.
HostSlots parse_host(const std::string& text);

}  // namespace phalanx
