// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Turns off the training options that only devices support; with them, the config of a run might be refused.
inline void leave_out_training_on_devices(std::vector<std::string>& overrides) {
  for (const char* one : {"train.cuda_graph=false", "loader.resident=false"}) overrides.emplace_back(one);
}

/// Selects the CPU, wherever the run was trained.
inline void stay_on_the_cpu(std::vector<std::string>& overrides) {
  overrides.emplace_back("device=cpu");
  leave_out_training_on_devices(overrides);
}

}  // namespace phalanx
