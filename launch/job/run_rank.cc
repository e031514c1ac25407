// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_rank.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/job_secret.h"
#include "framework/base/log.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/failure/crash_trace.h"
#include "launch/job/agree.h"
#include "launch/job/bind_cores.h"
#include "launch/job/end_command.h"
#include "launch/job/make_data.h"
#include "launch/job/rank_failure.h"
#include "launch/job/run_header.h"
#include "launch/job/run_with_peers.h"
#include "launch/job/world.h"
#include "launch/local/print_to_console.h"
#include "launch/rank/local_rank.h"
#include "launch/rank/rendezvous_notice.h"

namespace phalanx {
namespace {

// Opens the log of a rank: of the whole process, or of the calling thread while this object lives. It has only a file,
// because what a user must know is reported once for all ranks.
class RankLog {
 public:
  void open(const RunFolder& folder, int rank, bool thread) {
    const LogOptions options{.file = folder.log(rank), .stderr_threshold = LogLevel::kNone, .rank = rank};
    if (thread) {
      thread_.emplace(options);
    } else {
      configure_log(options);
    }
  }

 private:
  std::optional<ThreadLog> thread_;
};

// Makes sure that text for the user has been written, if anyone reads it, before the process ends.
class OutputFlush {
 public:
  OutputFlush() = default;
  ~OutputFlush() { standard_output().flush(); }
  OutputFlush(const OutputFlush&) = delete;
  OutputFlush& operator=(const OutputFlush&) = delete;
};

// The connections of a rank to the others.
struct Connected {
  Connections connections;
  std::string cores;  // description of the cores that the rank uses

  Communicator& world() const { return *connections.front().group; }
};

Connected connect_thread_rank(const ExperimentConfig& config, const RankInfo& rank_info, const StorePtr& store) {
  log_info() << "rank " << rank_info.rank << " of " << rank_info.size << " on " << host_name()
             << ", a thread of one process";
  std::string cores = bind_cores(config.launch, rank_info, CoresFrom::kPhalanx);
  log_info() << cores;
  return {connect_thread(config, rank_info, store), std::move(cores)};
}

// Binds the rank to its cores before the backends start threads.
Connected connect_rank(const ExperimentConfig& config, const StartedRank& rank) {
  if (rank.shared != nullptr) return connect_thread_rank(config, rank.launched.rank_info, rank.shared->store);
  const bool supervised = rank.folder.has_value();
  std::optional<RendezvousNotice> notice;
  if (!supervised) notice.emplace(rank.launched, Seconds(config.framework.warn_after), print_to_console);
  ResolvedLaunch resolved = resolve_local_rank(rank.launched, Seconds(config.framework.timeout));
  std::string cores =
      bind_cores(config.launch, resolved.launched.rank_info, supervised ? CoresFrom::kPhalanx : CoresFrom::kLauncher);
  log_info() << cores;
  return {connect_backends(config, resolved.launched, std::move(resolved.met)), std::move(cores)};
}

// Does for a job without a supervisor what run_job() does otherwise, now that the ranks have agreed on a folder.
void begin_unsupervised(const Job& job, const StartedRank& rank, const Connected& connected) {
  const LaunchEnvironment& launched = rank.launched;
  const std::string& backend = connected.connections.front().backend;
  const int size = launched.rank_info.size;
  log_info() << "rank " << rank.rank() << " of " << size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << backend << ", " << connected.cores;
  if (rank.rank() == 0) print_run_header(job, *rank.folder, size, backend);
}

// Logs by which secret ranks recognize each other. The secret itself never appears in the log.
void log_secret() {
  log_info() << (job_secret() ? "ranks recognize each other by the job's secret"
                              : "the job has no secret (PHALANX_JOB_SECRET)");
}

// Logs what determines the last bits of this process's results.
void log_kernels() { log_info() << "kernels: " << kernels::kernels_in_use(); }

// Returns true if all processors are of one kind. Otherwise tells that the last bits of results differ. Collective over
// the processes of the ranks.
bool compare_processors(Communicator& world) {
  const auto different = differing_processors(world);
  if (world.rank() == 0 && !different.empty()) print_to_console(different);
  return different.empty();
}

}  // namespace

int run_rank(const Job& job, StartedRank rank) {
  const int number = rank.rank();
  const bool thread = rank.shared != nullptr, supervised = rank.folder.has_value();
  RankLog log;
  ClaimedFolder claimed;
  std::optional<EndCommand> command;  // of rank 0 in a job without a supervisor, which would run it otherwise
  std::string hang;                   // the explanation of the wait that ends the run
  try {
    const OutputFlush flush;
    if (supervised) log.open(*rank.folder, number, thread);
    if (rank.newcomer) {
      trace_crashes(rank.folder->logs(), number, rank.folder->log(number), false);
      RankRun run{.job = job,
                  .rank = rank,
                  .supervised = true,
                  .same_processors = true,  // until the others tell
                  .command = command,
                  .hang = hang};
      return run_newcomer(run);
    }
    Connected connected = connect_rank(job.config, rank);
    if (!supervised) {
      claimed = agree_on_folder(job, connected.world());
      rank.folder = claimed.folder;
      log.open(*rank.folder, number, thread);
      begin_unsupervised(job, rank, connected);
      if (number == 0 && !job.body) command.emplace(job.config.watch, job.config.name, *rank.folder);
    }
    // Ranks that are threads crash together, and their process counts as rank 0.
    if (!thread || number == 0) trace_crashes(rank.folder->logs(), number, rank.folder->log(number), !supervised);
    bool same_processors = true;
    if (!thread) {
      log_secret();
      log_kernels();
      same_processors = compare_processors(connected.world());
    }
    RankRun run{.job = job,
                .rank = rank,
                .supervised = supervised,
                .same_processors = same_processors,
                .command = command,
                .hang = hang};
    return run_with_peers(run, std::move(connected.connections));
  } catch (...) {
    const bool other = rank.launched.rank_info.local_rank > 0;
    if (!rank.folder && other && is_known_to_all_ranks(std::current_exception())) return kUsage;
    if (!rank.folder) throw;
    const auto error = log_exception(explain(std::current_exception(), hang), job.sources);
    const int status = record_end(error, rank, supervised);
    if (command) command->run(status, message_of(error));
    return status;
  }
}

SharedByThreads prepare_threads(const Job& job, const RunFolder& folder) {
  RankLog log;
  log.open(folder, 0, /*thread=*/true);
  try {
    log_secret();
    log_kernels();
    return {.store = make_hash_store(Seconds(job.config.framework.timeout)), .splits = make_data(job, true)};
  } catch (...) {
    std::rethrow_exception(log_exception(std::current_exception(), job.sources));
  }
}

}  // namespace phalanx
