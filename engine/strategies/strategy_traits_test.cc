// SPDX-License-Identifier: Apache-2.0
// A strategy that no other code knows by name works everywhere by its traits: it trains, and it is planned, listed and
// described.
#include "engine/strategies/strategy_traits.h"

#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/experiment/plan_check.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/testing/run.h"
#include "engine/testing/strategy.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::complaint;
using testing::gradient_at;
using ::testing::HasSubstr;
using testing::kElements;
using testing::kRate;

// Computes the mean as a sum and a division.
class SumStrategy final : public GradientStrategy {
 public:
  explicit SumStrategy(CommunicatorPtr group) : group_(std::move(group)) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    return slices_ = broadcast_all(parameters, *group_);
  }

  void before_update(std::int64_t) override {
    for (const auto& slice : slices_) {
      group_->all_reduce(slice.gradients, Reduction::kSum).wait();
      slice.gradients.div_(group_->size());
    }
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

 private:
  CommunicatorPtr group_;
  std::vector<Slice> slices_;
};

struct CautiousConfig {
  bool remembers = false;

  template <class V>
  void visit(V& v) {
    v("remembers", remembers, "gradients of steps before");
  }
};

const bool strategy_traits_test_registered =
    Strategies::global().add<NoFields>(
        "sum_under_test", "the mean by a sum",
        StrategyTraits{.reduces_gradients = true,
                       .intra_level = true,
                       .inter_level = true,
                       .virtual_shards = true,
                       .traffic = StepTraffic::kAllReduce},
        [](const NoFields&, const StrategyContext& context) { return std::make_unique<SumStrategy>(context.group); }) &&
    Strategies::global().add<CautiousConfig>(
        "timid_under_test", "goes with little",
        [](const CautiousConfig& config) {
          return StrategyTraits{.remembers_gradients = config.remembers, .one_rank = true, .concurrent_updates = true};
        },
        [](const CautiousConfig&, const StrategyContext& context) {
          return std::make_unique<SumStrategy>(context.group);
        }) &&
    Strategies::global().add<NoFields>(
        "forgetful_under_test", "promises to free gradients", StrategyTraits{.one_rank = true, .frees_gradients = true},
        [](const NoFields&, const StrategyContext& context) { return std::make_unique<SumStrategy>(context.group); });

TEST(ANewStrategy, TrainsByItsName) {
  const auto run = [](const std::string& strategy) {
    return testing::run_tiny(2, testing::new_folder(), {"strategy=" + strategy});
  };
  const auto sum = run("sum_under_test"), mean = run("all_reduce");
  EXPECT_THAT(sum.errors, ::testing::Each(""));
  EXPECT_LT(testing::relative_difference(sum.weights[0], mean.weights[0]), 1e-5);
  EXPECT_EQ(testing::summary(sum).at("strategy").at("name"), "sum_under_test");
}

TEST(ANewStrategy, IsPlannedByWhatItSends) {
  const auto config = testing::tiny_config({"strategy=sum_under_test", "launch.ranks=2"});
  const auto splits = config.dataset.make();
  const auto folder = testing::new_folder();
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const auto check = check_plan(config, {.world = world, .splits = splits, .folder = folder});
    EXPECT_EQ(check.differences, "");
    EXPECT_FALSE(check.plan.gradients.empty());
  });
}

TEST(ANewStrategy, IsListedAndDescribed) {
  const Strategies::Choice any;
  EXPECT_THAT(any.names(), ::testing::Contains("sum_under_test"));
  EXPECT_EQ(any.help("sum_under_test"), "the mean by a sum");
  EXPECT_THAT([] { testing::load_strategy("sum_undr_test"); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("sum_under_test")));
}

TEST(ANewStrategy, ImplementsTheInterfacesOfItsTraits) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    EXPECT_THROW(testing::make_strategy("forgetful_under_test", group), std::logic_error);
  });
}

TEST(StrategyTraits, DecideWhichConfigsAreRefused) {
  ASSERT_TRUE(strategy_traits_test_registered);
  EXPECT_EQ(complaint("strategy: sum_under_test, train: {gradients: sum, precision: fp16, ema_decay: 0.9}"), "");
  EXPECT_EQ(complaint("strategy: sum_under_test, determinism: world_size_invariant, launch: {threads: 1}"), "");
  EXPECT_EQ(complaint("strategy: sum_under_test, launch: {ranks: 4}"), "");
  EXPECT_EQ(complaint("strategy: timid_under_test"), "");
  EXPECT_THAT(complaint("strategy: timid_under_test, train: {gradients: sum}"),
              HasSubstr("sum needs gradients that are reduced in every step, which timid_under_test does not do"));
  EXPECT_THAT(complaint("strategy: timid_under_test, launch: {ranks: 2}"),
              HasSubstr("strategy: timid_under_test trains on one rank, but launch.ranks is 2"));
  EXPECT_THAT(complaint("strategy: timid_under_test, train: {ema_decay: 0.9}"),
              HasSubstr("train.ema_decay: cannot be combined with strategy timid_under_test"));
  EXPECT_THAT(complaint("strategy: timid_under_test, determinism: world_size_invariant, launch: {threads: 1}"),
              HasSubstr("strategy: must be all_reduce or auto or sum_under_test"));
}

TEST(StrategyTraits, DependOnTheFields) {
  EXPECT_EQ(complaint("strategy: timid_under_test, train: {precision: fp16}"), "");
  EXPECT_THAT(complaint("strategy: {timid_under_test: {remembers: true}}, train: {precision: fp16}"),
              HasSubstr("train.precision: fp16 cannot be combined with"));
}

TEST(StrategyTraits, DecideWhatWorksInLevels) {
  testing::run_ranks("inproc", 4, [](const CommunicatorPtr& group) {
    for (const std::string strategy : {"{intra: sum_under_test, inter: all_reduce, ranks_per_group: 2}",
                                       "{intra: sharded, inter: sum_under_test, ranks_per_group: 2}",
                                       "{intra: sum_under_test, inter: sum_under_test, ranks_per_group: 2}"}) {
      at::Tensor x = at::full({kElements}, 3.0);
      testing::train(strategy, group, 4, [&](int step, const at::Tensor& all, Strategy&) {
        at::Tensor mean = at::zeros({kElements});
        for (int rank = 0; rank < group->size(); ++rank) mean += gradient_at(x, rank, step) / group->size();
        x = x - kRate * mean;
        EXPECT_TRUE(at::allclose(all, x.expand_as(all), 1e-5, 1e-6)) << strategy << ", step " << step;
      });
    }
    EXPECT_THROW(testing::make_strategy("{intra: timid_under_test, inter: all_reduce}", group), ConfigError);
    EXPECT_THROW(testing::make_strategy("{intra: all_reduce, inter: timid_under_test}", group), ConfigError);
  });
}

// Runs two ranks, of which rank 1 stops after its second step until rank 0 has done ten. Returns true if rank 0 waits
// for rank 1.
bool holds_up_others(const std::string& strategy) {
  std::atomic<std::int64_t> first = 0;
  std::atomic<bool> held_up = false;
  const auto add_hooks = [&](Engine& engine, int rank) {
    engine.on(Event::kUpdate, [&, rank](State& state) {
      if (rank == 0) first = state.step;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
      while (rank == 1 && state.step == 2 && first < 10 && !held_up) {
        held_up = std::chrono::steady_clock::now() > deadline;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  };
  const auto run = testing::run_tiny(
      2, testing::new_folder(),
      {"strategy=" + strategy, "dataset.train_samples=640", "train.epochs=1", "watch.every_steps=1000"},
      {.add_hooks = add_hooks});
  EXPECT_THAT(run.errors, ::testing::Each(""));
  return held_up;
}

TEST(StepsAhead, ALateRankDelaysOnlyRanksThatMustWaitForIt) {
  for (const char* strategy : {"downpour", "{ssp: {staleness: 12}}", "easgd"}) {
    EXPECT_FALSE(holds_up_others(strategy)) << strategy;
  }
  EXPECT_TRUE(holds_up_others("{ssp: {staleness: 2}}"));
}

}  // namespace
}  // namespace phalanx
