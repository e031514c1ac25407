// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/regress/suite/suite_config.h"

namespace phalanx::regress {

/// The key of a matrix that is the number of hosts, which is not a key of configs.
inline constexpr const char* kHosts = "hosts";

/// One key of a combination, with one of its values.
struct Coordinate {
  std::string axis;   // key as the suite has it: "ranks"
  std::string value;  // as YAML

  bool operator==(const Coordinate&) const = default;
};

using Combination = std::vector<Coordinate>;

/// Returns the key of a config that an axis sets: "launch.ranks" for "ranks", "strategy" for "strategies"; empty for
/// "hosts". Other axes are keys themselves.
std::string key_of_axis(const std::string& axis);

/// Returns all combinations of the values of the axes that no exclusion matches. The predefined axes (ranks, hosts,
/// backends, strategies, meshes, seeds) come first, then the others by name; the last one varies fastest. Without axes
/// there is one empty combination.
std::vector<Combination> combinations(const Axes& axes, const std::vector<ExclusionConfig>& exclusions);

/// Returns the assignments "key=value" of a combination, in its order.
std::vector<std::string> overrides_of(const Combination& combination);

/// Returns the name of a case: "quickstart-ranks=2-backend=gloo-mesh=pipe2.tensor2". It consists of letters, digits and
/// "-._=+", begins with the config's name, and has at most 150 characters; longer ones end with a hash.
std::string name_of_case(const std::string& config_path, const std::string& label, const Combination& combination);

}  // namespace phalanx::regress
