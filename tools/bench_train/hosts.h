// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/child.h"

namespace phalanx::bench_train {

/// Where ranks run: this host, or two that are network namespaces of it, joined by a link. Each of the two has half of
/// the cores that this process may use, as hosts share none; a single core they share. They last as long as this object
/// or process, however it ends.
class Hosts {
 public:
  /// This host.
  Hosts();

  /// Two, with a link of this rate, as tc has it, between them. Throws ConfigError where they cannot be made, with what
  /// is missing.
  explicit Hosts(const std::string& rate);

  int count() const { return static_cast<int>(hosts_.size()); }

  /// The command that runs `command` there, with more variables.
  std::vector<std::string> command(int host, const std::vector<std::string>& variables,
                                   const std::vector<std::string>& command) const;

 private:
  struct Host {
    std::vector<std::string> enter{};      // words before a command
    std::vector<std::string> variables{};  // of all that runs there
  };

  std::unique_ptr<bench::Child> network_;
  std::vector<Host> hosts_;
};

}  // namespace phalanx::bench_train
