#include "engine/experiment/experiment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>

#include "engine/engine.h"
#include "engine/experiment/report.h"
#include "engine/plain_step.h"
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
  return make_loader(split, {.samples = split->size(),
                             .global_batch = global_batch,
                             .seed = config.seed,
                             .shuffle = shuffle,
                             .rank = group.rank(),
                             .size = group.size()});
}

/// One rank's share of a run: builds what the config names and lets the engine run.
class Experiment {
 public:
  Experiment(const ExperimentConfig& config, const ExperimentContext& context)
      : config_(config),
        mesh_(make_mesh(config, context.world)),
        model_(make_model(config, context.splits.train->spec())),
        parameters_(model_->parameters(), *mesh_.data(), parse_bytes(config.framework.bucket_bytes)),
        loss_(config.loss.make()),
        optimizer_(config.optimizer.make()),
        schedule_(config.schedule.make()),
        synchronizer_(config.strategy.make(mesh_.data())),
        step_(*model_, *loss_, mesh_.data()->size()),
        train_loader_(make_split_loader(context.splits.train, config.train.global_batch_size, config,
                                        config.loader.shuffle, *mesh_.data())),
        test_loader_(
            make_split_loader(context.splits.test, config.evaluate.global_batch_size, config, false, *mesh_.data())),
        steps_(total_steps()),
        engine_(step_, *optimizer_, *synchronizer_),
        vote_(mesh_.world(), context.stop_asked),
        report_(config, context, {config.train.epochs, steps_, train_loader_->batches()}),
        test_meters_({loss_meter(), accuracy_meter()}) {}

  ExperimentResult run() {
    broadcast_buffers();
    add_hooks();
    const State end = engine_.train(parameters_, *train_loader_, {.epochs = config_.train.epochs});
    // The epoch that `end` is in never began.
    if (!vote_.stopped() && tested_at_ != end.step) test({.epoch = end.epoch - 1, .step = end.step});
    ExperimentResult result{.steps = end.step, .stopped = vote_.stopped(), .test = last_test_, .model = model_};
    report_.finish(result);
    // What rank 0 writes is complete before any rank ends: launchers end the others when one ends otherwise than well.
    mesh_.world()->barrier().wait();
    return result;
  }

 private:
  std::int64_t total_steps() const {
    const auto steps = config_.train.epochs * train_loader_->batches();
    return config_.train.max_steps == 0 ? steps : std::min(steps, config_.train.max_steps);
  }

  void broadcast_buffers() {
    for (auto& buffer : model_->buffers()) mesh_.data()->broadcast(buffer, 0).wait();
  }

  void add_hooks() {
    const double rate = optimizer_->learning_rate();
    engine_.on(Event::kBackward, [this, rate](State& state) {
      optimizer_->set_learning_rate(rate * schedule_->factor(state.step, steps_));
    });
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
    engine_.test(*test_loader_, {.epoch = state.epoch, .step = state.step});
    last_test_ = test_meters_.take(*mesh_.data());
    report_.end_test(state, last_test_);
    tested_at_ = state.step;
  }

  const ExperimentConfig& config_;
  Mesh mesh_;
  std::shared_ptr<Model> model_;
  FlatParameters parameters_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Synchronizer> synchronizer_;
  PlainStep step_;
  std::unique_ptr<Loader> train_loader_, test_loader_;
  std::int64_t steps_;
  Engine engine_;
  StopVote vote_;
  Report report_;
  Meters test_meters_;
  Readings last_test_;
  std::int64_t tested_at_ = -1;
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
