// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/nan_guard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "engine/optim/decorator.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/testing/fakes.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matcher;
using testing::run_ranks;
using ::testing::StartsWith;

// The tensors and the loss of a rank.
struct Numbers {
  at::Tensor values = at::ones({6}), gradients = at::zeros({6});
  double loss = 1;
};
using Spoil = std::function<void(std::int64_t step, Numbers& numbers)>;

class SpoiledStep final : public Step {
 public:
  SpoiledStep(Numbers& numbers, Spoil spoil) : numbers_(numbers), spoil_(std::move(spoil)) {}

  Result run(const Batch& batch, const Watch& watch) override {
    spoil_(++step_, numbers_);
    const Result result = evaluate(batch, watch);
    watch(Stage::kBackward, result);
    return result;
  }
  Result evaluate(const Batch&, const Watch& watch) override {
    const Result result{.outputs = {at::scalar_tensor(0)}, .loss = at::scalar_tensor(numbers_.loss)};
    watch(Stage::kForwardCriterion, result);
    return result;
  }

 private:
  Numbers& numbers_;
  Spoil spoil_;
  std::int64_t step_ = 0;
};

class OneSlice final : public GradientStrategy {
 public:
  explicit OneSlice(Numbers& numbers) : numbers_(numbers) {}
  std::vector<Slice> attach(const FlatParameters&, Cut) override {
    return {{numbers_.values,
             numbers_.gradients,
             {{.name = "fc.bias", .shape = {2}, .begin = 0, .count = 2},
              {.name = "fc.weight", .shape = {4}, .begin = 2, .count = 4}}}};
  }
  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }

 private:
  Numbers& numbers_;
};

// An optimizer that adds gradients to values.
class Sum final : public Optimizer {
 public:
  void attach(std::vector<Slice> slices) override { slices_ = std::move(slices); }
  void update() override {
    for (auto& slice : slices_) slice.values.add_(slice.gradients);
  }
  bool can_skip_on_device() const override { return true; }
  void exclude(const std::set<std::string>&) override {}
  double learning_rate() const override { return 1; }
  void set_learning_rate(double) override {}
  std::int64_t updates() const override { return 0; }
  void set_updates(std::int64_t) override {}

 private:
  std::vector<Slice> slices_;
};

struct Ended {
  std::string why;  // text of the error; empty: no error
  std::int64_t steps = 0;
};

// Trains for 20 steps. After every `save_every` steps, check_now() is called as before a checkpoint; 0: never.
Ended train(const CommunicatorPtr& world, std::int64_t every, const Spoil& spoil, std::int64_t save_every = 0) {
  Numbers numbers;
  SpoiledStep step(numbers, spoil);
  OneSlice strategy(numbers);
  NanGuard guard(every, world);
  const auto optimizer = guard.guard(std::make_unique<Sum>());
  Engine engine(step, *optimizer, strategy);
  Ended ended;
  guard.attach(engine);
  engine.on(Event::kUpdate, [&](State& state) {
    if (save_every > 0 && state.step % save_every == 0) guard.check_now();
    ended.steps = state.step;
  });
  testing::FakeLoader loader(20);
  const auto parameters = testing::no_parameters();
  try {
    engine.train(parameters, loader, {.epochs = 1});
  } catch (const Error& error) {
    ended.why = error.what();
  }
  return ended;
}

// Expects that each of three ranks ends with this error after this number of steps.
void expect_all(std::int64_t every, const std::function<Spoil(int rank)>& spoil, const Matcher<std::string>& why,
                std::int64_t steps, std::int64_t save_every) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    const auto ended = train(world, every, spoil(world->rank()), save_every);
    EXPECT_THAT(ended.why, why) << "rank " << world->rank();
    EXPECT_EQ(ended.steps, steps) << "rank " << world->rank();
  });
}

void expect_diverged(std::int64_t every, const std::function<Spoil(int rank)>& spoil, const std::string& why,
                     std::int64_t steps, std::int64_t save_every = 0) {
  expect_all(every, spoil, StartsWith("training has diverged: " + why), steps, save_every);
}

void expect_trains_to_the_end(std::int64_t every, const std::function<Spoil(int rank)>& spoil,
                              std::int64_t save_every = 0) {
  expect_all(every, spoil, IsEmpty(), 20, save_every);
}

Spoil never() {
  return [](std::int64_t, Numbers&) {};
}

TEST(NanGuard, NamesTheStepAndTheRankOfALossBetweenChecksToo) {
  const auto spoil = [](int rank) -> Spoil {
    if (rank != 1) return never();
    return [](std::int64_t step, Numbers& numbers) { numbers.loss = step >= 7 ? NAN : 1; };
  };
  // The vote after step 8 is read after step 9, before the other hooks run.
  expect_diverged(4, spoil, "in step 7 the loss is not finite, on rank 1;", 8);
}

TEST(NanGuard, NamesTheGradient) {
  const auto spoil = [](int rank) -> Spoil {
    if (rank == 0) return never();
    return [](std::int64_t step, Numbers& numbers) {
      if (step == 4) numbers.gradients[3] = INFINITY;
    };
  };
  expect_diverged(2, spoil, "in step 4 the gradient of fc.weight is not finite, on ranks 1, 2;", 4);
}

TEST(NanGuard, NamesTheParameter) {
  const auto spoil = [](int) -> Spoil {
    return [](std::int64_t step, Numbers& numbers) {
      if (step == 6) numbers.values[1] = NAN;
    };
  };
  expect_diverged(3, spoil, "in step 6 parameter fc.bias is not finite, on all 3 ranks;", 6);
}

TEST(NanGuard, ReportsTheEarliestFindingOfAnyRank) {
  const auto spoil = [](int rank) -> Spoil {
    return [rank](std::int64_t step, Numbers& numbers) { numbers.loss = step >= 10 - rank ? INFINITY : 1; };
  };
  expect_diverged(20, spoil, "in step 8 the loss is not finite, on rank 2;", 20);
}

TEST(NanGuard, ChecksOnceMoreAtTheEnd) {
  const auto spoil = [](int) -> Spoil {
    return [](std::int64_t step, Numbers& numbers) { numbers.loss = step == 20 ? NAN : 1; };
  };
  expect_diverged(1000, spoil, "in step 20 the loss is not finite, on all 3 ranks;", 20);
}

TEST(NanGuard, FindsAParameterThatTheLastUpdateHasSpoiled) {
  const auto spoil = [](int rank) -> Spoil {
    if (rank != 2) return never();
    return [](std::int64_t step, Numbers& numbers) { numbers.gradients[3] = step == 20 ? NAN : 0; };
  };
  expect_diverged(1000, spoil, "in step 20 parameter fc.weight is not finite, on rank 2;", 20);
}

TEST(NanGuard, ChecksImmediatelyBeforeACheckpoint) {
  const auto loss = [](int rank) -> Spoil {
    if (rank != 1) return never();
    return [](std::int64_t step, Numbers& numbers) { numbers.loss = step == 7 ? NAN : 1; };
  };
  expect_diverged(1000, loss, "in step 7 the loss is not finite, on rank 1;", 9, 10);
  const auto parameter = [](int rank) -> Spoil {
    if (rank != 1) return never();
    return [](std::int64_t step, Numbers& numbers) { numbers.gradients[0] = step == 10 ? INFINITY : 0; };
  };
  expect_diverged(1000, parameter, "in step 10 parameter fc.bias is not finite, on rank 1;", 9, 10);
  expect_trains_to_the_end(1000, [](int) { return never(); }, 3);
}

TEST(NanGuard, LeavesFiniteNumbersAloneHoweverLarge) {
  const auto spoil = [](int) -> Spoil {
    return [](std::int64_t, Numbers& numbers) {
      numbers.values.fill_(std::numeric_limits<float>::max() / 2);  // their sum is not finite
      numbers.loss = 1e30;
    };
  };
  expect_trains_to_the_end(1, spoil);
}

// A loss on the meta device cannot be read: reading it throws.
TEST(NanGuard, ReadsNoLossBetweenChecks) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    Numbers numbers;
    std::int64_t steps = 0;
    class Unreadable final : public Step {
     public:
      Result run(const Batch& batch, const Watch& watch) override { return evaluate(batch, watch); }
      Result evaluate(const Batch&, const Watch& watch) override {
        const Result result{.outputs = {at::scalar_tensor(0)}, .loss = at::empty({}, at::kMeta)};
        watch(Stage::kForwardCriterion, result);
        return result;
      }
    } step;
    OneSlice strategy(numbers);
    NanGuard guard(8, world);
    const auto optimizer = guard.guard(std::make_unique<Sum>());
    Engine engine(step, *optimizer, strategy);
    guard.attach(engine);
    engine.on(Event::kUpdate, [&](State& state) { steps = state.step; });
    testing::FakeLoader loader(20);
    const auto parameters = testing::no_parameters();
    EXPECT_ANY_THROW(engine.train(parameters, loader, {.epochs = 1}));
    EXPECT_EQ(steps, 7);
  });
}

// Records before each update if it may be decided on the device, which Sum always permits.
class AsksFirst final : public OptimizerDecorator {
 public:
  using OptimizerDecorator::OptimizerDecorator;
  void update() override {
    answers.push_back(inner().can_skip_on_device());
    inner().update();
  }
  std::vector<bool> answers{};
};

// If ranks differed, they would not call the same collectives within an update.
TEST(NanGuard, AFindingOfOneRankLeavesWhereUpdatesAreDecidedTheSameOnAll) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    Numbers numbers;
    SpoiledStep step(numbers, [&](std::int64_t number, Numbers& of_step) {
      if (world->rank() == 1 && number == 4) of_step.loss = NAN;
    });
    OneSlice strategy(numbers);
    NanGuard guard(2, world);
    AsksFirst optimizer(guard.guard(std::make_unique<Sum>()));
    Engine engine(step, optimizer, strategy);
    guard.attach(engine);
    testing::FakeLoader loader(20);
    const auto parameters = testing::no_parameters();
    EXPECT_THROW(engine.train(parameters, loader, {.epochs = 1}), Error);
    EXPECT_EQ(optimizer.answers, (std::vector<bool>{true, false, true, false, true})) << "rank " << world->rank();
  });
}

TEST(NanGuard, SaysWhatToDo) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto ended = train(world, 1, [](std::int64_t, Numbers& numbers) { numbers.loss = NAN; });
    EXPECT_THAT(ended.why, HasSubstr("in step 1 the loss is not finite, on rank 0; lower optimizer.lr"));
  });
}

TEST(NanGuard, ChecksNothingIfItIsOff) {
  const auto spoil = [](int) -> Spoil { return [](std::int64_t, Numbers& numbers) { numbers.loss = NAN; }; };
  expect_trains_to_the_end(0, spoil);
}

}  // namespace
}  // namespace phalanx
