#include "engine/experiment/plan_check.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "engine/plan/counted_communicator.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = 14, kCounted = 3;  // the operations after step 2 up to this one are counted

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

double all_reduce_seconds(Communicator& world, std::int64_t elements, int times) {
  const at::Tensor tensor = world.allocate({elements}, at::kFloat);
  std::vector<double> seconds;
  for (int i = 0; i <= times; ++i) {
    world.barrier().wait();
    const auto start = Clock::now();
    world.all_reduce(tensor, Reduction::kSum).wait();
    if (i > 0) seconds.push_back(since(start));
  }
  return median(seconds);
}

double slowest(double seconds, Communicator& world) {
  const at::Tensor all = at::full({1}, seconds, at::kDouble);
  world.all_reduce(all, Reduction::kMax).wait();
  return all.item<double>();
}

}  // namespace

MeasuredLinks measure_links(Communicator& world) {
  constexpr std::int64_t kLarge = 1 << 20;
  if (world.size() == 1) return {};
  const double latency = slowest(all_reduce_seconds(world, 2, 50), world);
  const double large = slowest(all_reduce_seconds(world, kLarge, 10), world);
  const double wire = wire_bytes(Op::kAllReduce, world.size(), kLarge * 4);
  return {.latency = latency, .bandwidth = wire / std::max(large - latency, 1e-9)};
}

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
  check.plan = plan_step(
      wanted, context.splits,
      {.rank = world.rank(), .shares_memory = world.shares_memory(), .meet = [&world] { world.barrier().wait(); }});
  check.plan.seconds = slowest(check.plan.seconds, world);
  check.links = measure_links(world);
  check.predicted = check.plan.seconds + communication_seconds(check.plan, check.links);

  const auto log = std::make_shared<OperationLog>();
  OperationCounts seen;
  std::vector<double> seconds;
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
      if (state.step > kCounted) seconds.push_back(since(last));
      last = Clock::now();
      auto counts = log->take();
      if (state.step == kCounted) seen = std::move(counts);
    });
  };
  run_experiment(wanted, run);
  check.measured = slowest(median(seconds), world);
  check.differences = differences(check.plan.shape, over_ranks(check.plan.all(), world), over_ranks(seen, world));
  return check;
}

}  // namespace phalanx
