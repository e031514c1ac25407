// SPDX-License-Identifier: Apache-2.0
#include "launch/job/rank.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/config/locate.h"
#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/kernels/kernels.h"
#include "launch/connect.h"
#include "launch/console.h"
#include "launch/end_after_failure.h"
#include "launch/exit_status.h"
#include "launch/failure.h"
#include "launch/job/job_setup.h"
#include "launch/job/world.h"
#include "launch/launcher_watch.h"
#include "launch/local_rank.h"
#include "launch/meeting_notice.h"
#include "launch/report.h"
#include "launch/run_rank.h"
#include "launch/stall_watch.h"
#include "launch/stop_signal.h"
#include "launch/verdict.h"

namespace phalanx {
namespace {

// Logs only to the file: what a user must know is reported once for all ranks.
LogOptions log_options(const RunFolder& folder, int rank) {
  return {.file = folder.log(rank), .stderr_threshold = LogLevel::kNone, .rank = rank};
}

// Logs exceptions of a rank's body as well. Errors of the config are logged with their location.
template <class Body>
auto logged(const Job& job, const Body& body) {
  try {
    return body();
  } catch (const ConfigError& error) {
    const ConfigError with_place = config::located(error, job.sources);
    log_error() << with_place.what();
    throw with_place;
  } catch (const std::exception& error) {
    log_error() << error.what();
    throw;
  }
}

// Selects the kernels for all ranks of this process, before its first matrix product.
void use_kernels(const Job& job) {
  const auto plan = kernels::use_kernels(job.config.kernels);
  log_info() << "kernels: " << plan.summary();
}

void tell_of_differing_processors(Communicator& world) {
  const auto text = differing_processors(world);
  if (world.rank() == 0 && !text.empty()) tell_console(text);
}

// Makes sure that text for the user has been written, if anyone reads it, before the process ends.
struct Told {
  ~Told() { standard_output().flush(); }
};

int run_body(const Job& job, const RunFolder& folder, const CommunicatorPtr& world, Splits splits) {
  const Told told;
  const Seconds warn_after(job.config.framework.warn_after);
  std::optional<StallWatch> watch;
  if (warn_after.count() > 0 && world->size() > 1) {
    watch.emplace(*world,
                  StallWatch::Options{.log_folder = folder.logs(), .warn_after = warn_after, .tell = tell_console});
  }
  return run_in_role(job, {.config = job.config,
                           .folder = folder,
                           .world = world,
                           .splits = std::move(splits),
                           .servers = nullptr,
                           .terminal = on_terminal(),
                           .started = job.started});
}

void tell(const std::vector<Failure>& failures, const RunFolder& folder, int ranks) {
  if (failures.empty()) return;
  report({.cause = failures.front(), .others = static_cast<int>(failures.size()) - 1}, ranks, folder.logs());
}

// Reports a failure once for all ranks, preferring the reason of a failure over the loss of a peer: a peer that knows
// the reason is about to report it. Until one rank has claimed the report, all ranks must be able to find every
// failure.
void tell_once(const RunFolder& folder, int ranks) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(500);
  auto failures = read_failures(folder.logs());
  while ((failures.empty() || failures.front().secondary) && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    failures = read_failures(folder.logs());
  }
  if (failures.empty()) return;  // another rank has reported them
  if (claim_report(folder.logs())) tell(failures, folder, ranks);
  take_failures(folder.logs());
}

void quiet_other_ranks(int rank) {
  if (rank == 0) return;
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw Error("cannot open /dev/null");
}

bool is_failure(int status) { return status != kDone && status != kTimeUp && status != kInterrupted; }

// Creates the data for ranks that are threads. There are no ranks yet, so it uses the log of the first one.
Splits make_shared_splits(const Job& job, const RunFolder& folder) {
  const ThreadLog log(log_options(folder, 0));
  return logged(job, [&] {
    use_kernels(job);
    return make_data(job, true);
  });
}

}  // namespace

Stopping stopping_of(const Job& job) {
  const std::chrono::duration<double> grace(job.config.launch.grace);
  return {.after_step = job.saves, .grace = std::chrono::ceil<std::chrono::milliseconds>(grace)};
}

int run_threads(const Job& job, const RunFolder& folder) {
  const int ranks = static_cast<int>(job.config.launch.ranks);
  const Splits splits = make_shared_splits(job, folder);
  const StorePtr store = make_hash_store(Seconds(job.config.framework.timeout));
  std::vector<int> statuses(ranks);
  EndAfterFailure end;
  run_rank_threads(ranks, [&](const RankInfo& rank_info) {
    const int rank = rank_info.rank;
    statuses[rank] = run_rank(rank, folder.logs(), folder.log(rank), [&] {
      const ThreadLog log(log_options(folder, rank));
      log_info() << "rank " << rank << " of " << ranks << " on " << host_name() << ", a thread of one process";
      return logged(job, [&] {
        log_info() << take_cores(job.config.launch, rank_info, CoresFrom::kUs);
        return run_body(job, folder, decorate(connect_thread(job.config, rank_info, store), job.config), splits);
      });
    });
    if (is_failure(statuses[rank])) end.failed(statuses[rank]);
  });
  for (const int status : {kUsage, kFailed, kRankDied, kInterrupted, kTimeUp}) {
    if (std::ranges::find(statuses, status) != statuses.end()) return status;
  }
  return kDone;
}

int run_joined_rank(const Job& job, const RunFolder& folder, const LaunchEnvironment& launched) {
  configure_log(log_options(folder, launched.rank_info.rank));
  return logged(job, [&] {
    log_info() << take_cores(job.config.launch, launched.rank_info, CoresFrom::kUs);
    use_kernels(job);
    auto backends = connect_backends(job.config, launched);
    tell_of_differing_processors(*backends.front().group);
    const auto world = decorate(std::move(backends), job.config);
    return run_body(job, folder, world, make_data(job, launched.rank_info.rank == 0));
  });
}

int join(Job& job, const LaunchEnvironment& told) {
  end_with_launcher(told);
  const int rank = told.rank_info.rank;
  const bool ours = environment("PHALANX_LAUNCHER").has_value();  // our launcher knows the folder and reports failures
  install_stop_signal(ours ? StopOn::kLauncher : StopOn::kInterrupt, stopping_of(job), !ours && rank == 0);
  quiet_other_ranks(rank);
  if (ours) {
    const RunFolder folder(job.run_dir);
    return run_rank(rank, folder.logs(), folder.log(rank), [&] { return run_joined_rank(job, folder, told); });
  }
  std::optional<MeetingNotice> notice(std::in_place, told, Seconds(job.config.framework.warn_after), tell_console);
  auto [launched, store] = find_local_rank(told, Seconds(job.config.framework.timeout));
  const auto cores = take_cores(job.config.launch, launched.rank_info, CoresFrom::kLauncher);
  auto backends = connect_backends(job.config, launched, std::move(store));
  notice.reset();
  const auto folder = agree_on_folder(job, *backends.front().group);
  configure_log(log_options(folder, rank));
  const std::string backend = choose_backend(job.config.backend, launched);
  log_info() << "rank " << rank << " of " << launched.rank_info.size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << backend << ", " << cores;
  if (rank == 0) introduce(job, folder, launched.rank_info.size, backend);
  const int status = run_rank(rank, folder.logs(), folder.log(rank), [&] {
    return logged(job, [&] {
      check_same_config(job, *backends.front().group);
      use_kernels(job);
      tell_of_differing_processors(*backends.front().group);
      auto world = decorate(std::move(backends), job.config);
      return run_body(job, folder, std::move(world), make_data(job, rank == 0));
    });
  });
  if (is_failure(status)) tell_once(folder, launched.rank_info.size);
  return status;
}

}  // namespace phalanx
