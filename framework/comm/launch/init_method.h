// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// The place where this process meets its peers, as in torch.distributed.init_process_group().
struct InitMethod {
  std::string url{};  // env://, tcp://host:port or file:///path, optionally with ?rank=1&world_size=4; empty: env://
  std::optional<int> rank{};
  std::optional<int> world_size{};  // given together with `rank`

  bool empty() const { return url.empty() && !rank && !world_size; }
};

/// Returns the launch environment of this process: where it meets its peers follows from `init`, and its rank from
/// `init`, or else from the URL, or else from the launcher's variables (detect_launch_environment()). Without any of
/// `init`, does the same as detect_launch_environment(). With env://, MASTER_ADDR and MASTER_PORT say where the ranks
/// meet. MPI is not used to connect ranks that meet at a place that `init` gives. Throws ConfigError if a part is
/// missing or malformed.
std::optional<LaunchEnvironment> detect_launch_environment(const InitMethod& init);
std::optional<LaunchEnvironment> detect_launch_environment(const InitMethod& init, const Variables& variables);

}  // namespace phalanx
