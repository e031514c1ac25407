// SPDX-License-Identifier: Apache-2.0
// Compares replicas in the threads of one process with one model that takes the whole batch.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <string>
#include <tuple>

#include "framework/base/error.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::file_name;
using ::testing::HasSubstr;
using testing::relative_difference;
using testing::run_ranks;
using ::testing::ThrowsMessage;
using testing::train;
using testing::training_config;

using Case = std::tuple<std::string, std::string, int, int>;  // model, strategy, ranks, replicas

class DataParallel : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(OneRank, DataParallel,
                         ::testing::Combine(::testing::Values("smooth_under_test"), ::testing::Values("single"),
                                            ::testing::Values(1), ::testing::Values(2, 3)));
INSTANTIATE_TEST_SUITE_P(Ranks, DataParallel,
                         ::testing::Combine(::testing::Values("smooth_under_test"),
                                            ::testing::Values("all_reduce", "overlapped", "sharded"),
                                            ::testing::Values(2), ::testing::Values(2)));

TEST_P(DataParallel, ReplicasFollowOneModel) {
  const auto& [model, strategy, ranks, replicas] = GetParam();
  const auto run = file_name(model + "_" + strategy) + std::to_string(ranks) + "_" + std::to_string(replicas);
  run_ranks("inproc", ranks, [&, &model = model, &strategy = strategy, replicas = replicas](const auto& world) {
    const auto alone = world->split(world->rank(), 0);
    const auto one = train(training_config({"model=" + model, "strategy=single"}), alone,
                           run + "_alone" + std::to_string(world->rank()));
    const auto many = train(
        training_config({"model=" + model, "strategy=" + strategy, "train.data_parallel=" + std::to_string(replicas)}),
        world, run);
    EXPECT_LT(relative_difference(many.weights, one.weights), 1e-5);
    for (std::size_t i = 0; i < one.test.size(); ++i) {
      EXPECT_NEAR(many.test[i].second, one.test[i].second, 1e-4) << one.test[i].first;
    }
  });
}

TEST(DataParallelStep, GivesTheSameBitsTwice) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto config = training_config({"model=lenet", "strategy=single", "train.data_parallel=3"});
    EXPECT_TRUE(at::equal(train(config, world, "first").weights, train(config, world, "second").weights));
  });
}

TEST(DataParallelStep, RefusesStatisticsOverRanks) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto config = training_config({"model=resnet18", "train.data_parallel=2", "train.sync_batch_norm=true"});
    EXPECT_THAT([&] { train(config, world, "refused"); },
                ThrowsMessage<ConfigError>(HasSubstr("replicas in threads have separate batch norm statistics")));
  });
}

}  // namespace
}  // namespace phalanx
