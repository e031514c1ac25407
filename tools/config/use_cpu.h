// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Turns off the training options that only devices support; with them, the config of a run might be refused.
inline void disable_device_options(std::vector<std::string>& overrides) {
  for (const char* one : {"train.cuda_graph=false", "loader.resident=false"}) overrides.emplace_back(one);
}

/// Selects the CPU, wherever the run was trained.
inline void use_cpu(std::vector<std::string>& overrides) {
  overrides.emplace_back("device=cpu");
  disable_device_options(overrides);
}

}  // namespace phalanx
