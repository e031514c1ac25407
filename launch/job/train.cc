#include <cinttypes>
#include <cstdio>

#include "engine/experiment/experiment.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/stop_signal.h"

namespace phalanx {

int train(const RankContext& rank) {
  const auto result = run_experiment(rank.config, {.world = rank.world,
                                                   .splits = rank.splits,
                                                   .folder = rank.folder,
                                                   .servers = rank.servers,
                                                   .terminal = rank.terminal,
                                                   .started = rank.started,
                                                   .stop_asked = stop_requested});
  if (rank.world->rank() == 0 && rank.config.watch.progress) {
    const char* why = result.time_up ? "Time limit reached" : result.stopped ? "Stopped" : "Done";
    std::printf("%s after step %" PRId64 "; everything is in %s\n", why, result.steps, rank.folder.path().c_str());
    std::fflush(stdout);
  }
  return result.time_up ? kTimeUp : result.stopped ? kInterrupted : kDone;
}

}  // namespace phalanx
