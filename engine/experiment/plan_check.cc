// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/plan_check.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "engine/plan/counting_communicator.h"
#include "engine/plan/operation_log.h"
#include "engine/plan/step_planner.h"
#include "framework/base/error.h"
#include "framework/base/quantile.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = 24, kCounted = 3;  // the operations between step 2 and this one are counted

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double all_reduce_seconds(Communicator& world, const at::Tensor& tensor) {
  world.barrier().wait();
  const auto start = Clock::now();
  world.all_reduce(tensor, Reduction::kSum).wait();
  return since(start);
}

double slowest(double seconds, Communicator& world) {
  const at::Tensor all = at::full({1}, seconds, at::kDouble);
  world.all_reduce(all, Reduction::kMax).wait();
  return all.item<double>();
}

constexpr std::int64_t kLarge = 1 << 20;  // elements

// Measures one small and one large all-reduce.
void measure_links(Communicator& world, std::vector<double>& latencies, std::vector<double>& wires) {
  const at::Tensor small = at::zeros({2}, at::kFloat), large = at::zeros({kLarge}, at::kFloat);
  latencies.push_back(all_reduce_seconds(world, small));
  wires.push_back(all_reduce_seconds(world, large));
}

MeasuredLinks links_of(const std::vector<double>& latencies, const std::vector<double>& wires, Communicator& world) {
  if (world.size() == 1) return {};
  const double latency = slowest(median(latencies), world), large = slowest(median(wires), world);
  const double wire = wire_bytes(Op::kAllReduce, world.size(), kLarge * 4);
  return {.latency = latency, .bandwidth = wire / std::max(large - latency, 1e-9)};
}

// Returns the config reduced to `steps` ordinary steps, as a plan describes them.
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
  config.watch.nan_guard.every_steps = config.watch.gradient_norms.every_steps = 0;
  config.watch.progress = config.watch.report = config.watch.tensorboard = false;
  config.expect = {};
  return config;
}

}  // namespace

double communication_seconds(const StepPlan& plan, const MeasuredLinks& links) {
  double seconds = 0;
  for (const auto& [kind, count] : plan.all()) {
    seconds += static_cast<double>(count.count) * links.latency;
    if (links.bandwidth > 0) {
      seconds += wire_bytes(kind.op, ranks_along(plan.shape, kind.axes), count.bytes) / links.bandwidth;
    }
  }
  return seconds;
}

PlanCheck check_plan(const ExperimentConfig& config, const ExperimentContext& context) {
  Communicator& world = *context.world;
  const auto wanted = only_steps(config, kSteps);
  PlanCheck check;
  const auto barrier = [&world] { world.barrier().wait(); };
  StepPlanner planner(wanted, context.splits,
                      {.rank = world.rank(), .shares_memory = world.shares_memory(), .barrier = barrier});
  check.plan = planner.plan();

  const auto log = std::make_shared<OperationLog>();
  OperationCounts seen;
  std::vector<double> own, real, latencies, wires;
  ExperimentContext run = context;
  run.world = count_operations(context.world, check.plan.shape, log);
  run.add_hooks = [&](Engine& engine) {
    engine.on(Event::kStartEpoch, [&](State& state) {
      if (state.step > 0 && state.step < kCounted) {
        throw ConfigError("train.global_batch_size: an epoch has fewer than " + std::to_string(kCounted) +
                          " steps, too few to check a plan; use a smaller batch");
      }
    });
    engine.on(Event::kUpdate, [&, last = Clock::now()](State& state) mutable {
      const double step = since(last);
      auto counts = log->take();
      if (state.step == kCounted) seen = std::move(counts);
      if (state.step >= kCounted) {
        real.push_back(step);
        barrier();
        const auto start = Clock::now();
        planner.seconds();
        barrier();  // ranks wait for the slowest in each step
        own.push_back(since(start));
        measure_links(world, latencies, wires);
      }
      barrier();
      last = Clock::now();
    });
  };
  run_experiment(wanted, run);
  check.measured = slowest(median(real), world);
  check.plan.seconds = slowest(median(own), world);
  check.links = links_of(latencies, wires, world);
  check.predicted = check.plan.seconds + communication_seconds(check.plan, check.links);
  check.differences = differences(check.plan.shape, over_ranks(check.plan.all(), world), over_ranks(seen, world));
  return check;
}

}  // namespace phalanx
