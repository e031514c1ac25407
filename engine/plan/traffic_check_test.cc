// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/traffic_check.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/testing/run.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

using testing::Changes;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::new_folder;
using testing::run_tiny;

// Promises one all-reduce of each bucket, and launches two.
class WastefulStrategy final : public GradientStrategy {
 public:
  explicit WastefulStrategy(CommunicatorPtr group) : group_(std::move(group)) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    return slices_ = broadcast_all(parameters, *group_);
  }

  void before_update(std::int64_t) override {
    for (const auto& slice : slices_) {
      for (int i = 0; i < 2; ++i) group_->all_reduce(slice.gradients, Reduction::kMean).wait();
    }
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

 private:
  CommunicatorPtr group_;
  std::vector<Slice> slices_;
};

const bool wasteful_registered = Strategies::global().add<NoFields>(
    "wasteful_under_test", "twice the mean",
    StrategyTraits{.reduces_gradients = true, .traffic = StepTraffic::kAllReduce},
    [](const NoFields&, const StrategyContext& context) { return std::make_unique<WastefulStrategy>(context.group); });

Changes expecting_traffic(Changes changes) {
  changes.push_back("expect.traffic.tolerance=0");
  return changes;
}

// Everything that communicates outside of ordinary steps happens as often as possible.
const Changes kBusy{"watch.every_steps=1", "evaluate.every_steps=1", "checkpoint.every_steps=1"};

TEST(Traffic, OfAStepIsAsPlannedWhateverHappensBetweenSteps) {
  for (const Changes& strategy : {Changes{"strategy=all_reduce"}, Changes{"strategy=overlapped"},
                                  Changes{"strategy=sharded", "train.clip_norm=1"}, Changes{"mesh.tensor=2"},
                                  Changes{"strategy={sharded: {stage: 3}}"}, Changes{"mesh.pipe=2"}}) {
    SCOPED_TRACE(strategy[0]);
    Changes changes = kBusy;
    changes.insert(changes.end(), strategy.begin(), strategy.end());
    const auto run = run_tiny(2, new_folder(), expecting_traffic(changes));
    EXPECT_THAT(run.errors, Each(""));
    EXPECT_GT(testing::summary(run).at("traffic").at("bytes_per_step"), 0);
  }
}

TEST(Traffic, OfAReplicaIsAnAllReduceOfItsGradients) {
  const auto run = run_tiny(2, new_folder(), expecting_traffic({"strategy=all_reduce"}));
  // The gradients, which each rank of two sends once, and 8 bytes each for the votes on unused parameters and stopping.
  constexpr std::int64_t kGradients = (256 * 16 + 16 + 16 * 10 + 10) * 4, kPadding = 4 * 64;
  const auto bytes = testing::summary(run).at("traffic").at("bytes_per_step").get<std::int64_t>();
  EXPECT_GE(bytes, 2 * kGradients);
  EXPECT_LE(bytes, 2 * (kGradients + kPadding + 3 * 8));
}

TEST(Traffic, ThatWasNotPlannedIsFound) {
  const auto run = run_tiny(2, new_folder(), expecting_traffic({"strategy=wasteful_under_test"}));
  EXPECT_THAT(run.errors, Each(HasSubstr("expect.traffic.bytes_per_step: wanted ")));
  EXPECT_THAT(run.errors, Each(HasSubstr("expect.traffic.collectives_per_step: wanted ")));
  EXPECT_THAT(run.errors, Each(HasSubstr("all_reduce along data (2 ranks): planned ")));
}

TEST(Traffic, OfOneRankIsNothing) {
  const auto run = run_tiny(1, new_folder(), expecting_traffic({}));
  EXPECT_THAT(run.errors, Each(""));
  EXPECT_EQ(testing::summary(run).at("traffic").at("bytes_per_step"), 0);
}

TEST(Traffic, IsNotMeasuredUnlessExpected) {
  EXPECT_TRUE(testing::summary(run_tiny(2, new_folder(), {})).at("traffic").is_null());
}

TEST(Traffic, OfARunWithoutOrdinaryStepsIsUnknown) {
  EXPECT_THAT(run_tiny(2, new_folder(), expecting_traffic({"train.max_steps=2"})).errors,
              Each(HasSubstr("no ordinary step among those of the run")));
}

TEST(Traffic, ThatCannotBePlannedIsRefusedBeforeTheFirstStep) {
  const auto run = run_tiny(2, new_folder(), expecting_traffic({"strategy=local_sgd"}));
  EXPECT_THAT(run.errors, Each(HasSubstr("expect.traffic: there is no plan to compare with: strategy: what local_sgd "
                                         "sends in a step is not planned")));
  EXPECT_THAT(run.began_after, Each(-1));
}

// A plan draws random numbers and builds another replica, but only after training.
TEST(Traffic, DoesNotChangeTheRun) {
  const Changes changes{"strategy=all_reduce", "evaluate.validation=0.2"};
  const auto without = run_tiny(2, new_folder(), changes), with = run_tiny(2, new_folder(), expecting_traffic(changes));
  EXPECT_EQ(testing::metrics_but_times(without.folder), testing::metrics_but_times(with.folder));
  EXPECT_EQ(testing::relative_difference(with.weights[0], without.weights[0]), 0);
}

TEST(StepCommunication, CountsACollectiveOnceForItsGroup) {
  MeshShape shape;
  shape[Axis::kData] = 2;
  shape[Axis::kTensor] = 2;
  const AxisBits data = 1U << static_cast<int>(Axis::kData), all = data | 1U << static_cast<int>(Axis::kTensor);
  // All four ranks call an all-reduce of 100 bytes along data, in two groups; each of two sends 8 bytes to another.
  const OperationCounts counts{
      {{data, Op::kAllReduce}, {4, 400}}, {{all, Op::kSend}, {2, 16}}, {{all, Op::kRecv}, {2, 16}}};
  const auto step = communication_of(shape, counts);
  EXPECT_EQ(step.collectives, 2);
  EXPECT_EQ(step.bytes, 400 + 16);
}

}  // namespace
}  // namespace phalanx
