// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <string>

#include "engine/engine.h"
#include "engine/experiment/experiment.h"
#include "framework/base/config/config.h"
#include "framework/base/console.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/stop_signal.h"

namespace phalanx {
namespace {

// A resumed run already has a config, which stays unchanged if the checkpoint is refused.
void replace_config_at_start(const RankContext& rank, Engine& engine) {
  if (rank.world->rank() != 0 || rank.config.checkpoint.resume == "none") return;
  engine.on(Event::kStart, [&rank](State&) {
    ExperimentConfig config = rank.config;
    write_atomically(rank.folder.config(), config::dump(config));
  });
}

// A checkpoint is accepted only if the dataset is still fitted to the same values (Checkpointing), so the file's
// contents do not change.
void save_fitted_at_start(const RankContext& rank, Engine& engine) {
  if (rank.world->rank() != 0 || rank.splits.fitted.empty()) return;
  engine.on(Event::kStart, [&rank](State&) { write_atomically(rank.folder.dataset(), rank.splits.fitted); });
}

}  // namespace

int train(const RankContext& rank) {
  const auto result = run_experiment(rank.config, {.world = rank.world,
                                                   .device = rank.device,
                                                   .splits = rank.splits,
                                                   .folder = rank.folder,
                                                   .servers = rank.servers,
                                                   .terminal = rank.terminal,
                                                   .started = rank.started,
                                                   .stop_asked = stop_requested,
                                                   .add_hooks = [&rank](Engine& engine) {
                                                     replace_config_at_start(rank, engine);
                                                     save_fitted_at_start(rank, engine);
                                                   }});
  if (rank.world->rank() == 0) {
    const char* why = result.time_up ? "Time limit reached" : result.stopped ? "Stopped" : "Done";
    const std::string& folder = rank.folder.path();
    standard_output().write(format_text("%s after step %" PRId64 "; everything is in ", why, result.steps) + folder +
                            "\n");
    if (result.stopped) {
      standard_output().write("To resume, start it again in the same way, with --run_dir=" + folder +
                              " --resume=auto\n");
    }
  }
  return result.time_up ? kTimeUp : result.stopped ? kInterrupted : kDone;
}

}  // namespace phalanx
