// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Checks the parts of loader.shares that do not depend on the ranks.
void check_shares(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& shares = config.loader.shares;
  if (shares == "equal") return;
  refuse_if(problems, shares.find_first_not_of("0123456789:") != std::string::npos && shares != "measured",
            "loader.shares", "must be equal, measured or a share for each rank, such as 2:1; got " + shares);
  refuse_if(problems, config.determinism == "world_size_invariant", "loader.shares",
            "must be equal with determinism: world_size_invariant, whose virtual shards are equal");
  refuse_if(problems, shares == "measured" && config.train.sync_batch_norm, "loader.shares",
            "measured cannot be combined with train.sync_batch_norm, whose ranks wait for each other in forward and "
            "backward, so that all look equally slow; give each rank a share, such as 2:1");
}

}  // namespace

void check_loader(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& loader = config.loader;
  refuse_if(problems, loader.resident && loader.prefetch > 0, "loader.prefetch",
            "gathers batches on the CPU, and must be 0 with loader.resident");
  refuse_if(problems, loader.resident && config.device == "cpu", "loader.resident",
            "keeps samples in the memory of a device, but device is cpu");
  refuse_if(problems, !loader.shuffle && loader.sampler.selected() != "auto", "loader.shuffle",
            "is only for sampler: auto; remove it, since loader.sampler is " + loader.sampler.selected());
  try {
    refuse_if(problems, parse_bytes(loader.prefetch_bytes) < 0, "loader.prefetch_bytes", "must be at least 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "loader.prefetch_bytes", error.what());
  }
  check_shares(problems, config);
}

}  // namespace phalanx
