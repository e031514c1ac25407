// SPDX-License-Identifier: Apache-2.0
#include "launch/job/job_setup.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/manifest.h"
#include "framework/base/config/config.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/comm/texts.h"
#include "framework/kernels/processor.h"
#include "launch/failure.h"

namespace phalanx {

void check_same_config(Job& job, Communicator& world) {
  const std::string mine = config::dump(job.config);
  const bool same = broadcast_text(mine, world) == mine;
  at::Tensor differs = at::zeros({1}, at::kLong).fill_(same ? world.size() : world.rank());
  world.all_reduce(differs, Reduction::kMin).wait();
  const auto rank = differs.item<std::int64_t>();
  if (rank == world.size()) return;
  throw ConfigError("rank " + std::to_string(rank) + " was started with a different config than rank 0: compare " +
                    "their --config files and --set flags (--print_config shows the result)");
}

std::string differing_processors(Communicator& world) {
  const auto mine = kernels::this_processor();
  const auto kinds = all_gather_text(mine.vendor + " " + mine.vectors, world);
  const auto other = std::ranges::find_if(kinds, [&](const auto& kind) { return kind != kinds.front(); });
  if (other == kinds.end()) return "";
  return "The processors of the ranks differ (rank 0: " + kinds.front() + ", rank " +
         std::to_string(other - kinds.begin()) + ": " + *other +
         "), and so do the last bits of their results: the run repeats only on the same hosts";
}

namespace {

// Returns true if the run in this folder will be resumed. A run that has ended without a checkpoint cannot be resumed,
// and a checkpoint of another run is the start of a new one.
bool goes_on(const std::string& resume, const std::string& run_dir) {
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

RunFolder prepare_folder(Job& job) {
  const std::string& resume = job.config.checkpoint.resume;
  check_is_checkpoint(resume);
  if (job.run_dir.empty() && resume == "auto") job.run_dir = newest_run_dir(job.config.name);
  if (job.run_dir.empty()) job.run_dir = choose_run_dir(job.config.name);
  const auto folder = RunFolder::create(job.run_dir, goes_on(resume, job.run_dir));
  job.claim = folder.claim();
  // The previous holder of the claim may have begun a run here, or ended one that cannot be resumed.
  const bool resumed = goes_on(resume, job.run_dir);
  if (!resumed) folder.refuse_if_held();
  // The config of a resumed run is replaced once its checkpoint has been accepted: see train().
  std::error_code unknown;
  if (!resumed || !std::filesystem::exists(folder.config(), unknown)) {
    write_atomically(folder.config(), config::dump(job.config));
  }
  return folder;
}

RunFolder agree_on_folder(Job& job, Communicator& world) {
  std::string problem;
  if (world.rank() == 0) {
    try {
      forget_failures(prepare_folder(job).logs());
    } catch (const ConfigError& error) {
      problem = config::located(error, job.sources).what();
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = broadcast_text(problem, world);
  if (!problem.empty()) throw ConfigError(problem);
  return RunFolder(broadcast_text(job.run_dir, world));
}

}  // namespace phalanx
