// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/experiment.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/build/replicated_tensors.h"
#include "engine/build/split_loader.h"
#include "engine/build/whole_model.h"
#include "engine/checkpoint/numbers_part.h"
#include "engine/config/defaults.h"
#include "engine/config/measured_check.h"
#include "engine/config/meter_check.h"
#include "engine/experiment/evaluation_loop.h"
#include "engine/experiment/expected_run.h"
#include "engine/experiment/flipped_bits.h"
#include "engine/experiment/results.h"
#include "engine/experiment/trainer.h"
#include "engine/hooks/checkpointing.h"
#include "engine/hooks/planned_fault.h"
#include "engine/hooks/report.h"
#include "engine/hooks/server_moves.h"
#include "engine/hooks/stop_vote.h"
#include "engine/hooks/unreadable_samples.h"
#include "engine/plan/traffic_check.h"
#include "engine/strategies/replica_check.h"
#include "framework/base/error.h"
#include "framework/base/resident_memory.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

/// The parts of a run on one rank, which its hooks connect.
struct Run {
  const ExperimentConfig& config;
  const ExperimentContext& context;
  Trainer& trainer;
  Report& report;
  EvaluationLoop& evaluations;
  ReplicaCheck& replica_check;
  StopVote& vote;
  ServerMoves& moves;
  Checkpointing& checkpointing;
  TrafficCheck* traffic;  // null: nothing is expected of the communication

  const Replica& replica() const { return trainer.replica; }
};

bool due(std::int64_t every, std::int64_t count) { return every > 0 && count % every == 0; }

std::function<bool()> time_limit(const TrainConfig& train, std::chrono::steady_clock::time_point started) {
  return [limit = train.max_seconds, started] {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    return limit > 0 && elapsed.count() >= limit;
  };
}

Report::Start start_of(const ExperimentConfig& config, const Splits& splits, const Replica& replica) {
  return {.training_samples = splits.train->size(),
          .validation_samples = splits.validation ? splits.validation->size() : 0,
          .test_samples = splits.test ? splits.test->size() : 0,
          .parameters = parameter_count(*replica.part),
          .strategy = replica.settings.strategy.selected(),
          .selected = config.strategy.selected() == "auto"};
}

// Throws ConfigError if something depends on a metric that no meter measures. Called before the first step instead of
// at the first evaluation: meters know the names of their metrics even if they have seen nothing. Collective.
void check_metrics(const Run& run) {
  const auto& config = run.config;
  Evaluation& evaluation = run.evaluations.evaluation();
  const Metrics measured = evaluation.names();
  for (const auto& name : run.trainer.learning_rate->schedule().monitored_metrics()) {
    if (std::ranges::count(measured, name, &Metrics::value_type::first) > 0) continue;
    throw ConfigError("schedule: watches \"" + name + "\", which none of evaluate.meters measures; add the meter");
  }
  run.evaluations.early_stop().check(measured);
  run.checkpointing.check_metric(measured);
  check_directions(config);
  Communicator& batch = *run.replica().mesh().control(kBatchAxes);
  check_measured(config.expect, {.train = MeterSet(config.watch.meters).take(batch),
                                 .evaluation = measured,
                                 .has_validation = evaluation.has_validation()});
  if (run.traffic != nullptr) run.traffic->check(run.replica());
}

// Sums the weights of the batch over the ranks, because the mean loss of the global batch is a weighted mean over all
// ranks.
void add_up_weight(const Mesh& mesh, Batch& batch) {
  if (!batch.row_weights.defined()) return;
  const at::Tensor weight = at::full({1}, batch.weight(), at::kDouble);
  mesh.control(kBatchAxes)->all_reduce(weight, Reduction::kSum).wait();
  batch.global_weight = weight.item<double>();
}

void add_parts(const Run& run) {
  Checkpointing& checkpointing = run.checkpointing;
  if (run.trainer.shares->measured()) checkpointing.add(run.trainer.shares->part());
  if (auto part = run.trainer.embeddings->part()) checkpointing.add(*std::move(part));
  for (auto& part : run.report.parts()) checkpointing.add(std::move(part));
  for (auto& part : run.replica().parts()) checkpointing.add(std::move(part));
  checkpointing.add(numbers_part(
      "replica_check", [&check = run.replica_check] { return std::vector<double>{check.due() ? 1.0 : 0.0}; },
      [&check = run.replica_check](const std::vector<double>& due) { check.set_due(!due.empty() && due[0] != 0); }));
  EarlyStop& early_stop = run.evaluations.early_stop();
  checkpointing.add(numbers_part(
      "early_stop/" + run.config.train.early_stop.metric + "/" + run.config.train.early_stop.best,
      [&early_stop] { return early_stop.state(); },
      [&early_stop](const std::vector<double>& state) { early_stop.load(state); }));
}

void add_hooks(const Run& run) {
  Trainer& trainer = run.trainer;
  Engine& engine = *trainer.engine;
  LearningRate& rate = *trainer.learning_rate;
  const RunLength& length = trainer.length;
  run.checkpointing.continuation().follow(engine);
  trainer.watching->attach(engine, length);
  const Replica& replica = run.replica();
  trainer.watching->gradient_norms().attach(engine, replica.flat->parameters, replica.mesh().control(kReplicaAxes),
                                            replica.mesh().world()->rank());
  engine.on(Event::kSample, HookPhase::kSchedule,
            [&run](State& state) { add_up_weight(run.replica().mesh(), state.batch); });
  engine.on(Event::kSample, HookPhase::kSchedule,
            [&rate, &length](State& state) { rate.set(length.configured_step(state.epoch, state.cursor)); });
  trainer.embeddings->attach(engine, [&rate](std::int64_t step) { return rate.factor(step); });
  engine.on(Event::kStart, HookPhase::kAfterCheckpoint, [&run](State&) { run.replica_check.start(); });
  engine.on(Event::kUpdate, HookPhase::kSynchronize, [&run](State& state) {
    run.replica_check.after_step(state.step, run.replica().strategy().replicas_equal());
  });
  run.vote.attach(engine);
  if (run.traffic != nullptr) run.traffic->attach(engine, length);
  run.report.attach(engine);
  engine.on(Event::kUpdate, HookPhase::kEvaluate, [&run, &length](State& state) {
    state.stop |= state.step >= length.steps;
    const bool end_of_epoch = length.ends_epoch(state.epoch, state.cursor) || state.step >= length.steps;
    if (!end_of_epoch && due(run.config.evaluate.every_steps, state.step)) {
      run.evaluations.evaluate_while_training(state);
    }
  });
  engine.on(Event::kEndEpoch, HookPhase::kEvaluate, [&run](State& state) {
    const auto& evaluate = run.config.evaluate;
    if (run.vote.stopped() || run.evaluations.last().step == state.step) return;
    if (due(evaluate.every_epochs, state.epoch + 1) || due(evaluate.every_steps, state.step)) {
      run.evaluations.evaluate_while_training(state);
    }
  });
  trainer.shares->attach(engine);
  add_parts(run);
  run.checkpointing.attach(engine);
  run.moves.attach(engine);
  engine.on(Event::kStart, HookPhase::kAfterCheckpoint, [&run, &rate, &length](State& state) {
    state.stop |= run.evaluations.early_stop().stopped();
    const auto next = length.configured_step(state.epoch, state.cursor);
    if (next > 0) rate.set(next - 1);  // rate of the last step, until the next one
    run.replica().step->start(state.step);
  });
  run.context.add_hooks(engine);
  engine.on(Event::kUpdate, HookPhase::kLast, [&run](State& state) {
    if (!run.vote.awaited() || state.stop) return;
    run.vote.settle();
    run.checkpointing.settle();  // nobody would complete the checkpoint that is being written otherwise
    run.checkpointing.continuation().prepare_for_newcomers(state);
    // Completes what else is in flight, such as the vote of the NaN guard. The exception would abandon it, and with it
    // the world that the ranks still need.
    run.replica().mesh().control()->barrier().wait();
    throw NewcomersWait();
  });
}

// Returns the floating-point operations of training on one sample. 0: nothing was counted. Collective.
double operations_per_sample(const Replica& replica) {
  const auto* const counted = replica.step->counted();
  const at::Tensor operations = at::full({1}, counted == nullptr ? 0 : counted->operations(), at::kDouble);
  replica.mesh().control()->all_reduce(operations, Reduction::kSum).wait();
  const bool has_samples = counted != nullptr && counted->samples() > 0;
  return has_samples ? operations.item<double>() / static_cast<double>(counted->samples()) : 0;
}

// Returns the result of a run of this many steps, without the evaluations. Collective.
ExperimentResult result_after(const Run& run, std::int64_t steps) {
  const Replica& replica = run.replica();
  Metrics metrics = replica.strategy().metrics();
  if (run.moves.moves() > 0) metrics.emplace_back("server_moves", static_cast<double>(run.moves.moves()));
  for (auto& metric : run.trainer.embeddings->metrics()) metrics.push_back(std::move(metric));
  for (auto& metric : replica.pipeline_metrics()) metrics.push_back(std::move(metric));
  const auto shares = run.trainer.shares->shares();
  return {.steps = steps,
          .stopped = run.vote.stopped(),
          .time_up = run.vote.time_up(),
          .early_stop = run.evaluations.early_stop().reason(),
          .failed_checkpoints = run.checkpointing.failed(),
          .repaired_tensors = run.replica_check.repaired(),
          .bucket_bytes = replica.settings.bucket_bytes,
          .operations_per_sample = operations_per_sample(replica),
          .shares = shares == nullptr ? std::vector<std::int64_t>{} : *shares,
          .train = run.report.last_training(),
          .chosen_by = run.evaluations.decides(),
          .strategy = replica.settings.strategy.selected(),
          .metrics = std::move(metrics),
          .update = replica.update->metrics(),
          .model = replica.part->model,
          .recorded_bytes = run.context.recorded_bytes()};
}

// Evaluates the final model. The test split is measured only here, unless it also serves as the validation split.
ExperimentResult evaluate_at_end(const Run& run, const State& end) {
  EvaluationLoop& evaluations = run.evaluations;
  // `end` is in an epoch that never began.
  const auto epoch = end.epoch - 1;
  const State last{.epoch = epoch, .step = end.step, .cursor = run.trainer.length.batches_of(epoch)};
  if (!run.vote.stopped()) evaluations.evaluate_final_model(last);
  ExperimentResult result = result_after(run, end.step);
  if (!evaluations.evaluation().has_validation()) {
    result.test = evaluations.last().metrics;
  } else {
    result.validation = evaluations.last().metrics;
    if (!run.vote.stopped()) result.test = evaluations.measure("test", last);
  }
  return result;
}

// Returns the peak memory of each rank's process. Collective.
std::vector<std::int64_t> peak_memory_of(Communicator& ranks) {
  std::vector<std::int64_t> peaks(static_cast<std::size_t>(ranks.size()));
  const at::Tensor all = at::zeros({ranks.size()}, at::kLong);
  const MeasuredInputs measured;
  ranks.all_gather(all, at::full({1}, peak_resident_bytes(), at::kLong)).wait();
  std::copy_n(all.data_ptr<std::int64_t>(), peaks.size(), peaks.begin());
  return peaks;
}

// Compares the run with its expectations, unless it was stopped. Ranks differ in times, so rank 0 decides for all.
// Collective.
void compare_with_expectations(const Run& run, const State& end, ExperimentResult& result) {
  Communicator& ranks = *run.replica().mesh().control();
  result.peak_memory = peak_memory_of(ranks);  // before a plan takes memory too
  if (result.stopped) return;
  std::optional<TrafficComparison> traffic;
  if (run.traffic != nullptr) traffic = run.traffic->compare(run.context.splits, run.replica());
  if (traffic) result.traffic = traffic->seen;
  if (ranks.rank() == 0) {
    result.expectations = compare(run.config.expect, {.train = result.train,
                                                      .validation = result.validation,
                                                      .test = result.test,
                                                      .milestones = run.report.milestones(),
                                                      .epochs = end.epoch,
                                                      .samples_per_second = run.report.times().samples_per_second(),
                                                      .peak_memory = result.peak_memory,
                                                      .traffic = traffic});
  }
  const MeasuredInputs measured;  // speed and memory may be among the expectations
  result.unmet = broadcast_text(list_unmet(result.expectations), ranks);
}

// Writes the results. On a full disk, a stopped run can write neither its checkpoint nor its weights; then the error
// has both reasons.
void finish(const Run& run, const ExperimentResult& result) {
  const bool wanted = run.config.checkpoint.final_weights;
  run.report.end_progress();
  try {
    run.replica().as_evaluated([&] {
      write_results(run.config, run.context, result, run.report.times(), run.replica().whole_weights(wanted));
    });
  } catch (const DataError& error) {
    const auto unsaved = run.checkpointing.why_unsaved();
    if (unsaved.empty()) throw;
    throw DataError(unsaved + "\n" + error.what());
  }
}

// Trains, evaluates the final model, and writes the results.
ExperimentResult train(const Run& run, const UnreadableSamples& data) {
  Trainer& trainer = run.trainer;
  const Replica& replica = trainer.replica;
  replica.broadcast_buffers();
  check_metrics(run);
  add_hooks(run);
  const State end =
      trainer.engine->train(replica.flat->parameters, *trainer.loader, {.epochs = run.config.train.epochs});
  run.evaluations.end_training();
  run.replica_check.at_end(end.step);
  ExperimentResult result = evaluate_at_end(run, end);
  result.unreadable = data.count(*replica.mesh().samples());
  compare_with_expectations(run, end, result);
  if (run.config.checkpoint.final_weights) trainer.embeddings->write_rows(run.context.folder.embeddings());
  finish(run, result);
  replica.unshard();
  // Rank 0 must have written everything before any rank ends, because launchers end the other ranks if one fails.
  replica.mesh().control()->barrier().wait();
  run.checkpointing.check();
  run.evaluations.throw_if_diverged();
  return result;
}

// Does the same. If a peer is lost, or others wait to take part, the state of this rank is kept for a run on the ranks
// that are left.
ExperimentResult train_or_carry(const Run& run, const UnreadableSamples& data) {
  try {
    return train(run, data);
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kPeerLost) throw;
    const auto& recovery = run.context.recovery;
    if (recovery && !recovery->noticed) recovery->noticed = std::chrono::steady_clock::now();
    run.checkpointing.continuation().carry();
    throw;
  } catch (const NewcomersWait&) {
    if (!run.context.recovery->noticed) run.context.recovery->noticed = std::chrono::steady_clock::now();
    run.checkpointing.continuation().carry();
    throw;
  }
}

// Builds everything that the config asks for, in this order, and runs it. `config` has the task's defaults.
ExperimentResult run_complete(const ExperimentConfig& config, const ExperimentContext& context, Task& task,
                              UnreadableSamples& data, TrafficCheck* traffic) {
  Trainer trainer = build_trainer(config, data.splits(), task, context);
  const Replica& replica = trainer.replica;
  const CommunicatorPtr& all = replica.mesh().control();
  const auto delay = replica.settings.strategy.traits().steps_ahead;
  const bool pipelined = config.mesh.pipe > 1;
  const RunLength& length = trainer.length;
  const bool goes_on = context.recovery != nullptr && context.recovery->rebuilt;

  Report report({.config = config,
                 .folder = context.folder,
                 .replica = replica,
                 .clock = trainer.watching->clock(),
                 .gradient_norms = trainer.watching->gradient_norms(),
                 .device = context.device,
                 .terminal = context.terminal,
                 .started = context.started,
                 .length = length,
                 .recovery = context.recovery.get(),
                 .goes_on = goes_on && replica.goes_on_from_own_state()});
  EvaluationLoop evaluations(config, data.splits(), trainer, report);
  const auto compared = replicated_tensors(replica, trainer.engine->slices(), config.train.sync_batch_norm);
  const bool comparable = context.same_processors || config.replica_check.repair;
  ReplicaCheck replica_check(compared, {.repair = config.replica_check.repair,
                                        .every_steps = comparable ? config.replica_check.every_steps : 0,
                                        .world_rank = replica.mesh().world()->rank(),
                                        .ends_on_repetition = config.launch.restarts > 0,
                                        .wrong_before = context.wrong_before,
                                        .on_wrong = context.computed_wrongly});
  StopVote vote(all, context.stop_asked, time_limit(config.train, context.started), delay, pipelined,
                context.newcomers_wait);
  ServerMoves moves(
      {.file = config.roles.servers_file, .delay = delay, .asynchronous = pipelined, .shown = config.watch.progress},
      all, context.servers);
  Checkpointing checkpointing({.config = config,
                               .folder = context.folder,
                               .replica = replica,
                               .schedule = trainer.learning_rate->schedule(),
                               .nan_guard = trainer.watching->nan_guard(),
                               .vote = vote,
                               .last_evaluation = evaluations.last(),
                               .length = trainer.length,
                               .loader = *trainer.continued,
                               .fitted = context.splits.fitted,
                               .recovery = context.recovery.get()});
  evaluations.on_divergence([&] {
    checkpointing.settle();                     // the last good checkpoint may not be complete yet
    trainer.watching->nan_guard().check_now();  // the cause may be in training
  });
  context.add_evaluation_hooks(evaluations.evaluation().evaluator());
  if (!goes_on) report.report_start(start_of(config, data.splits(), replica));
  data.start();
  const auto fault = planned_fault();
  if (fault) attach_flip(*fault, replica, compared, context.world, *trainer.engine);
  return train_or_carry(
      {config, context, trainer, report, evaluations, replica_check, vote, moves, checkpointing, traffic}, data);
}

}  // namespace

ExperimentResult run_experiment(const ExperimentConfig& config, const ExperimentContext& context) {
  const SampleSpec& sample = context.splits.train->spec();
  const auto task = config.task.make(sample, config.loss.make());
  const ExperimentConfig complete = with_defaults_of(*task, config);
  check_meters(*task, sample, complete);
  UnreadableSamples data(complete.loader, with_held_out(context.splits, config));
  ExperimentContext counted = context;
  std::optional<TrafficCheck> traffic;
  if (complete.expect.traffic.tolerance) counted.world = traffic.emplace(complete, context.world).world();
  auto result = run_complete(complete, counted, *task, data, traffic ? &*traffic : nullptr);
  if (!result.unmet.empty()) throw ExpectationError(result.unmet);
  return result;
}

}  // namespace phalanx
