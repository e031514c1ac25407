// Stopped and resumed, a run equals the uninterrupted one bit for bit: also where the strategy itself remembers things.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::file_name;
using testing::run_ranks;
using testing::train;
using testing::training_config;

class StrategyResume : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, StrategyResume,
                         ::testing::Values("all_reduce",
                                           "{all_reduce: {compression: {name: powersgd, start_after: 5}}}",
                                           "{all_reduce: {compression: topk}}", "{overlapped: {compression: int8}}",
                                           "{sharded: {compression: one_bit}}",
                                           "{local_sgd: {every: 4, momentum: average}}",
                                           "{local_sgd: {every: 4, compression: int8}}", "gossip",
                                           "{intra: overlapped, inter: {local_sgd: {every: 3}}, ranks_per_group: 2}",
                                           "{intra: sharded, inter: gossip, ranks_per_group: 1}"));

std::vector<std::string> changes(const std::string& strategy) {
  return {"strategy=" + strategy, "train.max_steps=20", "checkpoint.final_weights=false"};
}

TEST_P(StrategyResume, GoesOnBitForBit) {
  run_ranks("inproc", 2, [this](const CommunicatorPtr& world) {
    const auto strategy = GetParam();
    const auto run = file_name(strategy);
    const auto whole = train(training_config(changes(strategy)), world, run + "_whole");
    int steps = 0;
    train(training_config(changes(strategy)), world, run, [&] { return ++steps == 9; });
    world->barrier().wait();
    auto resumed = changes(strategy);
    resumed.push_back("checkpoint.resume=auto");
    const auto rest = train(training_config(resumed), world, run);
    EXPECT_TRUE(at::equal(rest.weights, whole.weights)) << "rank " << world->rank();
    EXPECT_EQ(rest.test, whole.test);
  });
}

// On another number of ranks what each remembered of its own is forgotten, and the run goes on.
TEST_P(StrategyResume, GoesOnWithOtherRanks) {
  const auto run = file_name(GetParam()) + "_other";
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    int steps = 0;
    train(training_config(changes(GetParam())), world, run, [&] { return ++steps == 9; });
  });
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    auto resumed = changes(GetParam());
    resumed.push_back("checkpoint.resume=auto");
    const auto rest = train(training_config(resumed), world, run);
    at::Tensor root = rest.weights.clone();
    world->broadcast(root, 0).wait();
    EXPECT_TRUE(at::equal(rest.weights, root)) << "rank " << world->rank();
  });
}

}  // namespace
}  // namespace phalanx
