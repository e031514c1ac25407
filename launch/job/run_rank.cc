// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_rank.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/hooks/planned_fault.h"
#include "engine/hooks/restarts.h"
#include "framework/base/config/locate.h"
#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "framework/base/log.h"
#include "framework/base/reason.h"
#include "framework/kernels/kernels.h"
#include "framework/ps/recording/recorded_links.h"
#include "framework/ps/server_lost.h"
#include "launch/exit_status.h"
#include "launch/failure/crash_trace.h"
#include "launch/failure/failure.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/report_once.h"
#include "launch/failure/wrong_result.h"
#include "launch/job/agree.h"
#include "launch/job/bind_cores.h"
#include "launch/job/device.h"
#include "launch/job/end_command.h"
#include "launch/job/make_data.h"
#include "launch/job/rank_presence.h"
#include "launch/job/recording.h"
#include "launch/job/role.h"
#include "launch/job/run_header.h"
#include "launch/job/shrinking_world.h"
#include "launch/job/training.h"
#include "launch/job/tune_in_first_steps.h"
#include "launch/job/world.h"
#include "launch/local/print_to_console.h"
#include "launch/rank/local_rank.h"
#include "launch/rank/rendezvous_notice.h"
#include "launch/rank/same_start.h"
#include "launch/signals/stop_signal.h"
#include "launch/stall/loader_deadline.h"
#include "launch/stall/stall_watch.h"

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

// Returns null if there is nothing to watch. `sentence` gets the explanation of the wait that ends the run; it must
// outlive the watch, and nobody may read it before.
std::unique_ptr<StallWatch> watch_for_stalls(const ExperimentConfig& config, const Communicator& world,
                                             const RunFolder& folder, const RankPresence& presence,
                                             std::string& sentence) {
  const Seconds warn_after(config.framework.warn_after);
  if (warn_after.count() <= 0 || world.size() == 1) return nullptr;
  return std::make_unique<StallWatch>(
      world, StallWatch::Options{.log_folder = folder.logs(),
                                 .warn_after = warn_after,
                                 .print = print_to_console,
                                 .timeout = Seconds(config.framework.timeout),
                                 .dataset = config.dataset.selected(),
                                 .page = presence.page(),
                                 .names = presence.names(),
                                 .explained = [&sentence](const std::string& text) { sentence = text; }});
}

// Ends the process of a rank whose loader gives no batch. The thread of the rank may hang for good, so nothing is
// destroyed.
[[noreturn]] void end_without_batch(const std::string& reason, const StartedRank& rank, bool supervised) {
  log_error() << reason;
  const auto error = std::make_exception_ptr(DataError(reason));
  const RunFolder& folder = *rank.folder;
  const int status = record_exception(error, rank.rank(), folder.logs(), folder.log(rank.rank()));
  if (!supervised) report_once(folder.logs(), rank.launched.rank_info.size);
  ::_exit(status);
}

// Returns null if the loader may take as long as it wants.
std::unique_ptr<LoaderDeadline> limit_loader(const ExperimentConfig& config, const StartedRank& rank,
                                             const RankPresence& presence, bool supervised) {
  const Seconds timeout(config.loader.timeout);
  if (timeout.count() <= 0 || presence.page() == nullptr) return nullptr;
  return std::make_unique<LoaderDeadline>(LoaderDeadline::Options{
      .page = presence.page(),
      .rank = rank.rank(),
      .dataset = config.dataset.selected(),
      .deadline = timeout,
      .end = [&rank, supervised](const std::string& reason) { end_without_batch(reason, rank, supervised); }});
}

// Returns the error that ended a wait with the sentence that explains the wait, and other errors as they are.
std::exception_ptr explained(const std::exception_ptr& error, const std::string& sentence) {
  if (sentence.empty()) return error;
  try {
    std::rethrow_exception(error);
  } catch (const ps::ServerLost& lost) {
    return std::make_exception_ptr(ps::ServerLost(lost.what() + ("\n" + sentence)));
  } catch (const CommError& comm_error) {
    if (comm_error.kind() == CommError::Kind::kMismatch) return error;
    return std::make_exception_ptr(CommError(comm_error.kind(), comm_error.what() + ("\n" + sentence)));
  } catch (...) {
    return error;
  }
}

// Lets the launcher know of wrong results of this rank, and the rank of earlier ones: before a restart, and before
// other ranks were lost (`wrong_before`, which must outlive the run).
void count_wrong_results(const StartedRank& rank, bool& wrong_before, ExperimentContext& context) {
  const auto before = restarts_of_job().wrong_ranks;
  wrong_before |= std::ranges::find(before, rank.rank()) != before.end();
  context.wrong_before = wrong_before;
  context.computed_wrongly = [&rank, &wrong_before](const std::string& text) {
    wrong_before = true;
    note_wrong_result(rank.folder->logs(), {.rank = rank.rank(), .host = host_name(), .message = text});
  };
}

// Logs an exception and returns it. A ConfigError gets its place.
std::exception_ptr logged(const std::exception_ptr& error, const config::Sources& sources) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& config_error) {
    const ConfigError with_place = config::located(config_error, sources);
    log_error() << with_place.what();
    return std::make_exception_ptr(with_place);
  } catch (const std::exception& other) {
    log_error() << other.what();
  } catch (...) {
    log_error() << "an exception that is not a std::exception";
  }
  return error;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return reason(known);
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

// Records the exception that has ended a rank for the process that reports it, and returns the exit status.
int fail(const std::exception_ptr& error, const Job& job, const StartedRank& rank, bool supervised,
         const std::optional<EndCommand>& command) {
  const RunFolder& folder = *rank.folder;
  const std::exception_ptr located = logged(error, job.sources);
  const int status = record_exception(located, rank.rank(), folder.logs(), folder.log(rank.rank()));
  if (!supervised) report_once(folder.logs(), rank.launched.rank_info.size);
  if (command) command->run(status, message_of(located));
  return status;
}

// Returns true if the other ranks of this host need not report the exception, since all ranks have the same one.
bool is_known_to_all_ranks(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StartMismatch&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The state that a rank keeps while the ranks that train become fewer.
struct RankRun {
  const Job& job;
  const StartedRank& rank;
  const bool supervised;
  bool same_processors;
  std::optional<EndCommand>& command;
  std::string& hang;  // the explanation of the wait that ends the run
  std::unique_ptr<RankPresence> presence{};
  std::optional<Splits> splits{};
  KeptRole role{};                       // if the job goes on without lost ranks
  bool wrong_before = false;             // this rank has computed wrongly
  std::shared_ptr<Recovery> recovery{};  // null: a lost rank ends the job
  std::function<bool()> newcomers_wait = [] { return false; };
};

// Adds the hooks of a planned fault: the one of this rank, if it has a part in it, and those that concern newcomers.
void add_fault(const PlannedFault& fault, const RankRun& run, const CommunicatorPtr& world, Engine& engine) {
  if (const auto planned = planned_hook(fault, world)) engine.on(planned->event, planned->hook);
  if (run.rank.newcomer) engine.on(Event::kUpdate, [fault](State&) { end_newcomer(fault, "trains"); });
  if (!run.recovery) return;
  const bool complete = world->size() >= run.job.config.launch.ranks;  // more if hosts have joined
  engine.on(Event::kUpdate, HookPhase::kSynchronize, [fault, &run, complete](State& state) {
    await_newcomers(fault, state, [&] { return complete || run.newcomers_wait(); });
  });
}

// Notes for the launcher that there is something to go on with from now on.
void note_when_training_begins(Engine& engine, const RunFolder& folder) {
  engine.on(Event::kStart, HookPhase::kLast, [logs = folder.logs()](State&) { note_training(logs); });
}

// Makes a rank that trains look for lost servers and ranks in each step, since it may wait for none of them for long.
// After training, nothing on the servers is needed any more, and the ranks that train wait for each other.
void watch_servers(const ServerPresence& presence, ExperimentContext& context) {
  const auto trained = std::make_shared<bool>(false);
  context.add_evaluation_hooks = [&presence, trained](Evaluator& evaluator) {
    evaluator.on(Event::kForward, [&presence, trained](State&) {
      if (!*trained) presence.check();
    });
  };
  context.add_hooks = [&presence, trained, others = std::move(context.add_hooks)](Engine& engine) {
    others(engine);
    engine.on(Event::kUpdate, HookPhase::kLast, [&presence](State&) { presence.check(); });
    engine.on(Event::kEnd, HookPhase::kFirst, [trained](State&) { *trained = true; });
  };
}

// Runs the rank from its connections to the end, in a world of the ranks that there are. `config` is that of the job,
// for these ranks.
int run_in_world(RankRun& run, Connections connections, const ExperimentConfig& config) {
  const Job& job = run.job;
  const StartedRank& rank = run.rank;
  const RankPresence& presence = *run.presence;
  const std::shared_ptr<Recovery>& recovery = run.recovery;
  const bool thread = rank.shared != nullptr;
  const std::string connected_by = connections.front().backend;
  const DecoratedWorld decorated = decorate(std::move(connections), config, rank.folder->tuned());
  CommunicatorPtr world = decorated.world;
  const auto recorder =
      job.body ? nullptr : start_recording(config, rank.launched.rank_info, connected_by, *rank.folder, world);
  if (!run.splits) run.splits = thread ? rank.shared->splits : make_data(job, rank.rank() == 0);
  const Splits& splits = *run.splits;
  const auto stall_watch = watch_for_stalls(config, *world, *rank.folder, presence, run.hang);
  Role role =
      assign_role(config, world, recorder ? ps::record_links(recorder) : nullptr, recovery ? &run.role : nullptr);
  if (role.server != nullptr) {
    if (recovery) recovery->serves = true;
    presence.enter(Activity::kServing);
    return serve(role, Seconds(config.framework.timeout));
  }
  const auto loader_deadline = limit_loader(config, rank, presence, run.supervised);
  const DeviceAssignment placed = choose_devices(config, role.world);
  const bool too_few = recovery && world->size() < config.faults.min_ranks;
  const auto fault = planned_fault();
  ExperimentContext context{.world = placed.world,
                            .device = placed.device,
                            .splits = fault ? with_planned_fault(*fault, placed.world->rank(), splits) : splits,
                            .folder = *rank.folder,
                            .servers = role.servers,
                            .terminal = on_terminal(),
                            .started = job.started,
                            .stop_asked = too_few ? std::function<bool()>([] { return true; }) : stop_requested,
                            .same_processors = run.same_processors,
                            .recovery = recovery,
                            .newcomers_wait = [&run, world] { return world->rank() == 0 && run.newcomers_wait(); }};
  if (run.supervised) count_wrong_results(rank, run.wrong_before, context);
  if (job.body) return job.body(config, context);
  std::shared_ptr<const EndOfTraining> end;
  context.recorded_bytes = recorded_bytes(config, context.world, [&] { return recorder ? recorder->bytes() : 0; });
  context.add_hooks = [&](Engine& engine) {
    if (recorder) end = attach(recorder, engine);
    write_inputs_at_start(config, context)(engine);
    if (decorated.tuner != nullptr) tune_in_first_steps(decorated.tuner, role.world)(engine);
    if (fault) add_fault(*fault, run, context.world, engine);
    if (recovery && context.world->rank() == 0) note_when_training_begins(engine, *rank.folder);
    if (recovery && recovery->rebuilt) tell_when_it_goes_on(*recovery, *context.world, engine);
    presence.hooks()(engine);
  };
  if (recovery && role.presence) watch_servers(*role.presence, context);
  const ExperimentResult result = run_experiment(config, context);
  role.presence.reset();
  if (recorder) recorder->end_run(end->step, end->parameters);
  const int status = report_end(config, result, context);
  if (too_few && result.stopped) throw too_few_ranks(*recovery, world->size(), config, result.steps);
  if (run.command) run.command->run(status, "");
  return status;
}

// The reason for which ranks go on in another world.
struct Change {
  std::exception_ptr loss{};  // the error by which a loss was noticed; null: none
  bool newcomers = false;     // they wait to take part
};

// Changes the world until training can go on in it. Returns false if this rank has left it.
bool change_world(ShrinkingWorld& ranks, RankRun& run, Change change) {
  while (true) {
    // Replicas that differ are such an error, too, and it may be unknown which of them is wrong.
    if (change.loss && !ranks.shrink(*run.recovery)) std::rethrow_exception(change.loss);
    if (ranks.leaves()) return false;
    try {
      if (change.newcomers) ranks.grow(run.rank.launched, *run.recovery);
      change = {.newcomers = ranks.await_newcomers(stop_requested)};
      if (!change.newcomers) return true;
    } catch (const CommError& error) {
      if (error.kind() != CommError::Kind::kPeerLost) throw;
      log_warning() << "a rank is lost while newcomers connect, or the others wait for them: " << error.what();
      change = {.loss = std::current_exception()};
    }
  }
}

// Runs the rank while ranks are lost and newcomers take their places, after a first change.
int run_while_ranks_change(RankRun& run, ShrinkingWorld& ranks) {
  const std::string logs = run.rank.folder->logs();
  run.newcomers_wait = [&ranks] { return ranks.newcomers_wait(); };
  Change change;
  while (change_world(ranks, run, change)) {
    run.hang.clear();
    run.same_processors = run.same_processors && ranks.same_processors();
    run.presence = std::make_unique<RankPresence>(ranks.world().rank(), ranks.world().size(), logs);
    try {
      return run_in_world(run, ranks.connections(), ranks.config());
    } catch (const NewcomersWait&) {
      log_info() << "ranks wait to take part";
      change = {.newcomers = true};
    } catch (const CommError& error) {
      // Before the first step, there is nothing to go on with, and the error may be that of the whole job.
      if (error.kind() != CommError::Kind::kPeerLost || !run.recovery->can_go_on()) throw;
      log_warning() << "a rank is lost: " << error.what();
      change = {.loss = std::current_exception()};
    }
    run.presence.reset();
  }
  return kDone;
}

// Runs the rank, and goes on with the ranks that are left when others are lost, if the config says so.
int run_with_peers(RankRun& run, Connections connections) {
  const int size = connections.front().group->size();
  const bool alone = size == 1 && !run.job.config.faults.lets_join(1);
  if (!run.job.goes_on() || alone) {
    run.presence = std::make_unique<RankPresence>(run.rank.rank(), size, run.rank.folder->logs());
    return run_in_world(run, std::move(connections), run.job.config);
  }
  run.recovery = std::make_shared<Recovery>();
  const ShrinkingWorld::Rank rank{
      .number_in_job = run.rank.rank(), .thread = run.rank.shared != nullptr, .log_folder = run.rank.folder->logs()};
  ShrinkingWorld ranks(std::move(connections), rank, run.job.config);
  return run_while_ranks_change(run, ranks);
}

// Runs a process that takes the place of a lost rank, once the others let it take part.
int run_newcomer(RankRun& run) {
  const StartedRank& rank = run.rank;
  const auto& config = run.job.config;
  const int share = rank.newcomer->local_rank, shares = rank.newcomer->local_size;
  log_info() << bind_cores(config.launch, {.rank = share, .size = shares, .local_rank = share, .local_size = shares},
                           CoresFrom::kPhalanx);
  const auto fault = planned_fault();
  if (fault) end_newcomer(*fault, "loads");
  run.splits = make_data(run.job, /*prints=*/false);
  if (fault) end_newcomer(*fault, "waits");
  run.recovery = std::make_shared<Recovery>();
  auto joined = ShrinkingWorld::join(*rank.newcomer, {.number_in_job = rank.rank(), .log_folder = rank.folder->logs()},
                                     config, rank.launched, *run.recovery, stop_requested);
  if (!joined) return kInterrupted;
  return run_while_ranks_change(run, *joined);
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
    return fail(explained(std::current_exception(), hang), job, rank, supervised, command);
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
    std::rethrow_exception(logged(std::current_exception(), job.sources));
  }
}

}  // namespace phalanx
