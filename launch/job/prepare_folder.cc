// SPDX-License-Identifier: Apache-2.0
#include "launch/job/prepare_folder.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/manifest.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"

namespace phalanx {

namespace {

// Returns true if the run in this folder will be resumed. A run that has ended without a checkpoint cannot be resumed,
// and a checkpoint of another run is the start of a new one.
bool will_resume(const std::string& resume, const std::string& run_dir) {
  if (resume == "none") return false;
  const RunFolder folder(run_dir);
  std::error_code none;
  if (resume == "auto") {
    return std::filesystem::exists(folder.checkpoints(), none) || !std::filesystem::exists(folder.summary(), none);
  }
  const auto run = std::filesystem::path(resume + "/").parent_path().parent_path().parent_path();
  return std::filesystem::equivalent(run.empty() ? "." : run, run_dir, none);
}

// Returns the newest checkpoint below the folder, which may be the run's or its checkpoints/. Returns an empty string
// if no checkpoint is found.
std::string newest_below(const std::string& folder) {
  for (const auto& checkpoints : {folder + "/checkpoints", folder}) {
    const auto found = CheckpointFolder(checkpoints).list([](const std::string&) {});
    if (!found.empty()) return found.front().path;
  }
  return "";
}

// The code that reads the checkpoint finds out if it is intact and belongs to this run.
void check_is_checkpoint(const std::string& resume) {
  std::error_code none;
  if (resume == "none" || resume == "auto" || std::filesystem::exists(resume + "/" + kManifestName, none)) return;
  std::string suggestion = nearest(resume, {"none", "auto"});
  std::string message = "\"" + resume + "\" does not exist; name a checkpoint's folder, auto or none";
  if (std::filesystem::exists(resume, none)) {
    message = "\"" + resume + "\" is not a checkpoint: it has no " + kManifestName;
    suggestion = newest_below(resume);
  }
  throw ConfigError(std::vector<ConfigProblem>{
      {.origin = "config", .key = "checkpoint.resume", .message = message, .suggestion = suggestion}});
}

}  // namespace

ClaimedFolder prepare_folder(const Job& job) {
  const std::string& resume = job.config.checkpoint.resume;
  check_is_checkpoint(resume);
  std::string path = job.run_dir;
  if (path.empty() && resume == "auto") path = newest_run_dir(job.config.name);
  if (path.empty()) path = choose_run_dir(job.config.name);
  auto folder = RunFolder::create(path, will_resume(resume, path));
  auto claim = folder.claim();
  // The previous holder of the claim may have begun a run here, or ended one that cannot be resumed.
  const bool resumed = will_resume(resume, path);
  if (!resumed) folder.refuse_if_held();
  std::error_code unknown;
  if (!resumed || !std::filesystem::exists(folder.config(), unknown)) {
    write_config(job.config, folder);
  }
  return {std::move(folder), std::move(claim)};
}

void write_config(ExperimentConfig config, const RunFolder& folder) {
  write_atomically(folder.config(), config::dump(config));
}

}  // namespace phalanx
