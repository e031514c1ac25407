// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/step_plan.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "engine/build/replica.h"
#include "engine/build/whole_model.h"
#include "engine/experiment/evaluation.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/sequence_share.h"
#include "engine/plan/fake_world.h"
#include "engine/plan/live_memory.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/partition/pipeline/timeline.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTimed = 9;  // number of timed steps, of which the median counts
constexpr int kOps = static_cast<int>(Op::kCustom) + 1;

constexpr AxisSet kSameExperts{Axis::kData, Axis::kContext};

AxisBits bits_of(const MeshShape& shape, AxisSet axes) {
  AxisBits bits = 0;
  for (int axis = 0; axis < kAxes; ++axis) {
    if (axes.has(static_cast<Axis>(axis)) && shape.sizes[axis] > 1) bits |= 1U << axis;
  }
  return bits;
}

void add(OperationCounts& counts, AxisBits axes, Op op, std::int64_t bytes) {
  if (axes == 0) return;
  auto& entry = counts[{axes, op}];
  ++entry.count;
  entry.bytes += bytes;
}

void add(OperationCounts& counts, const OperationCounts& more) {
  for (const auto& [kind, count] : more) {
    counts[kind].count += count.count;
    counts[kind].bytes += count.bytes;
  }
}

void refuse_unplanned(const ExperimentConfig& config) {
  if (config.roles.server > 0 || config.roles.elsewhere()) {
    throw ConfigError("roles: a plan cannot include parameter servers; plan a strategy without them");
  }
  if (training_ranks(config) > 1 && config.strategy.traits().parameter_servers) {
    throw ConfigError("strategy: " + config.strategy.selected() +
                      " exchanges with parameter servers on the ranks, which a plan cannot include; plan a strategy "
                      "without them");
  }
  if (config.train.precision == "fp16") {
    throw ConfigError("train.precision: fp16 skips updates after an overflow, so steps differ; plan bf16 or fp32");
  }
  if (config.determinism == "world_size_invariant") {
    throw ConfigError("determinism: world_size_invariant has collectives of its own; plan with run");
  }
}

void refuse_other_traffic(const std::string& strategy, const StrategyTraits& traits) {
  if (traits.remembers_gradients) {
    throw ConfigError("strategy.compression: what it sends depends on the gradients; plan with none");
  }
  if (traits.traffic != StepTraffic::kOther) return;
  auto planned =
      Strategies::global().names_where([](const StrategyTraits& one) { return one.traffic != StepTraffic::kOther; });
  const auto last = std::exchange(planned.back(), "");
  planned.pop_back();
  throw ConfigError("strategy: what " + strategy + " sends in a step is not planned; plan " + join(planned, ", ") +
                    " or " + last);
}

std::vector<Op> operations_of_bucket(StepTraffic traffic) {
  switch (traffic) {
    case StepTraffic::kOther:
    case StepTraffic::kNone:
      return {};
    case StepTraffic::kAllReduce:
      return {Op::kAllReduce};
    case StepTraffic::kReduceScatterAllGather:
      return {Op::kReduceScatter, Op::kAllGather};
    case StepTraffic::kReduceScatterSharedCopy:
      return {Op::kReduceScatter};
  }
  return {};
}

}  // namespace

/// The batches with which a rank plans.
class PlanBatches {
 public:
  PlanBatches(const ExperimentConfig& config, const std::shared_ptr<const Dataset>& split, const Task& task,
              const Mesh& mesh)
      : task_(task),
        sequence_(task, split->spec(), mesh.along(Axis::kContext)),
        loader_(make_split_loader(split, config.train.global_batch_size, config, SplitUse::kTraining, *mesh.samples())),
        ranks_(mesh.batch()->size()) {}

  void load() {
    if (!loader_->next(batch_)) {
      loader_->start_epoch(++epoch_);
      if (!loader_->next(batch_)) throw ConfigError("train.global_batch_size: there is no batch to plan a step with");
    }
    task_.prepare(batch_);
    sequence_.cut(batch_);
    if (batch_.row_weights.defined()) batch_.global_weight = batch_.weight() * ranks_;
  }

  const Batch& batch() const { return batch_; }

 private:
  const Task& task_;
  SequenceShare sequence_;
  std::unique_ptr<Loader> loader_;
  double ranks_;  // that divide a batch
  Batch batch_;
  std::int64_t epoch_ = 0;
};

/// A replica in a fake world.
class StepPlanner::Replica {
 public:
  Replica(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options)
      : barrier_(options.barrier),
        log_(std::make_shared<OperationLog>()),
        task_(config.task.make(splits.train->spec(), config.loss.make())),
        config_(with_defaults_of(*task_, config)),
        meters_(config_.watch.meters) {
    const MeshShape shape = mesh_shape(config.mesh, training_ranks(config));
    const Mesh mesh(make_fake_world(shape, options.rank, options.shares_memory, log_), shape);
    watching_ = std::make_unique<Watching>(config_.watch, mesh.control(), RunFolder());
    batches_ = std::make_unique<PlanBatches>(config_, splits.train, *task_, mesh);
    replica_ = build_replica(config_, *task_, mesh, {}, *watching_);
    batches_->load();
    replica_.step->start(0);
  }

  StepPlan plan() {
    StepPlan plan{.shape = shape(), .strategy = replica_.settings.strategy.selected()};
    plan.parameters = parameter_count(*replica_.part);
    plan.samples = batches_->batch().valid;
    plan.micro_batches = config_.train.accumulate;
    if (const auto& pipeline = replica_.part->pipeline) {
      plan.micro_batches = pipeline->schedule().micro_batches;
      plan.bubble = pipeline::simulate(pipeline->schedule(), kStepCosts).bubble;
    }
    const auto traits = replica_.settings.strategy.traits();
    for (const auto& bucket : replica_.flat->parameters.buckets()) {
      ++plan.buckets;
      if (!traits.shards_values) plan.parameter_bytes += static_cast<std::int64_t>(bucket.values.nbytes());
      if (!traits.frees_gradients) plan.gradient_bytes += static_cast<std::int64_t>(bucket.gradients.nbytes());
    }
    if (by_blocks()) attach();  // blocks need it to have values
    for (const auto& slice : slices_) {
      if (traits.shards_values) plan.parameter_bytes += static_cast<std::int64_t>(slice.values.nbytes());
      if (traits.frees_gradients) plan.gradient_bytes += static_cast<std::int64_t>(slice.gradients.nbytes());
    }
    barrier_();
    run();  // warms up, since the first step allocates and creates what later ones reuse
    log_->take();
    {
      const LiveMemory memory;
      run();
      plan.activation_bytes = memory.peak();
    }
    plan.layers = log_->take();
    if (by_blocks()) {
      take_of_strategy(plan);
    } else {
      attach();
      plan_gradients(plan);
    }
    plan_control(plan);
    for (const auto& state : optimizer().state()) {
      plan.optimizer_bytes += static_cast<std::int64_t>(state.values.nbytes());
    }
    seconds();  // warms up
    barrier_();
    std::vector<double> timed;
    for (int i = 0; i < kTimed; ++i) timed.push_back(seconds());
    std::ranges::nth_element(timed, timed.begin() + kTimed / 2);
    plan.seconds = timed[kTimed / 2];
    return plan;
  }

  double seconds() {
    const auto start = Clock::now();
    batches_->load();
    run();
    replica_.strategy().before_update(steps_);
    optimizer().update();
    replica_.strategy().after_update(steps_++);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  Optimizer& optimizer() { return replica_.optimizer(); }
  const MeshShape& shape() const { return replica_.mesh().shape(); }

  void run() {
    replica_.step->step().run(batches_->batch(), [this](Stage stage, const Step::Result& result) {
      if (stage == Stage::kForwardCriterion)
        meters_.add(batches_->batch(), result);  // meters may read outputs that are sharded between ranks
    });
  }

  void attach() {
    auto& strategy = replica_.strategy();
    slices_ = strategy.attach(replica_.flat->parameters, optimizer().cut());
    optimizer().attach(slices_);
    strategy.attach_state(optimizer().state());
  }

  // Returns true for ZeRO's stages 2 and 3, which communicate during forward and backward.
  bool by_blocks() const { return replica_.settings.strategy.traits().frees_gradients; }

  // Runs an update, and separates the operations of the strategy from the operations of sharded layers, which gather
  // and scatter along other axes. With whole parameters, the strategy gathers them after the update.
  void take_of_strategy(StepPlan& plan) {
    replica_.strategy().before_update(steps_);
    replica_.strategy().after_update(steps_++);
    auto all = log_->take();
    add(all, plan.layers);
    plan.layers.clear();
    const auto axes = axes_of_replicas();
    for (const auto& [kind, count] : all) {
      const bool moves_slices = kind.op == Op::kReduceScatter || kind.op == Op::kAllGather || kind.op == Op::kBarrier;
      const bool among_replicas = std::ranges::find(axes, kind.axes) != axes.end();
      (moves_slices && among_replicas ? plan.gradients : plan.layers)[kind] = count;
    }
  }

  AxisBits axes_of_group(const DataParallelGroup& group) const {
    return bits_of(shape(), group.group == replica_.mesh().replicas() ? kReplicaAxes : kSameExperts);
  }

  // Returns the axes along which ranks have the same parameters or, if values are sharded, shards of them.
  std::vector<AxisBits> axes_of_replicas() const {
    std::vector<AxisBits> all;
    if (replica_.settings.strategy.traits().shards_values) {  // there are no copies
      all.push_back(bits_of(shape(), kReplicaAxes));
      if (shape()[Axis::kExpert] > 1) all.push_back(bits_of(shape(), kSameExperts));
    }
    for (const auto& group : replica_.copied_groups()) all.push_back(axes_of_group(group));
    return all;
  }

  // Adds the operations of the strategy for the buckets of each group.
  void plan_gradients(StepPlan& plan) const {
    const auto traits = replica_.settings.strategy.traits();
    refuse_other_traffic(plan.strategy, traits);
    for (const auto& group : replica_.copied_groups()) {
      const auto axes = axes_of_group(group);
      for (const auto& bucket : group.parameters.buckets()) {
        const auto bytes = static_cast<std::int64_t>(bucket.gradients.nbytes());
        for (const auto op : operations_of_bucket(traits.traffic)) add(plan.gradients, axes, op, bytes);
      }
      if (traits.traffic == StepTraffic::kReduceScatterSharedCopy) add(plan.gradients, axes, Op::kBarrier, 0);
    }
  }

  void plan_control(StepPlan& plan) const {
    constexpr std::int64_t kNumber = 8;
    const bool experts = shape()[Axis::kExpert] > 1;
    if (config_.train.clip_norm > 0) {
      const std::int64_t sums = experts ? 2 * kNumber : kNumber;
      if (replica_.settings.strategy.traits().shards_update) {
        const auto of_replicas = axes_of_replicas();
        const auto each = of_replicas.size() == 1 ? sums : kNumber;
        for (const auto axes : of_replicas) add(plan.control, axes, Op::kAllReduce, each);
      }
      add(plan.control, bits_of(shape(), kModelAxes), Op::kAllReduce, sums);
      if (experts) add(plan.control, bits_of(shape(), {Axis::kExpert}), Op::kAllReduce, kNumber);
    }
    // Adds the vote on unused parameters. A plan has no unused ones.
    for (const auto axes : axes_of_replicas()) add(plan.control, axes, Op::kAllReduce, kNumber);
    if (batches_->batch().row_weights.defined())
      add(plan.control, bits_of(shape(), kBatchAxes), Op::kAllReduce, kNumber);
    plan_vote(plan, kNumber);
  }

  // Adds the vote on stopping.
  void plan_vote(StepPlan& plan, std::int64_t bytes) const {
    const auto all = bits_of(shape(), AxisSet::all());
    if (shape()[Axis::kPipe] == 1) return add(plan.control, all, Op::kAllReduce, bytes);
    for (int peer = 1; peer < shape().product(); ++peer) {
      for (const auto op : {Op::kSend, Op::kRecv}) add(plan.control, all, op, bytes);
    }
  }

  std::function<void()> barrier_;
  std::shared_ptr<OperationLog> log_;
  std::unique_ptr<Task> task_;
  ExperimentConfig config_;
  MeterSet meters_;  // meters of training
  std::unique_ptr<Watching> watching_;
  std::unique_ptr<PlanBatches> batches_;
  phalanx::Replica replica_;
  std::vector<Slice> slices_;  // empty before attach()
  std::int64_t steps_ = 0;     // counted by seconds()
};

OperationCounts StepPlan::all() const {
  OperationCounts all;
  for (const auto* counts : {&gradients, &layers, &control}) add(all, *counts);
  return all;
}

StepPlanner::StepPlanner(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options) {
  refuse_unplanned(config);
  const Splits all = with_held_out(splits, config);
  replica_ = std::make_unique<Replica>(config, all, options);
}
StepPlanner::~StepPlanner() = default;

StepPlan StepPlanner::plan() { return replica_->plan(); }
double StepPlanner::seconds() { return replica_->seconds(); }

StepPlan plan_step(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options) {
  return StepPlanner(config, splits, options).plan();
}

ExperimentConfig only_steps(ExperimentConfig config, std::int64_t steps) {
  constexpr std::int64_t kNever = 1'000'000;
  config.train.max_steps = steps;
  config.train.early_stop = {};
  config.evaluate.every_epochs = config.evaluate.every_steps = 0;
  config.checkpoint.every_steps = config.checkpoint.every_epochs = config.checkpoint.keep_best = 0;
  config.checkpoint.resume = "none";
  config.checkpoint.final_weights = false;
  config.replica_check.every_steps = 0;
  config.watch.every_steps = kNever;
  config.watch.nan_guard.every_steps = 0;
  config.watch.progress = config.watch.report = config.watch.tensorboard = false;
  config.expect = {};
  return config;
}

std::string differences(const MeshShape& shape, const OperationCounts& planned, const OperationCounts& seen) {
  OperationCounts kinds = planned;
  kinds.insert(seen.begin(), seen.end());
  std::string text;
  const auto of = [](const OperationCounts& counts, const OperationKind& kind) {
    const auto found = counts.find(kind);
    return found == counts.end() ? OperationCount{} : found->second;
  };
  for (const auto& [kind, unused] : kinds) {
    const auto plan = of(planned, kind), real = of(seen, kind);
    if (plan == real) continue;
    text += std::string(to_string(kind.op)) + " along " + axes_name(kind.axes) + " (" +
            std::to_string(ranks_along(shape, kind.axes)) + " ranks): planned " + std::to_string(plan.count) + " of " +
            std::to_string(plan.bytes) + " bytes in all, seen " + std::to_string(real.count) + " of " +
            std::to_string(real.bytes) + "\n";
  }
  return text;
}

OperationCounts over_ranks(const OperationCounts& counts, Communicator& world) {
  const at::Tensor sums = at::zeros({(1 << kAxes) * kOps * 2}, at::kLong);
  auto* const numbers = sums.mutable_data_ptr<std::int64_t>();
  const auto place = [](const OperationKind& kind) { return (kind.axes * kOps + static_cast<unsigned>(kind.op)) * 2; };
  for (const auto& [kind, count] : counts) {
    numbers[place(kind)] = count.count;
    numbers[place(kind) + 1] = count.bytes;
  }
  world.all_reduce(sums, Reduction::kSum).wait();
  OperationCounts all;
  for (AxisBits axes = 0; axes < 1U << kAxes; ++axes) {
    for (int op = 0; op < kOps; ++op) {
      const OperationKind kind{axes, static_cast<Op>(op)};
      const OperationCount count{numbers[place(kind)], numbers[place(kind) + 1]};
      if (count.count > 0) all[kind] = count;
    }
  }
  return all;
}

}  // namespace phalanx
