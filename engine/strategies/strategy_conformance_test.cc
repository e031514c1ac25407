// SPDX-License-Identifier: Apache-2.0
// Checks the requirements of the interface and the promises of the traits for all registered strategies.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/strategy.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr int kRanks = 4;

StrategyTraits traits_of(const std::string& strategy) { return testing::load_strategy(strategy).traits(); }

// Returns all strategies, including variants whose options change their traits.
std::vector<std::string> strategies() {
  std::vector<std::string> all = Strategies::global().names();
  all.insert(
      all.end(),
      {"{name: sharded, one_copy: true}", "{name: sharded, stage: 2}", "{name: sharded, stage: 3}",
       "{name: local_sgd, compression: bf16}", "{name: local_sgd, warmup_steps: 2, warmup_compression: one_bit}",
       "{name: gossip, compression: int8}", "{name: all_reduce, compression: int8}",
       "{name: downpour, every: 2, server_optimizer: adam}", "{name: ssp, server_optimizer: adagrad}",
       "{name: sync_ps, server_optimizer: {name: sgd, momentum: 0.9}}", "{name: sync_ps, server_optimizer: adagrad}",
       "{name: dc_asgd, mean_square: 0.95}", "{intra: all_reduce, inter: dc_asgd, ranks_per_group: 2}",
       "{intra: sharded, inter: gossip, ranks_per_group: 2}",
       "{intra: overlapped, inter: {local_sgd: {every: 4}}, ranks_per_group: 2}"});
  std::erase_if(all, [](const std::string& strategy) { return traits_of(strategy).one_rank; });
  return all;
}

std::vector<std::string> strategies_where(bool StrategyTraits::* trait) {
  auto all = strategies();
  std::erase_if(all, [trait](const std::string& strategy) { return !(traits_of(strategy).*trait); });
  return all;
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(Strategy& strategy) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> all;
  for (const auto& one : strategy.state()) all.emplace_back(one.name, one.values.sizes().vec());
  return all;
}

std::int64_t elements_of(const std::vector<Slice>& slices) {
  std::int64_t elements = 0;
  for (const auto& slice : slices) elements += slice.values.numel();
  return elements;
}

/// The objects that one rank has after a strategy was attached.
struct Attached {
  CommunicatorPtr group;
  std::vector<at::Tensor> own;  // the parameters
  const FlatParameters& parameters;
  Strategy& strategy;
  std::vector<Slice> slices;
};

// Sets gradients as a backward would. Padding between parameters has gradients only if there is a bucket of gradients.
void give_gradients(const Attached& rank, double value) {
  for (const auto& bucket : rank.parameters.buckets()) bucket.gradients.fill_(value);
  for (auto parameter : rank.own) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::full_like(parameter, value);
  }
  if (auto* const frees = rank.strategy.extensions().frees_gradients) frees->after_backward();
}

class StrategyConformance : public ::testing::TestWithParam<std::string> {
 protected:
  static StrategyTraits traits() { return traits_of(GetParam()); }

  // Runs `body` on every rank, starting from different values.
  static void run(const std::function<void(const Attached&)>& body) {
    testing::run_ranks("inproc", kRanks, [&](const CommunicatorPtr& group) {
      const at::NoGradGuard no_grad;
      const auto own = testing::make_parameters(group->rank());
      const FlatParameters parameters(own, *group, testing::kBucketBytes);
      const auto strategy = testing::make_strategy(GetParam(), group);
      body({group, own, parameters, *strategy, strategy->attach(parameters, Cut::kAnywhere)});
      group->barrier().wait();  // no rank may change shared values while others look at them
      strategy->finish();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, StrategyConformance, ::testing::ValuesIn(strategies()),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(StrategyConformance, AttachingGivesEveryRankTheParametersOfRank0) {
  run([](const Attached& rank) {
    with_full_parameters(rank.strategy, [&] {
      for (const auto& parameter : rank.own) EXPECT_TRUE(at::equal(parameter, at::zeros_like(parameter)));
    });
    for (const auto& slice : rank.slices) EXPECT_TRUE(at::equal(slice.values, at::zeros_like(slice.values)));
  });
}

TEST_P(StrategyConformance, SumsOverSlicesAreSumsOverTheReplica) {
  run([](const Attached& rank) {
    std::int64_t all = 0;
    for (const auto& bucket : rank.parameters.buckets()) all += bucket.values.numel();
    at::Tensor sums = at::full({1}, elements_of(rank.slices), at::kDouble);
    rank.strategy.sum_over_slices(sums);
    EXPECT_EQ(sums.item<double>(), static_cast<double>(all));
    if (traits().shards_update) {
      EXPECT_LT(elements_of(rank.slices), all);
    }
    if (traits().intra_level && !traits().shards_update) {
      EXPECT_EQ(elements_of(rank.slices), all);
    }
  });
}

TEST_P(StrategyConformance, TensorsOfItsStateHaveDistinctNames) {
  run([](const Attached& rank) {
    std::set<std::string> names;
    for (const auto& one : rank.strategy.state()) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  });
}

// If a rank's slices are all of the buckets, its values do not have to reach other ranks.
class ShardingStrategies : public StrategyConformance {};
INSTANTIATE_TEST_SUITE_P(Strategies, ShardingStrategies,
                         ::testing::ValuesIn(strategies_where(&StrategyTraits::shards_update)),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(ShardingStrategies, ValuesThatRanksChangeInTheirSlicesReachAll) {
  run([](const Attached& rank) {
    for (const auto& slice : rank.slices) slice.values.fill_(7);
    rank.strategy.gather_slices();
    with_full_parameters(rank.strategy, [&] {
      for (const auto& parameter : rank.own) EXPECT_TRUE(at::equal(parameter, at::full_like(parameter, 7)));
    });
    if (auto* const sharded = rank.strategy.extensions().shards_parameters) sharded->unshard();
    for (const auto& parameter : rank.own) EXPECT_TRUE(at::equal(parameter, at::full_like(parameter, 7)));
  });
}

class ReducingStrategies : public StrategyConformance {};
INSTANTIATE_TEST_SUITE_P(Strategies, ReducingStrategies,
                         ::testing::ValuesIn(strategies_where(&StrategyTraits::reduces_gradients)),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(ReducingStrategies, GiveTheOptimizerTheMeanOfAllRanksGradients) {
  run([](const Attached& rank) {
    give_gradients(rank, rank.group->rank() + 1);
    rank.strategy.before_update(0);
    for (const auto& slice : rank.slices) {
      for (const auto& segment : slice.segments) {
        const at::Tensor gradients = slice.gradients.narrow(0, segment.begin, segment.count);
        EXPECT_TRUE(at::allclose(gradients, at::full_like(gradients, (kRanks + 1) / 2.0), 0.02, 0));
      }
    }
  });
}

TEST_P(StrategyConformance, NamesTheRanksWhoseGradientsTheOptimizerGets) {
  run([](const Attached& rank) {
    give_gradients(rank, rank.group->rank() + 1);
    rank.strategy.before_update(0);
    const auto groups = rank.strategy.gradient_groups();
    ASSERT_EQ(groups.size(), 1u);
    const at::Tensor mean = at::full({1}, rank.group->rank() + 1, at::kFloat);
    if (groups[0]) groups[0]->all_reduce(mean, Reduction::kMean).wait();
    for (const auto& slice : rank.slices) {
      for (const auto& segment : slice.segments) {
        const at::Tensor gradients = slice.gradients.narrow(0, segment.begin, segment.count);
        EXPECT_TRUE(at::allclose(gradients, mean.expand_as(gradients), 0.02, 0));
      }
    }
    if (traits().reduces_gradients) {
      ASSERT_TRUE(groups[0]);
      EXPECT_EQ(groups[0]->size(), kRanks);
    }
  });
}

// The backwards of a step accumulate, and between them only the shards of the gradients exist.
class FreeingStrategies : public StrategyConformance {};
INSTANTIATE_TEST_SUITE_P(Strategies, FreeingStrategies,
                         ::testing::ValuesIn(strategies_where(&StrategyTraits::frees_gradients)),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(FreeingStrategies, AddUpBackwardsAndFreeTheirGradients) {
  run([](const Attached& rank) {
    for (int backward = 0; backward < 3; ++backward) {
      give_gradients(rank, rank.group->rank() + 1);
      for (const auto& parameter : rank.own) EXPECT_FALSE(parameter.grad().defined());
      for (const auto& bucket : rank.parameters.buckets()) EXPECT_EQ(bucket.gradients.numel(), 0);
    }
    rank.strategy.before_update(0);
    for (const auto& slice : rank.slices) {
      for (const auto& segment : slice.segments) {
        const at::Tensor gradients = slice.gradients.narrow(0, segment.begin, segment.count);
        EXPECT_TRUE(at::equal(gradients, at::full_like(gradients, 3 * (kRanks + 1) / 2.0)));
      }
    }
  });
}

TEST_P(StrategyConformance, HasTheSameStateTensorsAtAnyTime) {
  run([](const Attached& rank) {
    const auto before = shapes(rank.strategy);
    for (int step = 0; step < 3; ++step) {
      give_gradients(rank, rank.group->rank() + 1);
      rank.strategy.before_update(step);
      for (const auto& slice : rank.slices) slice.gradients.zero_();
      rank.strategy.after_update(step);
      EXPECT_EQ(shapes(rank.strategy), before) << "after step " << step;
    }
  });
}

TEST_P(StrategyConformance, RanksWithoutMemoryInCommonAreRefusedWhereItIsNeeded) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto separate = std::make_shared<testing::WithoutSharedMemory>(group);
    if (traits().shared_memory) {
      EXPECT_THROW(testing::make_strategy(GetParam(), separate), ConfigError);
    } else {
      EXPECT_NO_THROW(testing::make_strategy(GetParam(), separate));
    }
  });
}

}  // namespace
}  // namespace phalanx
