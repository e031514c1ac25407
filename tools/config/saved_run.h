// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "tools/command/flags.h"

namespace phalanx {

/// The files of a run that has ended: its weights, and the config that they belong to.
struct SavedRun {
  std::string weights;
  std::string config;
  std::string dataset{};  // path of the dataset.json next to the config; empty if it does not exist
};

/// The flags of a command that uses a saved run.
struct SavedRunFlags {
  std::string run{};                     // --run
  std::string weights{};                 // --weights
  std::string config{};                  // --config
  std::vector<std::string> overrides{};  // --set

  /// Adds the flags, whose variables are this object's members.
  void add_to(Flags& flags);
};

/// Returns the files that the flags of `command` name. The files of a run are used unless another file is given. Throws
/// ConfigError for a file that is not named or does not exist. Also throws if the config of a run folder has plug-ins,
/// which are code, unless one of the overrides names the plug-ins to load.
SavedRun find_saved_run(const std::string& command, const SavedRunFlags& flags);

/// Throws ConfigError if the config `text`, from the file `origin`, has plug-ins, which are code, unless one of the
/// overrides names the plug-ins to load.
void refuse_unnamed_plugins(const std::string& text, const std::string& origin,
                            const std::vector<std::string>& overrides);

/// Makes a dataset of tables use the categories and statistics of `run.dataset`, as the run did, instead of fitting
/// them to the training rows. A config that names a file for them keeps it; other datasets have no such field.
void take_encoding(config::Selection& dataset, const SavedRun& run);

}  // namespace phalanx
