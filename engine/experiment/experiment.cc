#include "engine/experiment/experiment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>

#include "datasets/prefetching_loader.h"
#include "engine/accumulated_step.h"
#include "engine/engine.h"
#include "engine/experiment/checkpointing.h"
#include "engine/experiment/report.h"
#include "engine/optim/clip.h"
#include "engine/optim/ema.h"
#include "engine/plain_step.h"
#include "engine/sync/replica_check.h"
#include "engine/watch/stop_vote.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/base/text.h"
#include "framework/comm/mesh.h"

namespace phalanx {
namespace {

// LibTorch draws initial values from one generator per process, and ranks may be threads.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const SampleSpec& sample) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  return config.model.make(sample);
}

FlatParameters::Named named_parameters(const Model& model) {
  FlatParameters::Named named;
  for (const auto& parameter : model.named_parameters()) named.emplace_back(parameter.key(), parameter.value());
  return named;
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
  auto loader = make_loader(split, {.samples = split->size(),
                                    .global_batch = global_batch,
                                    .seed = config.seed,
                                    .shuffle = shuffle,
                                    .rank = group.rank(),
                                    .size = group.size()});
  return config.loader.prefetch == 0 ? std::move(loader) : make_prefetching(std::move(loader), config.loader.prefetch);
}

/// One rank's share of a run: builds what the config names and lets the engine run.
class Experiment {
 public:
  Experiment(const ExperimentConfig& config, const ExperimentContext& context)
      : config_(config),
        mesh_(make_mesh(config, context.world)),
        model_(make_model(config, context.splits.train->spec())),
        parameters_(named_parameters(*model_), *mesh_.data(), parse_bytes(config.framework.bucket_bytes)),
        loss_(config.loss.make()),
        optimizer_(make_optimizer()),
        schedule_(config.schedule.make()),
        synchronizer_(config.strategy.make({mesh_.data(), config.train.accumulate})),
        step_(*model_, *loss_, mesh_.data()->size()),
        accumulated_(step_, config.train.accumulate),
        train_loader_(make_split_loader(context.splits.train, config.train.global_batch_size, config,
                                        config.loader.shuffle, *mesh_.data())),
        test_loader_(
            make_split_loader(context.splits.test, config.evaluate.global_batch_size, config, false, *mesh_.data())),
        steps_(total_steps()),
        engine_(config.train.accumulate > 1 ? static_cast<Step&>(accumulated_) : step_, *optimizer_, *synchronizer_),
        replicas_(mesh_.data(), parameters_, config.replica_check.repair),
        vote_(mesh_.world(), context.stop_asked, [this, started = context.started] { return time_is_up(started); }),
        report_(config, context, {config.train.epochs, steps_, train_loader_->batches()}),
        test_meters_(config.evaluate.meters),
        checkpointing_({.config = config,
                        .folder = context.folder,
                        .world = context.world,
                        .engine = engine_,
                        .parameters = parameters_,
                        .model = *model_,
                        .optimizer = *optimizer_,
                        .schedule = *schedule_,
                        .synchronizer = *synchronizer_,
                        .loader = *train_loader_,
                        .vote = vote_,
                        .last_test = last_test_,
                        .samples = context.splits.train->size(),
                        .steps = steps_}) {}

  ExperimentResult run() {
    broadcast_buffers();
    // Before the first step, not at the first test: meters that have seen nothing already say what they read.
    const auto measured = test_meters_.take(*mesh_.data());
    check_schedule(measured);
    add_hooks();
    for (auto& part : report_.parts()) checkpointing_.add(std::move(part));
    checkpointing_.attach(measured);
    const State end = engine_.train(parameters_, *train_loader_, {.epochs = config_.train.epochs});
    // The epoch that `end` is in never began.
    if (!vote_.stopped() && last_test_.step != end.step) test({.epoch = end.epoch - 1, .step = end.step});
    ExperimentResult result{.steps = end.step,
                            .stopped = vote_.stopped(),
                            .time_up = vote_.time_up(),
                            .failed_checkpoints = checkpointing_.failed(),
                            .test = last_test_.readings,
                            .strategy = synchronizer_->figures(),
                            .model = model_};
    finish_report(result);
    // What rank 0 writes is complete before any rank ends: launchers end the others when one ends otherwise than well.
    mesh_.world()->barrier().wait();
    checkpointing_.check();
    return result;
  }

 private:
  std::int64_t total_steps() const {
    const auto steps = config_.train.epochs * train_loader_->batches();
    return config_.train.max_steps == 0 ? steps : std::min(steps, config_.train.max_steps);
  }

  std::unique_ptr<Optimizer> make_optimizer() {
    const auto& train = config_.train;
    auto optimizer = config_.optimizer.make(config_.parameter_groups);
    if (train.clip_norm > 0 || train.clip_value > 0) {
      optimizer =
          std::make_unique<Clip>(std::move(optimizer), ClipLimits{.norm = train.clip_norm, .value = train.clip_value},
                                 [this](at::Tensor& sums) { synchronizer_->sum_over_slices(sums); });
    }
    if (train.ema_decay == 0) return optimizer;
    auto ema = std::make_unique<Ema>(std::move(optimizer), train.ema_decay);
    ema_ = ema.get();
    return ema;
  }

  // Averages of some of the parameters are no model to test.
  void check_averages() const {
    std::int64_t averaged = 0, all = 0;
    for (const auto& slice : engine_.slices()) averaged += slice.values.numel();
    for (const auto& bucket : parameters_.buckets()) all += bucket.values.numel();
    if (averaged == all) return;
    throw ConfigError("train.ema_decay needs ranks that update all parameters, but strategy " +
                      config_.strategy.selected() + " gives this one " + std::to_string(averaged) + " of " +
                      std::to_string(all) + " values; choose another strategy");
  }

  // What is tested and kept, if the config asks for averages.
  std::unique_ptr<Ema::InPlace> averages_in_place() {
    return ema_ == nullptr ? nullptr : std::make_unique<Ema::InPlace>(*ema_);
  }

  void finish_report(const ExperimentResult& result) {
    const auto averages = averages_in_place();
    report_.finish(result);
  }

  void broadcast_buffers() {
    for (auto& buffer : model_->buffers()) mesh_.data()->broadcast(buffer, 0).wait();
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
    const double rate = optimizer_->learning_rate();
    engine_.on(Event::kBackward, [this, rate](State& state) {
      optimizer_->set_learning_rate(rate * schedule_->factor(state.step, steps_));
    });
    engine_.on(Event::kUpdate, [this](State& state) {
      const auto every = config_.replica_check.every_steps;
      if (every > 0 && state.step % every == 0 && synchronizer_->replicas_equal()) replicas_.check(state.step);
    });
    if (ema_ != nullptr) engine_.on(Event::kStart, [this](State&) { check_averages(); });
    vote_.attach(engine_);
    report_.attach(engine_, *mesh_.data());
    engine_.on(Event::kUpdate, [this](State& state) { state.stop |= state.step >= steps_; });
    engine_.on(Event::kEndEpoch, [this](State& state) {
      const auto every = config_.evaluate.every_epochs;
      if (!vote_.stopped() && every > 0 && (state.epoch + 1) % every == 0) test(state);
    });
    engine_.on_test(Event::kForwardCriterion, [this](State& state) { test_meters_.add(state.batch, state.result); });
  }

  void test(const State& state) {
    report_.start_test();
    {
      const auto averages = averages_in_place();
      engine_.test(*test_loader_, {.epoch = state.epoch, .step = state.step});
    }
    last_test_ = {test_meters_.take(*mesh_.data()), state.step};
    schedule_->observe(state.step, last_test_.readings);
    report_.end_test(state, last_test_.readings);
  }

  const ExperimentConfig& config_;
  Mesh mesh_;
  std::shared_ptr<Model> model_;
  FlatParameters parameters_;
  std::unique_ptr<Loss> loss_;
  Ema* ema_ = nullptr;  // in optimizer_
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Synchronizer> synchronizer_;
  PlainStep step_;
  AccumulatedStep accumulated_;
  std::unique_ptr<Loader> train_loader_, test_loader_;
  std::int64_t steps_;
  Engine engine_;
  ReplicaCheck replicas_;
  StopVote vote_;
  Report report_;
  MeterSet test_meters_;
  LastTest last_test_;
  Checkpointing checkpointing_;
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
