// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/timed.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <vector>

#include "datasets/prefetching_loader.h"
#include "engine/hooks/watching/watching.h"
#include "engine/run_length.h"
#include "engine/testing/fakes.h"
#include "framework/observe/monotonic_clock.h"
#include "framework/observe/times/step_clock.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

TEST(Timed, StageWatchersCountAsHooksAndSumsWithinAnUpdateAsCommunication) {
  StepClock clock;
  std::vector<Phase> phases;
  clock.skip();
  clock.listen([&](Phase phase, std::int64_t, std::int64_t) { phases.push_back(phase); });
  testing::FakeStep fake;
  TimedStep(fake, clock).run({}, [](Stage, const Step::Result&) {});
  using enum Phase;
  EXPECT_THAT(phases, ElementsAre(kHooks, kForward, kHooks, kForward, kHooks, kBackward, kHooks, kBackward, kHooks));
  phases.clear();
  int summed = 0;
  at::Tensor sums = at::zeros({1}, at::kDouble);
  timed([&](at::Tensor&) { ++summed; }, clock)(sums);
  EXPECT_EQ(summed, 1);
  EXPECT_THAT(phases, ElementsAre(kUpdate, kCommunication));
}

constexpr std::int64_t kBatches = 4;

struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;

  bool holds(const Span& other) const { return begin_ns <= other.begin_ns && other.end_ns <= end_ns; }
};

// The semaphores by which step and loader wait for each other.
class Rendezvous {
 public:
  void step_begins() { step_.release(); }
  void wait_for_step() { EXPECT_TRUE(step_.try_acquire_for(std::chrono::seconds(60))); }
  void batch_is_there() { batch_.release(); }
  void wait_for_batch() { EXPECT_TRUE(batch_.try_acquire_for(std::chrono::seconds(60))); }

 private:
  std::counting_semaphore<> step_{0}, batch_{0};
};

// Gathers every batch except the first while the step with the batch before runs.
class SlowLoader final : public Loader {
 public:
  SlowLoader(Rendezvous& rendezvous, std::vector<Span>& gathered) : rendezvous_(rendezvous), gathered_(gathered) {}

  std::int64_t batches() const override { return kBatches; }
  void start_epoch(std::int64_t, std::int64_t cursor) override { cursor_ = cursor; }
  bool next(Batch& batch) override {
    if (cursor_ == kBatches) return false;
    if (cursor_ > 0) rendezvous_.wait_for_step();
    const auto begin = monotonic_ns();
    batch.valid = batch.global_rows = ++cursor_;
    gathered_.push_back({begin, monotonic_ns()});
    rendezvous_.batch_is_there();
    return true;
  }

 private:
  Rendezvous& rendezvous_;
  std::vector<Span>& gathered_;
  std::int64_t cursor_ = 0;
};

// Runs until the next batch has been gathered.
class SlowStep final : public Step {
 public:
  explicit SlowStep(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

  Result run(const Batch& batch, const Watch& watch) override {
    if (batch.valid == 1) rendezvous_.wait_for_batch();  // the batch of this step
    if (batch.valid < kBatches) {
      rendezvous_.step_begins();
      rendezvous_.wait_for_batch();
    }
    return step_.run(batch, watch);
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return step_.evaluate(batch, watch); }

 private:
  Rendezvous& rendezvous_;
  testing::FakeStep step_;
};

TEST(DataWait, CountsHowLongTheLoopWaitsNotHowLongTheThreadWorks) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    Rendezvous rendezvous;
    std::vector<Span> gathered, waited, computed;
    const auto loader = make_prefetching(std::make_unique<SlowLoader>(rendezvous, gathered), 1);
    Watching watching({}, world, RunFolder(::testing::TempDir()));
    SlowStep step(rendezvous);
    TimedStep timed(step, watching.clock());
    TimedUpdate optimizer(std::make_unique<testing::FakeOptimizer>(), watching.clock());
    testing::FakeStrategy strategy;
    Engine engine(timed, optimizer, strategy);
    const RunLength length{.steps = kBatches};
    watching.attach(engine, length);
    watching.clock().listen([&](Phase phase, std::int64_t begin, std::int64_t end) {
      if (phase == Phase::kData) waited.push_back({begin, end});
      if (phase == Phase::kForward) computed.push_back({begin, end});
    });
    engine.train(testing::no_parameters(), *loader, {.epochs = 1});

    ASSERT_EQ(gathered.size(), kBatches);
    ASSERT_EQ(waited.size(), kBatches);
    EXPECT_TRUE(waited[0].holds(gathered[0])) << "there is nothing else to do yet";
    for (std::size_t i = 1; i < kBatches; ++i) {
      EXPECT_GT(waited[i].begin_ns, gathered[i].end_ns)
          << "batch " << i << " was gathered before the loop waited for it";
      EXPECT_TRUE(computed[2 * (i - 1)].holds(gathered[i])) << "gathered during the forward of the previous step";
    }
  });
}

}  // namespace
}  // namespace phalanx
