// SPDX-License-Identifier: Apache-2.0
// Tests loader.shares, the division of a batch between the ranks.
#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "engine/optim/decorator.h"
#include "engine/testing/run.h"
#include "framework/base/config/config.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::complaint;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using ::testing::HasSubstr;
using testing::Interference;
using testing::new_folder;
using testing::relative_difference;
using testing::run_tiny;
using testing::summary;

TEST(SampleShares, ExactStrategiesLearnWhatOneProcessDoes) {
  const auto one = run_tiny(1, new_folder(), {});
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded", "sync_ps"}) {
    const auto uneven = run_tiny(3, new_folder(), {"strategy=" + strategy, "loader.shares=5:1:2"});
    ASSERT_THAT(uneven.errors, Each("")) << strategy;
    EXPECT_LT(relative_difference(final_weights(uneven), final_weights(one)), 1e-5) << strategy;
    EXPECT_THAT(uneven.results[0].shares, ElementsAre(5, 1, 2));
  }
}

TEST(SampleShares, RanksTakeTheirShareOfWholeAndLastBatches) {
  std::vector<std::vector<std::int64_t>> taken(2);
  const Interference count{.add_hooks = [&](Engine& engine, int rank) {
    engine.on(Event::kSample,
              [&taken, rank](State& state) { taken[static_cast<std::size_t>(rank)].push_back(state.batch.valid); });
  }};
  for (const std::string prefetch : {"0", "2"}) {
    for (auto& all : taken) all.clear();
    const auto run =
        run_tiny(2, new_folder(), {"loader.shares=3:1", "train.epochs=1", "loader.prefetch=" + prefetch}, count);
    ASSERT_THAT(run.errors, Each(""));
    EXPECT_THAT(taken[0], ElementsAre(24, 24, 24, 3));
    EXPECT_THAT(taken[1], ElementsAre(8, 8, 8, 1));
  }
}

thread_local int milliseconds_per_sample = 0;  // above 0 on a slow rank

class SlowDataset final : public Dataset {
 public:
  explicit SlowDataset(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}

  std::int64_t size() const override { return inner_->size(); }
  const SampleSpec& spec() const override { return inner_->spec(); }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_per_sample * std::ssize(indices)));
    inner_->gather(indices, seed, batch);
  }

 private:
  std::shared_ptr<const Dataset> inner_;
};

const bool sample_shares_test_registered =
    Datasets::global().add<NoFields>("digits_read_slowly", "digits, slow on some ranks", [](const NoFields&) {
      const Splits digits = testing::tiny_config({}).dataset.make();
      return Splits{.train = std::make_shared<SlowDataset>(digits.train),
                    .test = std::make_shared<SlowDataset>(digits.test)};
    });

// The second rank takes 4 ms longer for each of its samples.
Interference slow_rank() {
  return {.add_hooks = [](Engine& engine, int rank) {
    engine.on(Event::kStart, [rank](State&) { milliseconds_per_sample = rank == 1 ? 4 : 0; });
  }};
}

TEST(SampleShares, MeasuredSharesGiveASlowRankLess) {
  for (const std::string strategy : {"all_reduce", "downpour", "local_sgd"}) {
    const auto run = run_tiny(
        2, new_folder(), {"strategy=" + strategy, "dataset=digits_read_slowly", "loader.shares=measured"}, slow_rank());
    ASSERT_THAT(run.errors, Each("")) << strategy;
    const auto& shares = run.results[0].shares;
    ASSERT_EQ(shares.size(), 2);
    EXPECT_EQ(shares[0] + shares[1], 32);
    EXPECT_GE(shares[1], 1);
    EXPECT_LE(shares[1], 8) << strategy << ": half of the 16 that it had in the first epoch";
    EXPECT_EQ(run.results[1].shares, shares);
    EXPECT_EQ(summary(run).at("loader").at("reproducible"), false);
  }
}

thread_local int milliseconds_per_update = 0;

class SlowOptimizer final : public OptimizerDecorator {
 public:
  using OptimizerDecorator::OptimizerDecorator;

  void update() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_per_update));
    OptimizerDecorator::update();
  }
};

const bool slow_optimizer = Optimizers::global().add<NoFields>(
    "adam_slowly", "Adam, slow on some ranks", [](const NoFields&, const ParameterGroups& groups) {
      return std::make_unique<SlowOptimizer>(
          config::load_as<Optimizers::Choice>("optimizer", "adam", "test").make(groups));
    });

// If ranks wait for each other, an update takes equally long whatever the shares are.
TEST(SampleShares, MeasuredSharesCountUpdatesIfRanksDoNotWaitForEachOther) {
  const Interference slow{.add_hooks = [](Engine& engine, int rank) {
    engine.on(Event::kStart, [rank](State&) {
      milliseconds_per_sample = 1;
      milliseconds_per_update = rank == 1 ? 64 : 0;
    });
  }};
  const auto share_of_slow = [&](const std::string& strategy) {
    const auto run = run_tiny(
        2, new_folder(),
        {"strategy=" + strategy, "dataset=digits_read_slowly", "optimizer=adam_slowly", "loader.shares=measured"},
        slow);
    EXPECT_THAT(run.errors, Each("")) << strategy;
    return run.results[0].shares.at(1);
  };
  EXPECT_LE(share_of_slow("downpour"), 8);
  EXPECT_GE(share_of_slow("all_reduce"), 12);
}

// An exact strategy learns the same with any shares.
TEST(SampleShares, MeasuredSharesLeaveTheGradientExact) {
  const auto one = run_tiny(1, new_folder(), {});
  const auto run = run_tiny(
      2, new_folder(), {"strategy=all_reduce", "dataset=digits_read_slowly", "loader.shares=measured"}, slow_rank());
  ASSERT_THAT(run.errors, Each(""));
  EXPECT_LT(relative_difference(final_weights(run), final_weights(one)), 1e-5);
}

TEST(SampleShares, MeasuredSharesResumeWithTheRun) {
  const auto folder = new_folder();
  const Changes first{"dataset=digits_read_slowly", "loader.shares=measured", "strategy=all_reduce", "train.epochs=2",
                      "checkpoint.every_epochs=1"};
  const auto began = run_tiny(2, folder, first, slow_rank());
  ASSERT_THAT(began.errors, Each(""));
  std::vector<std::int64_t> taken(2, 0);
  const Interference look{.add_hooks = [&](Engine& engine, int rank) {
    engine.on(Event::kSample, [&taken, rank](State& state) {
      if (state.step == 8) taken[static_cast<std::size_t>(rank)] = state.batch.valid;
    });
  }};
  const auto resumed = run_tiny(2, folder,
                                {"dataset=digits_read_slowly", "loader.shares=measured", "strategy=all_reduce",
                                 "train.epochs=3", "checkpoint.every_epochs=1", "checkpoint.resume=auto"},
                                look);
  ASSERT_THAT(resumed.errors, Each(""));
  EXPECT_EQ(resumed.began_after[0], 8);
  EXPECT_EQ(taken, began.results[0].shares);
  EXPECT_LT(taken[1], 16);
}

TEST(SampleShares, RefusesSharesThatDoNotFit) {
  const auto error = [](const Changes& changes) { return run_tiny(2, new_folder(), changes).errors[0]; };
  EXPECT_THAT(error({"loader.shares=2:1:1"}), HasSubstr("has 3 shares, but 2 ranks divide a batch"));
  EXPECT_THAT(error({"loader.shares=2:0"}), HasSubstr("expected equal, measured, or a share from 1 to"));
  EXPECT_THAT(error({"loader.shares=40:1"}), HasSubstr("is less than a sample"));
  EXPECT_THAT(complaint("loader: {shares: most}"), HasSubstr("must be equal, measured or a share for each rank"));
  EXPECT_THAT(complaint("loader: {shares: measured}, train: {sync_batch_norm: true}"), HasSubstr("sync_batch_norm"));
  EXPECT_THAT(complaint("loader: {shares: '2:1'}, determinism: world_size_invariant, strategy: all_reduce"),
              HasSubstr("loader.shares: must be equal"));
}

}  // namespace
}  // namespace phalanx
