#include "tools/job/rank.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "engine/experiment/experiment.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "tools/job/agreement.h"
#include "tools/job/connect.h"
#include "tools/job/rank_cores.h"
#include "tools/job/world.h"
#include "tools/launch/exit_status.h"
#include "tools/launch/failure.h"
#include "tools/launch/rank_threads.h"
#include "tools/launch/report.h"
#include "tools/launch/run_rank.h"
#include "tools/launch/stop_signal.h"
#include "tools/launch/verdict.h"

namespace phalanx {
namespace {

// To the file alone: what a user must know is reported, once for all ranks.
LogOptions log_options(const RunFolder& folder, int rank) {
  return {.file = folder.log(rank), .stderr_threshold = LogLevel::kNone, .rank = rank};
}

// What goes wrong in a rank's body is in its log too.
int logged(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    log_error() << error.what();
    throw;
  }
}

bool on_terminal() {
  if (const auto told = environment("PHALANX_TERMINAL")) return *told == "1";
  // Open MPI gives its ranks a pseudo-terminal, whatever its own output is.
  return !environment("OMPI_COMM_WORLD_RANK") && ::isatty(STDOUT_FILENO) != 0;
}

int train(const Job& job, const RunFolder& folder, const CommunicatorPtr& world, const Splits& splits) {
  const auto result = run_experiment(job.config, {.world = world,
                                                  .splits = splits,
                                                  .folder = folder,
                                                  .terminal = on_terminal(),
                                                  .started = job.started,
                                                  .stop_asked = stop_requested});
  if (world->rank() == 0 && job.config.watch.progress) {
    const char* why = result.time_up ? "Time limit reached" : result.stopped ? "Stopped" : "Done";
    std::printf("%s after step %" PRId64 "; everything is in %s\n", why, result.steps, folder.path().c_str());
    std::fflush(stdout);
  }
  return result.time_up ? kTimeUp : result.stopped ? kInterrupted : kDone;
}

void tell(const std::vector<Failure>& failures, const RunFolder& folder, int ranks) {
  if (failures.empty()) return;
  report({.cause = failures.front(), .others = static_cast<int>(failures.size()) - 1}, ranks, folder.logs());
}

// One rank tells for all, and rather why it failed than that it lost a peer: a peer that knows more is about to say so.
void tell_once(const RunFolder& folder, int ranks) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(500);
  auto failures = take_failures(folder.logs());
  while ((failures.empty() || failures.front().secondary) && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ranges::copy(take_failures(folder.logs()), std::back_inserter(failures));
    std::ranges::sort(failures, more_original);
  }
  if (!failures.empty() && claim_report(folder.logs())) tell(failures, folder, ranks);
}

void quiet_other_ranks(int rank) {
  if (rank == 0) return;
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw Error("cannot open /dev/null");
}

}  // namespace

int run_threads(const Job& job, const RunFolder& folder) {
  const int ranks = static_cast<int>(job.config.launch.ranks);
  const Splits splits = job.config.dataset.make();
  const StorePtr store = make_hash_store(Seconds(job.config.framework.timeout));
  std::vector<int> statuses(ranks);
  run_rank_threads(ranks, [&](const Place& place) {
    const int rank = place.rank;
    statuses[rank] = run_rank(rank, folder.logs(), folder.log(rank), [&] {
      const ThreadLog log(log_options(folder, rank));
      log_info() << "rank " << rank << " of " << ranks << " on " << host_name() << ", a thread of one process";
      return logged([&] {
        log_info() << take_cores(job.config.launch, place, CoresFrom::kUs);
        return train(job, folder, decorate(connect_thread(job.config, place, store), job.config), splits);
      });
    });
  });
  for (const int status : {kUsage, kFailed, kInterrupted, kTimeUp}) {
    if (std::ranges::find(statuses, status) != statuses.end()) return status;
  }
  return kDone;
}

int run_joined_rank(const Job& job, const RunFolder& folder, const LaunchEnvironment& launched) {
  configure_log(log_options(folder, launched.place.rank));
  return logged([&] {
    log_info() << take_cores(job.config.launch, launched.place, CoresFrom::kUs);
    const auto world = decorate(connect_backends(job.config, launched), job.config);
    return train(job, folder, world, job.config.dataset.make());
  });
}

int join(Job& job, const LaunchEnvironment& launched) {
  const int rank = launched.place.rank;
  const bool ours = environment("PHALANX_LAUNCHER").has_value();  // it knows the folder, and reports failures
  install_stop_signal(ours ? StopOn::kLauncher : StopOn::kInterrupt);
  quiet_other_ranks(rank);
  if (ours) {
    const RunFolder folder(job.run_dir);
    return run_rank(rank, folder.logs(), folder.log(rank), [&] { return run_joined_rank(job, folder, launched); });
  }
  const auto cores = take_cores(job.config.launch, launched.place, CoresFrom::kLauncher);
  auto backends = connect_backends(job.config, launched);
  const auto folder = agree_on_folder(job, *backends.front().group);
  configure_log(log_options(folder, rank));
  log_info() << "rank " << rank << " of " << launched.place.size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << choose_backend(job.config.backend, launched) << ", " << cores;
  const int status = run_rank(rank, folder.logs(), folder.log(rank), [&] {
    return logged([&] {
      check_same_config(job, *backends.front().group);
      return train(job, folder, decorate(std::move(backends), job.config), job.config.dataset.make());
    });
  });
  if (status != kDone && status != kTimeUp && status != kInterrupted) tell_once(folder, launched.place.size);
  return status;
}

}  // namespace phalanx
