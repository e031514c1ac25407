// SPDX-License-Identifier: Apache-2.0
// Tests that a run that is stopped and resumed equals the uninterrupted one bit for bit, even if the strategy has
// state.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::file_name;
using testing::relative_difference;
using testing::run_ranks;
using testing::train;
using testing::training_config;

class StrategyResume : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(
    Strategies, StrategyResume,
    ::testing::Values("auto", "all_reduce", "{all_reduce: {compression: {name: powersgd, start_after: 5}}}",
                      "{all_reduce: {compression: topk}}", "{overlapped: {compression: int8}}",
                      "{sharded: {compression: {name: one_bit, start_after: 12}}}",
                      "{local_sgd: {every: 4, momentum: average}}", "{local_sgd: {every: 4, compression: int8}}",
                      "{local_sgd: {every: 1}}", "{diloco: {every: 1}}", "{diloco: {every: 4}}",
                      "{diloco: {every: 4, overlap: 3, compression: int4}}",
                      "{local_sgd: {every: 4, warmup_steps: 12, warmup_compression: one_bit, compression: topk}}",
                      "gossip", "{gossip: {compression: int8}}",
                      "{intra: overlapped, inter: {local_sgd: {every: 3}}, ranks_per_group: 2}",
                      "{intra: sharded, inter: {local_sgd: {every: 1}}, ranks_per_group: 1}",
                      "{intra: sharded, inter: gossip, ranks_per_group: 1}"));

std::vector<std::string> changes(const std::string& strategy) {
  return {"strategy=" + strategy, "optimizer.lr=0.05", "train.max_steps=20", "checkpoint.final_weights=false"};
}

double metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [each, value] : metrics) {
    if (each == name) return value;
  }
  return -1;
}

void expect_same_bits(const std::string& strategy, const std::vector<std::string>& more = {}, int ranks = 2) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const auto run = file_name(strategy);
    auto stopped = changes(strategy);
    stopped.insert(stopped.end(), more.begin(), more.end());
    const auto whole = train(training_config(stopped), world, run + "_whole");
    int steps = 0;
    train(training_config(stopped), world, run, [&] { return ++steps == 9; });
    world->barrier().wait();
    auto resumed = stopped;
    resumed.push_back("checkpoint.resume=auto");
    const auto rest = train(training_config(resumed), world, run);
    EXPECT_TRUE(at::equal(rest.weights, whole.weights)) << "rank " << world->rank();
    EXPECT_EQ(rest.test, whole.test);
  });
}

TEST_P(StrategyResume, ResumesBitForBit) { expect_same_bits(GetParam()); }

// The size of buckets determines which of them form a fragment: with other buckets it would be a different run.
TEST(FragmentsResume, ResumesBitForBit) {
  expect_same_bits("{diloco: {every: 4, fragments: 2, compression: int8}}", {"framework.bucket_bytes=1KB"});
}

TEST(FragmentsResume, ResumesExchangesThatWereUnderWay) {
  for (const std::string mix : {"0", "0.5"}) {
    expect_same_bits("{diloco: {every: 4, fragments: 2, overlap: 2, mix: " + mix + "}}",
                     {"framework.bucket_bytes=1KB"});
  }
}

// One fragment is synchronized in the last step, which is complete when the run ends.
TEST(FragmentsResume, DoesNothingIfTheRunIsComplete) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    auto done = changes("{diloco: {every: 4, fragments: 2}}");
    done.insert(done.end(), {"checkpoint.every_epochs=1", "framework.bucket_bytes=1KB"});
    const auto first = train(training_config(done), world, "fragments_done");
    world->barrier().wait();
    done.emplace_back("checkpoint.resume=auto");
    const auto again = train(training_config(done), world, "fragments_done");
    EXPECT_TRUE(at::equal(again.weights, first.weights)) << "rank " << world->rank();
    EXPECT_EQ(again.test, first.test);
  });
}

// A single rank determines the order in which gradients arrive. The state of the servers' rules is restored, and so are
// the updates that the rank has not sent yet.
TEST(ServedResume, OneRankResumesBitForBit) {
  for (const std::string strategy : {"{downpour: {every: 4, server_optimizer: {name: adam, lr: 0.003}}}",
                                     "{ssp: {server_optimizer: {name: ftrl, lr: 0.1}}}",
                                     "{sync_ps: {server_optimizer: {name: sgd, lr: 0.01, momentum: 0.9}}}",
                                     "{dc_asgd: {lr: 0.05, lambda: 2, mean_square: 0.95}}"}) {
    expect_same_bits(strategy, {}, 1);
  }
}

// Several ranks update parameters on servers in any order, which changes rounding.
TEST(ServedResume, ResumesFromTheValuesOnTheServers) {
  for (const std::string strategy : {"{ssp: {staleness: 0}}", "{easgd: {every: 4, synchronous: true}}", "sync_ps",
                                     "{sync_ps: {server_optimizer: {name: adam, lr: 0.003, eps: 0.001}}}"}) {
    run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
      const auto run = file_name(strategy);
      const auto whole = train(training_config(changes(strategy)), world, run + "_whole");
      int steps = 0;
      train(training_config(changes(strategy)), world, run, [&] { return ++steps == 9; });
      world->barrier().wait();
      auto resumed = changes(strategy);
      resumed.push_back("checkpoint.resume=auto");
      const auto rest = train(training_config(resumed), world, run);
      EXPECT_LT(relative_difference(rest.weights, whole.weights), 1e-5) << strategy;
    });
  }
}

// On another number of ranks and with other buckets, the state of each rank is dropped, and training continues from the
// saved parameters. The result must be close to the result of an uninterrupted run.
void expect_other_buckets_near(const std::string& strategy, int ranks) {
  const auto run = file_name(strategy) + "_on_" + std::to_string(ranks);
  at::Tensor stopped_at, whole;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    int steps = 0;
    const auto half = train(training_config(changes(strategy)), world, run, [&] { return ++steps == 9; });
    const auto all = train(training_config(changes(strategy)), world, run + "_whole");
    if (world->rank() == 0) stopped_at = half.weights, whole = all.weights;
  });
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    auto resumed = changes(strategy);
    resumed.insert(resumed.end(), {"checkpoint.resume=auto", "framework.bucket_bytes=100KB"});
    const auto rest = train(training_config(resumed), world, run);
    at::Tensor root = rest.weights.clone();
    world->broadcast(root, 0).wait();
    EXPECT_TRUE(at::equal(rest.weights, root)) << "rank " << world->rank();
    EXPECT_LT(relative_difference(rest.weights, whole), 0.1);
    EXPECT_LT(relative_difference(rest.weights, whole), relative_difference(stopped_at, whole));
  });
}

TEST_P(StrategyResume, ResumesWithOtherBuckets) { expect_other_buckets_near(GetParam(), 2); }
TEST_P(StrategyResume, ResumesWithOtherRanksAndBuckets) { expect_other_buckets_near(GetParam(), 3); }

// All ranks then have one replica, even if their replicas had diverged.
TEST_P(StrategyResume, ResumesWithAnotherStrategy) {
  const auto run = file_name(GetParam()) + "_strategy";
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    int steps = 0;
    train(training_config(changes(GetParam())), world, run, [&] { return ++steps == 9; });
    world->barrier().wait();
    for (const std::string other : {"all_reduce", "{local_sgd: {every: 4, compression: topk}}"}) {
      auto resumed = changes(other);
      resumed.insert(resumed.end(), {"checkpoint.resume=auto", "replica_check.every_steps=1"});
      const auto rest = train(training_config(resumed), world, run);
      EXPECT_GT(metric(rest.test, "accuracy"), 0.3) << other;
    }
  });
}

// A run that has ended stays unchanged.
TEST_P(StrategyResume, DoesNothingIfTheRunIsComplete) {
  const auto run = file_name(GetParam()) + "_done";
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    auto done = changes(GetParam());
    done.push_back("checkpoint.every_epochs=1");
    const auto first = train(training_config(done), world, run);
    world->barrier().wait();
    done.push_back("checkpoint.resume=auto");
    const auto again = train(training_config(done), world, run);
    EXPECT_TRUE(at::equal(again.weights, first.weights)) << "rank " << world->rank();
    EXPECT_EQ(again.test, first.test);
  });
}

// Ranks update one copy of the parameters without locks. Two ranks save it and one resumes, and vice versa.
TEST(HogwildResume, ResumesTheSharedCopyOnAnotherNumberOfRanks) {
  for (const auto& [savers, loaders] : {std::pair(2, 1), std::pair(1, 2)}) {
    const auto run = "hogwild" + std::to_string(savers);
    const auto on = [&](int ranks, std::vector<std::string> more, const auto& look) {
      more.insert(more.end(), {"strategy=hogwild", "checkpoint.every_epochs=1"});
      run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
        const auto trained = train(training_config(more), world, run);
        look(trained, world->rank());
      });
    };
    at::Tensor saved;
    double loss = 0;
    on(savers, {"train.max_steps=14"}, [&](const auto& trained, int rank) {
      if (rank == 0) saved = trained.weights.clone(), loss = metric(trained.test, "loss");
    });
    on(loaders, {"train.max_steps=14", "checkpoint.resume=auto"}, [&](const auto& trained, int rank) {
      EXPECT_TRUE(at::equal(trained.weights, saved)) << "nothing is left to do; rank " << rank;
      EXPECT_NEAR(metric(trained.test, "loss"), loss, 1e-6);
    });
    on(loaders, {"train.max_steps=56", "checkpoint.resume=auto"}, [&](const auto& trained, int rank) {
      EXPECT_LT(metric(trained.test, "loss"), loss) << "the resumed run has learned more; rank " << rank;
    });
  }
}

}  // namespace
}  // namespace phalanx
