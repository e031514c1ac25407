#include "engine/experiment/experiment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "datasets/prefetching_loader.h"
#include "engine/checkpoint/numbers_part.h"
#include "engine/early_stop.h"
#include "engine/engine.h"
#include "engine/experiment/agreement.h"
#include "engine/experiment/checkpointing.h"
#include "engine/experiment/parameter_update.h"
#include "engine/experiment/report.h"
#include "engine/experiment/shared_statistics.h"
#include "engine/experiment/training_step.h"
#include "engine/sync/replica_check.h"
#include "engine/watch/stop_vote.h"
#include "engine/watch/watching.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/comm/mesh.h"
#include "models/channels_last.h"
#include "models/model.h"

namespace phalanx {
namespace {

// LibTorch draws initial values from one generator per process, and ranks may be threads.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const SampleSpec& sample) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  auto model = config.model.make(sample);
  if (config.train.memory_format == "channels_last") weights_to_channels_last(*model);
  return model;
}

Mesh make_mesh(const ExperimentConfig& config, const CommunicatorPtr& world) {
  MeshShape shape;
  shape[Axis::kData] = config.mesh.data == 0 ? world->size() : config.mesh.data;
  if (shape.product() != world->size()) {
    throw ConfigError("mesh.data is " + std::to_string(config.mesh.data) + ", but the world has " +
                      std::to_string(world->size()) + " ranks; 0 takes all");
  }
  return Mesh(world, shape);
}

std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, bool shuffle, const Communicator& group) {
  const bool invariant = config.determinism == "world_size_invariant";
  auto loader = make_loader(split, {.samples = split->size(),
                                    .global_batch = global_batch,
                                    .seed = config.seed,
                                    .shuffle = shuffle,
                                    .rank = group.rank(),
                                    .size = group.size(),
                                    .parts = invariant ? static_cast<int>(config.train.virtual_shards) : 0});
  return config.loader.prefetch == 0 ? std::move(loader) : make_prefetching(std::move(loader), config.loader.prefetch);
}

std::int64_t bytes_of(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto& parameter : model.parameters()) bytes += static_cast<std::int64_t>(parameter.nbytes());
  return bytes;
}

/// One rank's share of a run: builds what the config names and lets the engine run.
class Experiment {
 public:
  Experiment(const ExperimentConfig& config, const ExperimentContext& context)
      : config_(config),
        mesh_(make_mesh(config, context.world)),
        watching_(config.watch, mesh_.control(), context.folder),
        model_(make_model(config, context.splits.train->spec())),
        agreement_(choose_agreement(config, context.folder, bytes_of(*model_), mesh_)),
        parameters_(model_->named_parameters(), *mesh_.replicas(), agreement_.bucket_bytes),
        loss_(config.loss.make()),
        synchronizer_(make_synchronizer()),
        update_(config, *synchronizer_, mesh_, watching_),
        rate_(update_.optimizer().learning_rate()),
        schedule_(config.schedule.make()),
        early_stop_(config.train.early_stop),
        step_(setup_of_step(context.splits.train->spec())),
        train_loader_(make_split_loader(context.splits.train, config.train.global_batch_size, config,
                                        config.loader.shuffle, *mesh_.samples())),
        test_loader_(
            make_split_loader(context.splits.test, config.evaluate.global_batch_size, config, false, *mesh_.samples())),
        steps_(total_steps()),
        engine_(step_.step(), update_.optimizer(), *synchronizer_),
        replicas_(mesh_, parameters_, config.replica_check.repair, config.replica_check.every_steps),
        vote_(mesh_.control(), context.stop_asked, [this, started = context.started] { return time_is_up(started); }),
        report_(config, context, {config.train.epochs, steps_, train_loader_->batches()}, watching_.clock(), update_),
        test_meters_(config.evaluate.meters),
        checkpointing_(checkpointed_run(context)),
        add_own_hooks_(context.add_hooks) {}

  ExperimentResult run() {
    broadcast_buffers();
    // Before the first step, not at the first test: meters that have seen nothing already say what they read.
    const auto measured = test_meters_.take(*mesh_.control(kBatchAxes));
    check_schedule(measured);
    early_stop_.check(measured);
    add_hooks();
    add_parts();
    checkpointing_.attach(measured);
    engine_.on(Event::kStart, [this](State& state) {
      state.stop |= early_stop_.stopped();
      if (state.step > 0) set_learning_rate(state.step - 1);  // that of the last step, until there is another
      step_.start(state.step);
    });
    add_own_hooks_(engine_);
    watching_.attach_last(engine_, steps_);
    const State end = engine_.train(parameters_, *train_loader_, {.epochs = config_.train.epochs});
    trained_ = true;
    replicas_.at_end(end.step);
    // The epoch that `end` is in never began.
    const bool untested = last_test_.step != end.step || tested_apart_;
    if (!vote_.stopped() && untested) test({.epoch = end.epoch - 1, .step = end.step});
    ExperimentResult result = result_after(end.step);
    as_tested([&] { report_.finish(result); });
    // What rank 0 writes is complete before any rank ends: launchers end the others when one ends otherwise than well.
    mesh_.control()->barrier().wait();
    checkpointing_.check();
    return result;
  }

 private:
  // Gradients of replicas in threads come together after the last backward.
  std::unique_ptr<Synchronizer> make_synchronizer() {
    const auto& train = config_.train;
    if (config_.determinism != "world_size_invariant") {
      return phalanx::make_synchronizer(agreement_.strategy,
                                        {mesh_, mesh_.replicas(), train.data_parallel > 1 ? 0 : train.accumulate});
    }
    if (train.virtual_shards % mesh_.batch()->size() != 0) {
      throw ConfigError("train.virtual_shards: " + std::to_string(train.virtual_shards) + " cannot be shared by " +
                        std::to_string(mesh_.batch()->size()) + " ranks; take a multiple");
    }
    auto invariant = std::make_unique<Invariant>(mesh_.replicas(), static_cast<int>(train.virtual_shards));
    invariant_ = invariant.get();
    return invariant;
  }

  TrainingStep::Setup setup_of_step(const SampleSpec& sample) {
    return {.config = config_.train,
            .sample = sample,
            .model = *model_,
            .loss = *loss_,
            .mesh = mesh_,
            .loss_scale = update_.loss_scale(),
            .clock = watching_.clock(),
            .parameters = parameters_,
            .make_replica = [this, sample] { return make_model(config_, sample); },
            .bucket_bytes = agreement_.bucket_bytes,
            .invariant = invariant_,
            .seed = mix(static_cast<std::uint64_t>(config_.seed), 1)};
  }

  Checkpointing::Run checkpointed_run(const ExperimentContext& context) {
    return {.config = config_,
            .folder = context.folder,
            .world = mesh_.control(),
            .engine = engine_,
            .parameters = parameters_,
            .model = *model_,
            .optimizer = update_.optimizer(),
            .schedule = *schedule_,
            .synchronizer = *synchronizer_,
            .loader = *train_loader_,
            .vote = vote_,
            .nan_guard = watching_.nan_guard(),
            .last_test = last_test_,
            .shared_buffers =
                [this] {
                  // With an invariant strategy they are equal, to the bit.
                  return invariant_ ? model_->named_buffers() : shared_buffers(*model_, *mesh_.batch());
                },
            .samples = context.splits.train->size(),
            .steps = steps_,
            .agreement = describe(agreement_, config_.determinism)};
  }

  std::int64_t total_steps() const {
    const auto steps = config_.train.epochs * train_loader_->batches();
    return config_.train.max_steps == 0 ? steps : std::min(steps, config_.train.max_steps);
  }

  ExperimentResult result_after(std::int64_t steps) const {
    return {.steps = steps,
            .stopped = vote_.stopped(),
            .time_up = vote_.time_up(),
            .early_stop = early_stop_.reason(),
            .failed_checkpoints = checkpointing_.failed(),
            .bucket_bytes = agreement_.bucket_bytes,
            .test = last_test_.readings,
            .strategy = agreement_.strategy.selected(),
            .figures = synchronizer_->figures(),
            .update = update_.readings(),
            .model = model_};
  }

  void broadcast_buffers() {
    for (auto& buffer : model_->buffers()) mesh_.replicas()->broadcast(buffer, 0).wait();
  }

  bool time_is_up(std::chrono::steady_clock::time_point started) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    return config_.train.max_seconds > 0 && elapsed.count() >= config_.train.max_seconds;
  }

  void check_schedule(const Readings& measured) const {
    for (const auto& name : schedule_->watches()) {
      if (std::ranges::count(measured, name, &Readings::value_type::first) > 0) continue;
      throw ConfigError("the schedule watches \"" + name + "\", which none of evaluate.meters reads; add the meter");
    }
  }

  void add_hooks() {
    watching_.attach_first(engine_);
    engine_.on(Event::kBackward, [this](State& state) { set_learning_rate(state.step); });
    engine_.on(Event::kUpdate,
               [this](State& state) { replicas_.after_step(state.step, synchronizer_->replicas_equal()); });
    vote_.attach(engine_);
    report_.attach(engine_, mesh_);
    engine_.on(Event::kUpdate, [this](State& state) {
      state.stop |= state.step >= steps_;
      const bool end_of_epoch = state.cursor == train_loader_->batches() || state.step >= steps_;
      if (!end_of_epoch && due(config_.evaluate.every_steps, state.step)) test_while_training(state);
    });
    engine_.on(Event::kEndEpoch, [this](State& state) {
      const auto& evaluate = config_.evaluate;
      const bool tested = last_test_.step == state.step;
      if (vote_.stopped() || tested) return;
      if (due(evaluate.every_epochs, state.epoch + 1) || due(evaluate.every_steps, state.step)) {
        test_while_training(state);
      }
    });
    engine_.on_test(Event::kForwardCriterion, [this](State& state) { test_meters_.add(state.batch, state.result); });
  }

  void set_learning_rate(std::int64_t step) {
    update_.optimizer().set_learning_rate(rate_ * schedule_->factor(step, steps_));
  }

  static bool due(std::int64_t every, std::int64_t count) { return every > 0 && count % every == 0; }

  void add_parts() {
    for (auto& part : report_.parts()) checkpointing_.add(std::move(part));
    for (auto& part : update_.parts()) checkpointing_.add(std::move(part));
    checkpointing_.add(numbers_part(
        "replica_check", [this] { return std::vector<double>{replicas_.due() ? 1.0 : 0.0}; },
        [this](const std::vector<double>& due) { replicas_.set_due(!due.empty() && due[0] != 0); }));
    checkpointing_.add(numbers_part(
        "early_stop/" + config_.train.early_stop.metric + "/" + config_.train.early_stop.best,
        [this] { return early_stop_.state(); }, [this](const std::vector<double>& state) { early_stop_.load(state); }));
  }

  void test_while_training(State& state) {
    test(state);
    early_stop_.observe(state.step, last_test_.readings);
    state.stop |= early_stop_.stopped();
  }

  // All ranks with the same buffers, so that a test does not depend on which rank has which samples, and with averages
  // of the parameters where the config asks for them.
  void as_tested(const std::function<void()>& body) {
    std::optional<SharedStatistics> statistics;
    if (invariant_ == nullptr) statistics.emplace(*model_, *mesh_.batch());  // there they are equal to the bit
    update_.with_averages(body);
  }

  void test(const State& state) {
    report_.start_test();
    tested_apart_ = !trained_ && !synchronizer_->replicas_equal();
    as_tested([&] { engine_.test(*test_loader_, {.epoch = state.epoch, .step = state.step}); });
    last_test_ = {test_meters_.take(*mesh_.control(kBatchAxes)), state.step};
    schedule_->observe(state.step, last_test_.readings);
    report_.end_test(state, last_test_.readings);
  }

  const ExperimentConfig& config_;
  Mesh mesh_;
  Watching watching_;
  std::shared_ptr<Model> model_;
  Agreement agreement_;
  FlatParameters parameters_;
  std::unique_ptr<Loss> loss_;
  Invariant* invariant_ = nullptr;  // what synchronizer_ is, if anything
  std::unique_ptr<Synchronizer> synchronizer_;
  ParameterUpdate update_;
  double rate_;  // that the schedule's factors are of
  std::unique_ptr<Schedule> schedule_;
  EarlyStop early_stop_;
  TrainingStep step_;
  std::unique_ptr<Loader> train_loader_, test_loader_;
  std::int64_t steps_;
  Engine engine_;
  ReplicaCheck replicas_;
  StopVote vote_;
  Report report_;
  MeterSet test_meters_;
  LastTest last_test_;
  bool trained_ = false;       // replicas have become equal for good
  bool tested_apart_ = false;  // the last test was of replicas that differed
  Checkpointing checkpointing_;
  std::function<void(Engine&)> add_own_hooks_;  // the caller's
};

}  // namespace

ExperimentResult run_experiment(const ExperimentConfig& config, const ExperimentContext& context) {
  auto result = Experiment(config, context).run();
  for (const auto& [name, value] : result.test) {
    if (name == "accuracy" && value < config.expect.test_accuracy && !result.stopped) {
      throw Error("the test accuracy is " + std::to_string(value) + ", but expect.test_accuracy asks for " +
                  std::to_string(config.expect.test_accuracy));
    }
  }
  return result;
}

}  // namespace phalanx
