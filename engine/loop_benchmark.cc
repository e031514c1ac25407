// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the loop itself per step: an engine whose parts do nothing, with no hooks and with one for each
// event.
//   bazel run //engine:loop_benchmark
#include <ATen/ops/scalar_tensor.h>
#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "engine/engine.h"
#include "engine/strategies/replicated_strategy.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

class NoLoader final : public Loader {
 public:
  explicit NoLoader(std::int64_t batches) : batches_(batches) {}

  std::int64_t batches() const override { return batches_; }
  void start_epoch(std::int64_t, std::int64_t cursor) override { cursor_ = cursor; }
  bool next(Batch&) override { return cursor_++ < batches_; }

 private:
  std::int64_t batches_, cursor_ = 0;
};

// Reports every stage, as steps do.
class NoStep final : public Step {
 public:
  Result run(const Batch& batch, const Watch& watch) override {
    Result result = evaluate(batch, watch);
    watch(Stage::kBackwardCriterion, result);
    watch(Stage::kBackward, result);
    return result;
  }
  Result evaluate(const Batch&, const Watch& watch) override {
    Result result{.outputs = {nothing_}, .loss = nothing_};
    watch(Stage::kForward, result);
    watch(Stage::kForwardCriterion, result);
    return result;
  }

 private:
  at::Tensor nothing_ = at::scalar_tensor(0);
};

class NoOptimizer final : public Optimizer {
 public:
  void attach(std::vector<Slice>) override {}
  void update() override {}
  void exclude(const std::set<std::string>&) override {}
  double learning_rate() const override { return 0; }
  void set_learning_rate(double) override {}
  std::int64_t updates() const override { return 0; }
  void set_updates(std::int64_t) override {}
};

class NoStrategy final : public GradientStrategy {
 public:
  std::vector<Slice> attach(const FlatParameters&, Cut) override { return {}; }
  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }
};

void loop(benchmark::State& state, bool hooks) {
  std::optional<FlatParameters> none;
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& memory) { none.emplace(NamedTensors{}, *memory, 1); });
  NoLoader loader(state.max_iterations);
  NoStep step;
  NoOptimizer optimizer;
  NoStrategy strategy;
  Engine engine(step, optimizer, strategy);
  std::int64_t calls = 0;
  for (int event = 0; hooks && event < kEvents; ++event) {
    engine.on(static_cast<Event>(event), [&calls](State&) { ++calls; });
  }
  while (state.KeepRunningBatch(state.max_iterations)) {
    engine.train(*none, loader, {.epochs = 1});
  }
  benchmark::DoNotOptimize(calls);
}

BENCHMARK_CAPTURE(loop, without_hooks, false);
BENCHMARK_CAPTURE(loop, with_a_hook_of_each_event, true);

}  // namespace
}  // namespace phalanx

BENCHMARK_MAIN();
