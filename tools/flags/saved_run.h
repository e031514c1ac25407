// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// The files of a run that has ended: its weights, and the config that they belong to.
struct SavedRun {
  std::string weights;
  std::string config;
  std::string dataset{};  // path of the dataset.json next to the config; empty if there is none
};

/// Returns the files that the flags --run, --weights and --config of `tool` name. The files of a run are used unless
/// another file is given. Throws ConfigError for a file that is not named or does not exist. Also throws if the config
/// of a run folder has plug-ins, which are code, unless one of the `overrides` (--set) names the plug-ins to load.
SavedRun find_saved_run(const std::string& tool, const std::string& run, const std::string& weights,
                        const std::string& config, const std::vector<std::string>& overrides);

/// Makes a dataset of tables use the categories and statistics of `run.dataset`, as the run did, instead of fitting
/// them to the training rows. A config that names a file for them keeps it; other datasets have no such field.
void take_encoding(config::Selection& dataset, const SavedRun& run);

}  // namespace phalanx
