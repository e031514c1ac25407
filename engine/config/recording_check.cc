// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"

namespace phalanx {
namespace {

// Refuses what lets a rank receive data in other ways than by operations, or lets it make other operations in a replay.
void refuse_what_cannot_be_replayed(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto traits = config.strategy.traits();
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, "framework.record", message);
  };
  const std::string strategy = "strategy " + config.strategy.selected();
  refuse(config.launch.ranks > 1 && (traits.shared_memory || traits.shared_memory_in_hosts),
         strategy + (traits.shared_memory_key.empty() ? "" : " with " + traits.shared_memory_key) +
             " lets ranks write into each other's memory outside of operations, which a recording cannot see; use "
             "another strategy, or remove framework.record");
  refuse(config.framework.tune == "auto",
         "framework.tune: auto calls operations as often as the clock says, which a replay cannot repeat; set it to "
         "off, and name a measured file in framework.selection_file");
  refuse(config.launch.restarts > 0,
         "launch.restarts would start ranks again whose recordings exist already; set it to 0");
}

void check_last(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto last = config.framework.record_last, every = config.checkpoint.every_steps;
  if (last == 0) return;
  refuse_if(problems, every == 0 || last % every != 0, "framework.record_last",
            "the recording begins at a checkpoint, so " + std::to_string(last) +
                " must be a multiple of checkpoint.every_steps, which is " + std::to_string(every));
  if (every == 0) return;
  const auto needed = 2 * last / every + 1;
  refuse_if(problems, config.checkpoint.keep_last < needed, "checkpoint.keep_last",
            "must be at least " + std::to_string(needed) +
                ", so that the checkpoint at which the recording of framework.record_last steps begins is still there");
}

}  // namespace

void check_recording(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& framework = config.framework;
  if (framework.record.empty()) {
    refuse_if(problems, framework.record_last > 0, "framework.record_last", "needs framework.record: the folder");
    refuse_if(problems, !framework.record_ranks.empty(), "framework.record_ranks", "need framework.record: the folder");
    return;
  }
  refuse_what_cannot_be_replayed(problems, config);
  check_last(problems, config);
}

}  // namespace phalanx
