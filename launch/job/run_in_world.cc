// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_in_world.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/hooks/planned_fault.h"
#include "engine/hooks/restarts.h"
#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/ps/recording/recorded_links.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/failure/wrong_result.h"
#include "launch/job/device.h"
#include "launch/job/make_data.h"
#include "launch/job/rank_watches.h"
#include "launch/job/recording.h"
#include "launch/job/recovery_outcome.h"
#include "launch/job/run_header.h"
#include "launch/job/training.h"
#include "launch/job/tune_in_first_steps.h"
#include "launch/signals/stop_signal.h"

namespace phalanx {
namespace {

// The objects of a rank that belong to one world.
struct InWorld {
  CommunicatorPtr world;
  std::shared_ptr<Tuner> tuner;                     // null: algorithms are not tuned in the first steps
  std::shared_ptr<recording::Recorder> recorder{};  // null: the rank is not recorded
  std::optional<PlannedFault> fault{};
  bool too_few = false;  // ranks: the run is saved after a step
};

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

// Returns the exit status. Resets `role.presence`, since this rank has left the servers then.
int train(RankRun& run, const InWorld& in, Role& role, const ExperimentConfig& config, ExperimentContext& context) {
  const auto& recorder = in.recorder;
  std::shared_ptr<const EndOfTraining> end;
  context.recorded_bytes = recorded_bytes(config, context.world, [&] { return recorder ? recorder->bytes() : 0; });
  context.add_hooks = [&](Engine& engine) {
    if (recorder) end = attach(recorder, engine);
    write_inputs_at_start(config, context)(engine);
    if (in.tuner != nullptr) tune_in_first_steps(in.tuner, role.world)(engine);
    if (in.fault) add_fault(*in.fault, run, context.world, engine);
    if (run.recovery && context.world->rank() == 0) note_when_training_begins(engine, *run.rank.folder);
    if (run.recovery && run.recovery->rebuilt) tell_when_it_goes_on(*run.recovery, *context.world, engine);
    run.presence->hooks()(engine);
  };
  if (run.recovery && role.presence) watch_servers(*role.presence, context);
  const ExperimentResult result = run_experiment(config, context);
  role.presence.reset();
  if (recorder) recorder->end_run(end->step, end->parameters);
  const int status = report_end(config, result, context);
  if (in.too_few && result.stopped) throw too_few_ranks(*run.recovery, in.world->size(), config, result.steps);
  if (run.command) run.command->run(status, "");
  return status;
}

// Lets the launcher know that the run has ended with this status, which it returns.
int completed(const StartedRank& rank, const Communicator& world, int status) {
  if (rank.completed && world.rank() == 0 && !is_failure(status)) rank.completed(status);
  return status;
}

// Trains, or runs the job's own body, on the device of this rank. Returns the exit status.
int compute(RankRun& run, InWorld& in, Role& role, const ExperimentConfig& config) {
  const DeviceAssignment placed = choose_devices(config, role.world);
  const Splits& splits = *run.splits;
  in.too_few = run.recovery && in.world->size() < config.faults.min_ranks;
  in.fault = planned_fault();
  ExperimentContext context{
      .world = placed.world,
      .device = placed.device,
      .splits = in.fault ? with_planned_fault(*in.fault, placed.world->rank(), splits) : splits,
      .folder = *run.rank.folder,
      .servers = role.servers,
      .terminal = on_terminal(),
      .started = run.job.started,
      .stop_asked = in.too_few ? std::function<bool()>([] { return true; }) : stop_requested,
      .same_processors = run.same_processors,
      .recovery = run.recovery,
      .newcomers_wait = [&run, world = in.world] { return world->rank() == 0 && run.newcomers_wait(); }};
  if (run.supervised) count_wrong_results(run.rank, run.wrong_before, context);
  return completed(run.rank, *in.world,
                   run.job.body ? run.job.body(config, context) : train(run, in, role, config, context));
}

}  // namespace

int run_in_world(RankRun& run, Connections connections, const ExperimentConfig& config) {
  const Job& job = run.job;
  const StartedRank& rank = run.rank;
  const std::string connected_by = connections.front().backend;
  const DecoratedWorld decorated = decorate(std::move(connections), config, rank.folder->tuned());
  InWorld in{.world = decorated.world, .tuner = decorated.tuner};
  if (!job.body) in.recorder = start_recording(config, rank.launched.rank_info, connected_by, *rank.folder, in.world);
  if (!run.splits) run.splits = rank.shared != nullptr ? rank.shared->splits : make_data(job, rank.rank() == 0);
  const auto stall_watch = watch_for_stalls(config, *in.world, *rank.folder, *run.presence, run.hang);
  Role role = assign_role(config, in.world, in.recorder ? ps::record_links(in.recorder) : nullptr,
                          run.recovery ? &run.role : nullptr);
  if (role.server != nullptr) {
    if (run.recovery) run.recovery->serves = true;
    run.presence->enter(Activity::kServing);
    return serve(role, Seconds(config.framework.timeout));
  }
  const auto loader_deadline = limit_loader(config, rank, *run.presence, run.supervised);
  return compute(run, in, role, config);
}

}  // namespace phalanx
