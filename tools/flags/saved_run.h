#pragma once

#include <string>

namespace phalanx {

/// The files of a run that has ended: its weights, and the config that they belong to.
struct SavedRun {
  std::string weights;
  std::string config;
};

/// Those that the flags --run, --weights and --config of `tool` name: a run's, unless a file is given in place of one.
/// Throws ConfigError for one that is not named or not there.
SavedRun find_saved_run(const std::string& tool, const std::string& run, const std::string& weights,
                        const std::string& config);

}  // namespace phalanx
