// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/child.h"

namespace phalanx::bench_train {

/// The hosts that run ranks: this host, or the two hosts of a virtual cluster. Hosts share no cores, so each of the two
/// has half of the cores that this process may use; if there is only one core, they share it. The cluster is removed
/// when this object is destroyed or the process ends, however it ends.
class Hosts {
 public:
  /// Uses this host only.
  Hosts();

  /// Makes two hosts, connected at this rate, in the notation of tc. Throws ConfigError, which names the missing
  /// requirement, if they cannot be made.
  explicit Hosts(const std::string& rate);

  int count() const { return static_cast<int>(hosts_.size()); }

  /// Returns the command that runs `command` on the host with additional environment variables.
  std::vector<std::string> command(int host, const std::vector<std::string>& variables,
                                   const std::vector<std::string>& command) const;

 private:
  struct Host {
    std::vector<std::string> enter{};      // words before a command that enter the host
    std::vector<std::string> variables{};  // environment variables of everything that runs there
  };

  std::unique_ptr<bench::Child> cluster_;
  std::vector<Host> hosts_;
};

}  // namespace phalanx::bench_train
