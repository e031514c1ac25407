// SPDX-License-Identifier: Apache-2.0
#include "launch/job/training.h"

#include <cinttypes>
#include <string>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/job/prepare_folder.h"

namespace phalanx {

std::function<void(Engine&)> write_inputs_at_start(const ExperimentConfig& config, const ExperimentContext& context) {
  return [&config, &context](Engine& engine) {
    if (context.world->rank() != 0) return;
    engine.on(Event::kStart, [&config, &context](State&) {
      if (config.checkpoint.resume != "none") write_config(config, context.folder);
      // A checkpoint is accepted only if the dataset is still fitted to the same values (Checkpointing), so the file's
      // contents do not change.
      if (!context.splits.fitted.empty()) write_atomically(context.folder.dataset(), context.splits.fitted);
    });
  };
}

namespace {

// Returns a line about the recording, or "" if the run does not record.
std::string recorded(const ExperimentConfig& config, const ExperimentResult& result) {
  if (!result.recorded_bytes) return "";
  return "Recorded in " + config.framework.record + ": " + format_bytes(*result.recorded_bytes) +
         " of all ranks; to run rank 0 alone: replay " + config.framework.record + " --rank 0\n";
}

}  // namespace

int report_end(const ExperimentConfig& config, const ExperimentResult& result, const ExperimentContext& context) {
  if (context.world->rank() == 0) {
    const char* why = result.time_up ? "Time limit reached" : result.stopped ? "Stopped" : "Done";
    const std::string& folder = context.folder.path();
    standard_output().write(format_text("%s after step %" PRId64 "; everything is in ", why, result.steps) + folder +
                            "\n");
    standard_output().write(recorded(config, result));
    if (result.stopped) {
      standard_output().write("To resume, start it again in the same way, with --run_dir=" + folder +
                              " --resume=auto\n");
      const std::string slurm = environment("SLURM_JOB_ID").value_or("");
      if (!slurm.empty()) standard_output().write("Slurm does so by: scontrol requeue " + slurm + "\n");
    }
  }
  return result.time_up ? kTimeUp : result.stopped ? kInterrupted : kDone;
}

}  // namespace phalanx
