// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// What training has for devices alone is left out, with which the config of a run might be refused.
inline void leave_out_training_on_devices(std::vector<std::string>& overrides) {
  for (const char* one : {"train.capture=false", "loader.resident=false"}) overrides.emplace_back(one);
}

/// For a tool that computes on the CPU, wherever the run did.
inline void stay_on_the_cpu(std::vector<std::string>& overrides) {
  overrides.emplace_back("device=cpu");
  leave_out_training_on_devices(overrides);
}

}  // namespace phalanx
