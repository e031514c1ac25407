#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The files of a run that has ended: its weights, and the config that they belong to.
struct SavedRun {
  std::string weights;
  std::string config;
};

/// Returns the files that the flags --run, --weights and --config of `tool` name: a run's, unless a file is given in
/// place of one. Throws ConfigError for a file that is not named or does not exist, and if the config of a run folder
/// has plug-ins, which are code, unless one of the `overrides` (--set) names the plug-ins to load.
SavedRun find_saved_run(const std::string& tool, const std::string& run, const std::string& weights,
                        const std::string& config, const std::vector<std::string>& overrides);

}  // namespace phalanx
