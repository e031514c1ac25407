// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/experiment.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "datasets/resident_loader.h"
#include "engine/checkpoint/numbers_part.h"
#include "engine/early_stop.h"
#include "engine/engine.h"
#include "engine/experiment/checkpointing.h"
#include "engine/experiment/evaluation.h"
#include "engine/experiment/preparation.h"
#include "engine/experiment/replica.h"
#include "engine/experiment/report.h"
#include "engine/experiment/sample_shares.h"
#include "engine/experiment/sequence_share.h"
#include "engine/experiment/served_embeddings.h"
#include "engine/experiment/server_moves.h"
#include "engine/experiment/unreadable_samples.h"
#include "engine/sync/replica_check.h"
#include "engine/watch/stop_vote.h"
#include "engine/watch/watching.h"
#include "framework/base/error.h"
#include "framework/comm/mesh.h"

namespace phalanx {
namespace {

bool due(std::int64_t every, std::int64_t count) { return every > 0 && count % every == 0; }

/// One rank's share of a run: builds the components of the config and runs the engine.
class Experiment {
 public:
  /// `config` must have the task's defaults, and `splits` the held-out split (see run_experiment()). `unreadable`
  /// counts the skipped samples of these splits.
  Experiment(const ExperimentConfig& config, const Splits& splits, UnreadableSamples& unreadable, Task& task,
             const ExperimentContext& context)
      : config_(config),
        folder_(context.folder),
        unreadable_(unreadable),
        task_(task),
        mesh_(context.world, mesh_shape(config.mesh, context.world->size())),
        sequence_(task, splits.train->spec(), mesh_.along(Axis::kContext)),
        watching_(config.watch, mesh_.control(), context.folder),
        replica_(config, task, mesh_, context, watching_),
        embeddings_(config, *replica_.model(), mesh_, context),
        rate_(optimizer().learning_rate()),
        schedule_(config.schedule.make()),
        early_stop_(config.train.early_stop),
        shares_(config, mesh_, watching_.clock()),
        preparation_{[this](Batch& batch) { complete(batch); }, context.device},
        loader_(training_loader(splits.train)),
        evaluation_(config, splits, preparation_, replica_.step().step(), mesh_),
        steps_(total_steps()),
        engine_(replica_.step().step(), optimizer(), replica_.synchronizer()),
        replica_check_(replica_.groups(), config.replica_check.repair, config.replica_check.every_steps),
        vote_(
            mesh_.control(), context.stop_asked, [this, started = context.started] { return time_is_up(started); },
            replica_.agreement().strategy.traits().steps_ahead, config.mesh.pipe > 1),
        moves_({.file = config.roles.servers_file,
                .delay = replica_.agreement().strategy.traits().steps_ahead,
                .apart = config.mesh.pipe > 1,
                .shown = config.watch.progress},
               mesh_.control(), context.servers),
        report_(config, context, {config.train.epochs, steps_, loader_->batches()}, watching_.clock(),
                replica_.update()),
        checkpointing_(checkpointed_run(context, splits.train->size())),
        add_own_hooks_(context.add_hooks) {
    context.add_evaluation_hooks(evaluation_.evaluator());
    report_.tell_start(start_of(splits));
    unreadable_.start();
  }

  ExperimentResult run() {
    replica_.broadcast_buffers();
    // Check before the first step instead of at the first evaluation: meters know the names of their readings even if
    // they have seen nothing.
    check_metrics(evaluation_.names());
    add_hooks();
    const State end = engine_.train(replica_.parameters(), *loader_, {.epochs = config_.train.epochs});
    trained_ = true;
    replica_check_.at_end(end.step);
    ExperimentResult result = evaluate_at_end(end);
    result.unreadable = unreadable_.count(*mesh_.samples());
    if (config_.checkpoint.final_weights) embeddings_.write_rows(folder_.embeddings());
    finish(result);
    replica_.keep_values();
    // Rank 0 must have written everything before any rank ends, because launchers end the other ranks if one fails.
    mesh_.control()->barrier().wait();
    checkpointing_.check();
    if (!diverged_.empty()) throw_diverged(diverged_);
    return result;
  }

 private:
  // Writes the results. On a full disk, a stopped run can write neither its checkpoint nor its weights; then the error
  // has both reasons.
  void finish(const ExperimentResult& result) {
    try {
      replica_.as_evaluated([&] { report_.finish(result, replica_.whole_weights(config_.checkpoint.final_weights)); });
    } catch (const DataError& error) {
      const auto unsaved = checkpointing_.why_unsaved();
      if (unsaved.empty()) throw;
      throw DataError(unsaved + "\n" + error.what());
    }
  }

  std::unique_ptr<Loader> training_loader(const std::shared_ptr<const Dataset>& split) {
    const auto batch = config_.train.global_batch_size;
    const auto& group = *mesh_.samples();
    if (!config_.loader.resident) {
      return embeddings_.ahead_of(
          preparation_.of(make_split_loader(split, batch, config_, SplitUse::kTraining, group, shares_.shares())));
    }
    if (preparation_.device.is_cpu()) {
      throw ConfigError(
          "loader.resident: keeps samples in the memory of a device, but this run computes on the CPU; "
          "leave it out");
    }
    return embeddings_.ahead_of(
        make_resident_loader(split, split_options(*split, batch, config_, SplitUse::kTraining, group, shares_.shares()),
                             preparation_.device, preparation_.complete));
  }

  Optimizer& optimizer() { return replica_.update().optimizer(); }

  Report::Start start_of(const Splits& splits) const {
    Report::Start start{.training_samples = splits.train->size(),
                        .validation_samples = splits.validation ? splits.validation->size() : 0,
                        .test_samples = splits.test ? splits.test->size() : 0,
                        .strategy = replica_.agreement().strategy.selected(),
                        .selected = config_.strategy.selected() == "auto"};
    start.parameters = replica_.whole().parameter_count();
    return start;
  }

  Checkpointing::Run checkpointed_run(const ExperimentContext& context, std::int64_t samples) {
    return {.config = config_,
            .folder = context.folder,
            .world = mesh_.control(),
            .mesh = mesh_,
            .device = context.device,
            .engine = engine_,
            .parameters = replica_.parameters(),
            .placements = replica_.placements(),
            .elsewhere = replica_.elsewhere(),
            .model = *replica_.model(),
            .optimizer = optimizer(),
            .schedule = *schedule_,
            .synchronizer = replica_.synchronizer(),
            .loader = *loader_,
            .vote = vote_,
            .nan_guard = watching_.nan_guard(),
            .last_evaluation = last_,
            .shared_buffers = [this] { return replica_.shared_buffers(); },
            .samples = samples,
            .fitted = context.splits.fitted,
            .steps = steps_,
            .agreement = describe(replica_.agreement(), config_)};
  }

  std::int64_t total_steps() const {
    const auto steps = config_.train.epochs * loader_->batches();
    return config_.train.max_steps == 0 ? steps : std::min(steps, config_.train.max_steps);
  }

  bool time_is_up(std::chrono::steady_clock::time_point started) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    return config_.train.max_seconds > 0 && elapsed.count() >= config_.train.max_seconds;
  }

  void check_metrics(const Readings& measured) const {
    for (const auto& name : schedule_->watches()) {
      if (std::ranges::count(measured, name, &Readings::value_type::first) > 0) continue;
      throw ConfigError("schedule: watches \"" + name + "\", which none of evaluate.meters reads; add the meter");
    }
    early_stop_.check(measured);
    checkpointing_.check_metric(measured);
    check_directions(config_);
    if (!config_.expect.validation.empty() && !evaluation_.has_validation()) {
      throw ConfigError("expect.validation: there is no validation split; set evaluate.validation");
    }
    check_measured(config_.expect.train, MeterSet(config_.watch.meters).take(*mesh_.control(kBatchAxes)), "train");
    check_measured(config_.expect.validation, measured, "validation");
    check_measured(config_.expect.test, measured, "test");
  }

  void add_hooks() {
    watching_.attach_first(engine_);
    engine_.on(Event::kSample, [this](State& state) { add_up_weight(state.batch); });
    engine_.on(Event::kBackward, [this](State& state) { set_learning_rate(state.step); });
    embeddings_.attach(engine_, [this](std::int64_t step) { return schedule_->factor(step, steps_); });
    engine_.on(Event::kUpdate, [this](State& state) {
      replica_check_.after_step(state.step, replica_.synchronizer().replicas_equal());
    });
    vote_.attach(engine_);
    report_.attach(engine_, mesh_);
    engine_.on(Event::kUpdate, [this](State& state) {
      state.stop |= state.step >= steps_;
      const bool end_of_epoch = state.cursor == loader_->batches() || state.step >= steps_;
      if (!end_of_epoch && due(config_.evaluate.every_steps, state.step)) evaluate_while_training(state);
    });
    engine_.on(Event::kEndEpoch, [this](State& state) {
      const auto& evaluate = config_.evaluate;
      if (vote_.stopped() || last_.step == state.step) return;
      if (due(evaluate.every_epochs, state.epoch + 1) || due(evaluate.every_steps, state.step)) {
        evaluate_while_training(state);
      }
    });
    shares_.attach(engine_);
    add_parts();
    checkpointing_.attach();
    moves_.attach(engine_);
    engine_.on(Event::kStart, [this](State& state) {
      state.stop |= early_stop_.stopped();
      if (state.step > 0) set_learning_rate(state.step - 1);  // rate of the last step, until the next one
      replica_.step().start(state.step);
    });
    add_own_hooks_(engine_);
    watching_.attach_last(engine_, steps_);
  }

  void add_parts() {
    if (shares_.measured()) checkpointing_.add(shares_.part());
    if (auto part = embeddings_.part()) checkpointing_.add(*std::move(part));
    for (auto& part : report_.parts()) checkpointing_.add(std::move(part));
    for (auto& part : replica_.parts()) checkpointing_.add(std::move(part));
    checkpointing_.add(numbers_part(
        "replica_check", [this] { return std::vector<double>{replica_check_.due() ? 1.0 : 0.0}; },
        [this](const std::vector<double>& due) { replica_check_.set_due(!due.empty() && due[0] != 0); }));
    checkpointing_.add(numbers_part(
        "early_stop/" + config_.train.early_stop.metric + "/" + config_.train.early_stop.best,
        [this] { return early_stop_.state(); }, [this](const std::vector<double>& state) { early_stop_.load(state); }));
  }

  void complete(Batch& batch) const {
    task_.prepare(batch);
    if (!values_checked_.exchange(true)) task_.check_values(batch);
    sequence_.cut(batch);
  }

  // Sums the weights of the batch over the ranks, because the mean loss of the global batch is a weighted mean over all
  // ranks.
  void add_up_weight(Batch& batch) const {
    if (!batch.row_weights.defined()) return;
    const at::Tensor weight = at::full({1}, batch.weight(), at::kDouble);
    mesh_.control(kBatchAxes)->all_reduce(weight, Reduction::kSum).wait();
    batch.global_weight = weight.item<double>();
  }

  void set_learning_rate(std::int64_t step) { optimizer().set_learning_rate(rate_ * schedule_->factor(step, steps_)); }

  void evaluate_while_training(State& state) {
    evaluate(state);
    early_stop_.observe(state.step, last_.readings);
    state.stop |= early_stop_.stopped();
  }

  // Evaluates the split by which versions of the model are compared.
  void evaluate(const State& state) {
    evaluated_apart_ = !trained_ && !replica_.synchronizer().replicas_equal();
    two_versions_ |= evaluated_apart_;
    // After the last step, the final model is evaluated as well.
    last_ = {measure(evaluation_.watched(), state, !evaluated_apart_ || state.step < steps_), state.step};
    schedule_->observe(state.step, last_.readings);
  }

  Readings measure(const std::string& split, const State& state, bool shown = true) {
    report_.start_evaluation();
    embeddings_.settle();
    Readings readings;
    replica_.as_evaluated([&] { readings = evaluation_.run(split, state); });
    if (evaluation_.diverged()) {
      checkpointing_.settle();            // the last good checkpoint may not be complete yet
      watching_.nan_guard().check_now();  // the cause may be in training
      if (!trained_) throw_diverged(split);
      if (diverged_.empty()) diverged_ = split;  // thrown after the weights were written
    }
    report_.end_evaluation(state, {split, evaluation_.samples(split), tested_version(), shown}, readings);
    return readings;
  }

  std::string tested_version() const {
    const std::string averages = config_.train.ema_decay > 0 ? "moving average" : "";
    if (evaluated_apart_) return "each rank's own " + (averages.empty() ? "model" : averages);
    if (trained_ && two_versions_) return "final " + (averages.empty() ? "model" : averages);
    return averages;
  }

  // Evaluates the final model. The test split is measured only here, unless it also serves as the validation split.
  ExperimentResult evaluate_at_end(const State& end) {
    const State last{.epoch = end.epoch - 1, .step = end.step};  // `end` is in an epoch that never began
    if (!vote_.stopped() && (last_.step != end.step || evaluated_apart_)) evaluate(last);
    ExperimentResult result = result_after(end.step);
    if (!evaluation_.has_validation()) {
      result.test = last_.readings;
    } else {
      result.validation = last_.readings;
      if (!vote_.stopped()) result.test = measure("test", last);
    }
    return result;
  }

  // Returns the floating-point operations of training on one sample. 0: nothing was counted. Collective.
  double operations_per_sample() {
    const auto* const counted = replica_.step().counted();
    const at::Tensor operations = at::full({1}, counted == nullptr ? 0 : counted->operations(), at::kDouble);
    mesh_.control()->all_reduce(operations, Reduction::kSum).wait();
    const bool has_samples = counted != nullptr && counted->samples() > 0;
    return has_samples ? operations.item<double>() / static_cast<double>(counted->samples()) : 0;
  }

  // Returns the result of a run of this many steps, without the evaluations. Collective.
  ExperimentResult result_after(std::int64_t steps) {
    const auto& config = config_;
    Figures figures = replica_.synchronizer().figures();
    if (moves_.moves() > 0) figures.emplace_back("server_moves", static_cast<double>(moves_.moves()));
    for (auto& figure : embeddings_.figures()) figures.push_back(std::move(figure));
    for (auto& figure : replica_.pipeline_figures()) figures.push_back(std::move(figure));
    const bool chosen =
        !config.train.early_stop.metric.empty() || config.checkpoint.keep_best > 0 || !schedule_->watches().empty();
    return {.steps = steps,
            .stopped = vote_.stopped(),
            .time_up = vote_.time_up(),
            .early_stop = early_stop_.reason(),
            .failed_checkpoints = checkpointing_.failed(),
            .bucket_bytes = replica_.agreement().bucket_bytes,
            .operations_per_sample = operations_per_sample(),
            .shares = shares_.shares() == nullptr ? std::vector<std::int64_t>{} : *shares_.shares(),
            .train = report_.last_training(),
            .chosen_by = chosen ? evaluation_.watched() : "",
            .strategy = replica_.agreement().strategy.selected(),
            .figures = std::move(figures),
            .update = replica_.update().readings(),
            .model = replica_.model()};
  }

  const ExperimentConfig& config_;
  const RunFolder& folder_;
  UnreadableSamples& unreadable_;
  const Task& task_;
  mutable std::atomic<bool> values_checked_ = false;  // batches may be prepared in another thread
  Mesh mesh_;
  SequenceShare sequence_;
  Watching watching_;
  Replica replica_;
  ServedEmbeddings embeddings_;
  double rate_;  // the schedule's factors multiply this
  std::unique_ptr<Schedule> schedule_;
  EarlyStop early_stop_;
  SampleShares shares_;
  Preparation preparation_;
  std::unique_ptr<Loader> loader_;
  Evaluation evaluation_;
  std::int64_t steps_;
  Engine engine_;
  ReplicaCheck replica_check_;
  StopVote vote_;
  ServerMoves moves_;
  Report report_;
  LastEvaluation last_;
  std::string diverged_;          // split whose final loss is not finite; empty: none
  bool trained_ = false;          // training has ended, and replicas are equal from now on
  bool evaluated_apart_ = false;  // the last evaluation was of replicas that differed
  bool two_versions_ = false;     // there was such an evaluation
  Checkpointing checkpointing_;
  std::function<void(Engine&)> add_own_hooks_;  // of the caller
};

}  // namespace

ExperimentResult run_experiment(const ExperimentConfig& config, const ExperimentContext& context) {
  const auto task = config.task.make(context.splits.train->spec(), config.loss.make());
  const ExperimentConfig complete = with_defaults_of(*task, config);
  check_meters(*task, context.splits.train->spec(), complete);
  UnreadableSamples unreadable(complete.loader, with_held_out(context.splits, config));
  auto result = Experiment(complete, unreadable.splits(), unreadable, *task, context).run();
  if (result.stopped) return result;
  check_expected(config.expect.train, result.train, "train");
  check_expected(config.expect.validation, result.validation, "validation");
  check_expected(config.expect.test, result.test, "test");
  return result;
}

}  // namespace phalanx
