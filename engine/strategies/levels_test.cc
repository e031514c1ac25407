// SPDX-License-Identifier: Apache-2.0
// Compares one strategy inside hosts and another between them with the result that the two promise together.
#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/testing/strategy.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_at;
using ::testing::HasSubstr;
using testing::kElements;
using testing::kRate;
using testing::make_strategy;
using testing::run_ranks;
using ::testing::ThrowsMessage;
using testing::train;

std::string levels(const std::string& intra, const std::string& inter, int ranks_per_group) {
  return "{intra: " + intra + ", inter: " + inter + ", ranks_per_group: " + std::to_string(ranks_per_group) + "}";
}

// Takes one step of hosts that train independently, each with the mean gradient of its ranks.
void step_hosts(std::vector<at::Tensor>& x, int ranks, int per_host, int step) {
  for (int host = 0; host < static_cast<int>(x.size()); ++host) {
    const int first = host * per_host, end = std::min(ranks, first + per_host);
    at::Tensor sum = at::zeros({kElements});
    for (int rank = first; rank < end; ++rank) sum += gradient_at(x[host], rank, step);
    x[host] = x[host] - kRate / (end - first) * sum;
  }
}

// Returns the mean over ranks: the weight of a host is the number of its ranks.
at::Tensor mean_of(const std::vector<at::Tensor>& x, int ranks, int per_host) {
  at::Tensor sum = at::zeros({kElements});
  for (int rank = 0; rank < ranks; ++rank) sum += x[rank / per_host];
  return sum / ranks;
}

using LevelsCase = std::tuple<std::string, int, int>;  // intra, ranks, ranks per host

class Levels : public ::testing::TestWithParam<LevelsCase> {
 protected:
  std::string intra() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  int per_host() const { return std::get<2>(GetParam()); }
  int hosts() const { return (ranks() + per_host() - 1) / per_host(); }
  std::vector<at::Tensor> start() const { return std::vector<at::Tensor>(hosts(), at::full({kElements}, 3.0f)); }
  void expect_near(const at::Tensor& all, const std::vector<at::Tensor>& x, int step) const {
    for (int rank = 0; rank < ranks(); ++rank) {
      EXPECT_TRUE(at::allclose(all[rank], x[rank / per_host()], 1e-5, 1e-6)) << "rank " << rank << ", step " << step;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(EqualHosts, Levels,
                         ::testing::Combine(::testing::Values("all_reduce", "overlapped", "sharded"),
                                            ::testing::Values(4), ::testing::Values(1, 2, 4)));
INSTANTIATE_TEST_SUITE_P(UnequalHosts, Levels,
                         ::testing::Combine(::testing::Values("all_reduce", "overlapped"), ::testing::Values(5),
                                            ::testing::Values(2, 3)));

TEST_P(Levels, ExactAtBothIsTheMeanOverAllRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    at::Tensor x = at::full({kElements}, 3.0);
    train(levels(intra(), "all_reduce", per_host()), group, 6, [&](int step, const at::Tensor& all, auto& strategy) {
      at::Tensor sum = at::zeros({kElements});
      for (int rank = 0; rank < ranks(); ++rank) sum += gradient_at(x, rank, step);
      x = x - kRate / ranks() * sum;
      EXPECT_TRUE(at::allclose(all, x.expand_as(all), 1e-5, 1e-6)) << "step " << step;
      EXPECT_TRUE(strategy.replicas_equal());
    });
  });
}

TEST_P(Levels, LocalSgdBetweenHostsAveragesHostsByTheirRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    auto x = start();
    const auto yaml = levels(intra(), "{local_sgd: {every: 3}}", per_host());
    train(yaml, group, 8, [&](int step, const at::Tensor& all, Strategy& strategy) {
      step_hosts(x, ranks(), per_host(), step);
      const bool averages = step % 3 == 2;
      if (averages) std::ranges::fill(x, mean_of(x, ranks(), per_host()));
      expect_near(all, x, step);
      EXPECT_EQ(strategy.replicas_equal(), averages);
    });
  });
}

TEST_P(Levels, AWarmUpBetweenHostsIsTheMeanOverAllRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    auto x = start();
    const auto strategy = levels(intra(), "{local_sgd: {every: 3, warmup_steps: 4}}", per_host());
    train(strategy, group, 9, [&](int step, const at::Tensor& all, Strategy&) {
      step_hosts(x, ranks(), per_host(), step);
      const bool averages = step < 4 || step == 6;
      if (averages) std::ranges::fill(x, mean_of(x, ranks(), per_host()));  // averaging gradients or values is the same
      expect_near(all, x, step);
    });
  });
}

TEST_P(Levels, CompressedAveragesOfHostsAreWeightedByTheirRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    auto x = start();
    const auto strategy = levels(intra(), "{local_sgd: {every: 2, warmup_steps: 5, compression: bf16}}", per_host());
    train(strategy, group, 11, [&](int step, const at::Tensor& all, Strategy&) {
      step_hosts(x, ranks(), per_host(), step);
      if (step < 5 || step % 2 == 0) std::ranges::fill(x, mean_of(x, ranks(), per_host()));
      for (int rank = 0; rank < ranks(); ++rank) {
        EXPECT_TRUE(at::allclose(all[rank], x[rank / per_host()], 1e-3, 1e-3)) << "rank " << rank << ", step " << step;
      }
    });
  });
}

TEST_P(Levels, GossipBetweenHostsKeepsTheMeanOverRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    at::Tensor mean = at::full({kElements}, 3.0);
    train(levels(intra(), "gossip", per_host()), group, 12, [&](int step, const at::Tensor& all, auto&) {
      mean = mean - kRate * gradient_at(mean, (ranks() - 1) / 2.0, step);  // the gradient is linear
      EXPECT_TRUE(at::allclose(all.mean(0), mean, 1e-5, 1e-6)) << "step " << step;
    });
  });
}

TEST_P(Levels, MomentumOfHostsIsAveragedByTheirRanks) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 1.0)}, *group, 1 << 20);
    const auto strategy =
        make_strategy(levels(intra(), "{local_sgd: {every: 1, momentum: average}}", per_host()), group);
    std::vector<StateTensor> state;
    for (const auto& slice : strategy->attach(parameters, Cut::kAnywhere)) {
      state.push_back({"momentum", 0, at::full_like(slice.values, group->rank() / per_host())});
    }
    strategy->attach_state(state);
    strategy->after_update(0);
    double sum = 0;
    for (int rank = 0; rank < ranks(); ++rank) sum += rank / per_host();
    for (const auto& one : state) EXPECT_NEAR(one.values[0].item<double>(), sum / ranks(), 1e-6);
  });
}

TEST_P(Levels, GossipBetweenHostsKeepsEachHostOneReplica) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    train(levels(intra(), "gossip", per_host()), group, 8, [&](int step, const at::Tensor& all, auto&) {
      for (int rank = 0; rank < ranks(); ++rank) {
        const int leader = rank / per_host() * per_host();
        EXPECT_TRUE(at::equal(all[rank], all[leader])) << "rank " << rank << ", step " << step;
      }
    });
  });
}

TEST_P(Levels, SumsOfSlicesAreOverTheReplicaOfAHost) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 1.0)}, *group, 1 << 20);
    const auto strategy = make_strategy(levels(intra(), "local_sgd", per_host()), group);
    double own = 0;
    for (const auto& slice : strategy->attach(parameters, Cut::kAnywhere)) own += slice.values.sum().item<double>();
    at::Tensor sums = at::full({1}, own, at::kDouble);
    strategy->sum_over_slices(sums);
    EXPECT_EQ(sums.item<double>(), kElements);
  });
}

// If ranks disagreed, they would not evaluate together. One group has one rank more than the other, and this rank has
// no counterpart.
TEST(LevelsOption, AllRanksOfUnequalGroupsSayWhetherReplicasAreEqual) {
  for (const std::string inter :
       {"all_reduce", "sync_ps", "local_sgd", "gossip", "easgd", "downpour", "ssp", "dc_asgd"}) {
    for (const int per_group : {2, 3}) {
      run_ranks("inproc", 2 * per_group - 1, [&](const CommunicatorPtr& group) {
        train(levels("all_reduce", inter, per_group), group, 3, [&](int step, const at::Tensor&, auto& strategy) {
          const at::Tensor equal = at::full({1}, strategy.replicas_equal() ? 1.0 : 0.0);
          const at::Tensor all = testing::gather(equal, *group);
          EXPECT_TRUE(at::equal(all, equal.expand_as(all))) << inter << ", step " << step << ": " << all;
        });
      });
    }
  }
}

// The gradients of each host count once, regardless of the number of its ranks.
TEST(LevelsOption, LeadersCommunicateForTheirHosts) {
  for (const std::string inter : {"all_reduce", "sync_ps"}) {
    run_ranks("inproc", 5, [&](const CommunicatorPtr& group) {
      at::Tensor x = at::full({kElements}, 3.0);
      const auto strategy = "{intra: overlapped, inter: " + inter + ", ranks_per_group: 2, leaders: 1}";
      train(strategy, group, 6, [&](int step, const at::Tensor& all, auto&) {
        at::Tensor sum = at::zeros({kElements});
        for (int rank = 0; rank < 5; ++rank) sum += gradient_at(x, rank, step);
        x = x - kRate / 5 * sum;
        EXPECT_TRUE(at::allclose(all, x.expand_as(all), 1e-5, 1e-6)) << inter << ", step " << step;
      });
      const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 1.0)}, *group, 1 << 20);
      const auto slices = make_strategy(strategy, group)->attach(parameters, Cut::kAnywhere);
      EXPECT_EQ(slices.empty(), group->rank() % 2 != 0) << "only the leader of a host has a part";
    });
  }
}

TEST(LevelsOption, CompressesWhatGoesBetweenHosts) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& group) {
    const FlatParameters parameters(std::vector<at::Tensor>{at::full({20, 30}, 1.0)}, *group, 1 << 20);
    const auto strategy = make_strategy(levels("all_reduce", "{all_reduce: {compression: bf16}}", 2), group);
    const auto slices = strategy->attach(parameters, Cut::kAnywhere);
    parameters.buckets()[0].gradients.fill_(group->rank());
    strategy->before_update(0);
    EXPECT_TRUE(at::allclose(slices.at(0).gradients, at::full_like(slices.at(0).gradients, 1.5), 1e-2, 0));
    bool counted = false;
    for (const auto& [name, value] : strategy->metrics()) counted |= name == "inter_sent_bytes" && value > 0;
    EXPECT_TRUE(counted);
  });
}

// Makes the strategy in a topology of racks of four ranks and of pairs, which have the same keys in every rack.
std::unique_ptr<Strategy> make_in_topology(const std::string& strategy, const CommunicatorPtr& group) {
  const int rank = group->rank();
  return make_strategy(testing::load_strategy(strategy), {.mesh = Mesh(group), .group = group, .topology = [rank] {
                                                            return std::vector<Key>{
                                                                {"rack", std::to_string(rank / 4)},
                                                                {"pair", std::to_string(rank / 2 % 2)}};
                                                          }});
}

// Returns the number of elements that each rank's optimizer updates: a group of the level divides them all.
std::int64_t own_elements(const std::string& level, const CommunicatorPtr& group) {
  const FlatParameters parameters(std::vector<at::Tensor>{at::full({128}, 1.0)}, *group, 1 << 20);
  const auto strategy = make_in_topology("{intra: sharded, inter: local_sgd, level: " + level + "}", group);
  std::int64_t own = 0;
  for (const auto& slice : strategy->attach(parameters, Cut::kAnywhere)) own += slice.values.numel();
  return own;
}

TEST(LevelsOption, AnyLevelOfTheTopologyDividesTheRanks) {
  run_ranks("inproc", 8, [](const CommunicatorPtr& group) {
    EXPECT_EQ(own_elements("rack", group), 32);
    EXPECT_EQ(own_elements("pair", group), 64) << "pairs 0 of two racks are two groups";
    EXPECT_EQ(own_elements("host", group), 16) << "all ranks are on this host";
  });
}

TEST(LevelsOption, RefusesALevelThatTheTopologyDoesNotHave) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    EXPECT_THAT([&] { make_in_topology("{intra: all_reduce, level: rak}", group); },
                ThrowsMessage<ConfigError>(HasSubstr("\"rak\" is not one of framework.topology.levels: rack, pair")));
    EXPECT_THAT([&] { make_strategy("{intra: all_reduce, level: numa}", group); },
                ThrowsMessage<ConfigError>(HasSubstr("framework.topology.levels: there are none")));
    EXPECT_THAT([&] { make_in_topology("{intra: all_reduce, level: rack, ranks_per_group: 2}", group); },
                ThrowsMessage<ConfigError>(HasSubstr("cannot be combined with strategy.level: rack")));
  });
}

TEST(LevelsOption, RefusesStrategiesThatDoNotWorkAtALevel) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto make = [&](const std::string& text) { return [&, text] { make_strategy(text, group); }; };
    EXPECT_THAT(make("{intra: gossip, inter: all_reduce}"),
                ThrowsMessage<ConfigError>(HasSubstr(
                    "strategy.intra: gossip does not work at this level; known: all_reduce, overlapped, sharded")));
    EXPECT_THAT(make("{intra: {name: sharded, stage: 2}, inter: all_reduce}"),
                ThrowsMessage<ConfigError>(HasSubstr("strategy.intra: sharded does not work at this level with these "
                                                     "options, but with its default ones")));
    EXPECT_THAT(make("{intra: all_reduce, inter: overlapped}"),
                ThrowsMessage<ConfigError>(HasSubstr("strategy.inter: overlapped does not work at this level")));
    EXPECT_THAT(make("{intra: sharded, inter: all_reduce, ranks_per_group: 1, leaders: 1}"),
                ThrowsMessage<ConfigError>(HasSubstr("strategy.leaders: sharded gives every rank of a host a part")));
    EXPECT_THAT(make(levels("sharded", "local_sgd", 2)),
                ThrowsMessage<ConfigError>(
                    HasSubstr("sharded needs hosts with equal numbers of ranks, but they have 2, 1; use all_reduce")));
  });
}

}  // namespace
}  // namespace phalanx
