// SPDX-License-Identifier: Apache-2.0
// Checks the treatment of parameters without a gradient under every strategy, with momentum and weight decay.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/strategies/unused_parameters.h"
#include "engine/testing/optimizer.h"
#include "engine/testing/strategy.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr int kUnusedRanks = 4, kSteps = 6;  // the mean of 4 equal values is exact
constexpr float kStart = 3;
constexpr double kMomentum = 0.9, kDecay = 0.1;  // used with kRate
constexpr const char* kSgd = "{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1}";

std::string with_servers(const std::string& strategy) {
  return "{name: " + strategy + ", server_optimizer: " + kSgd + "}";
}

std::string levels(const std::string& intra, const std::string& inter) {
  return "{intra: " + intra + ", inter: " + inter + ", ranks_per_group: 2}";
}

std::vector<std::string> strategies_with_unused() {
  std::vector<std::string> all = Strategies::global().names();
  all.insert(all.end(), {"{name: sharded, one_copy: true}",
                         "{name: local_sgd, every: 2}",
                         "{name: local_sgd, every: 2, momentum: average}",
                         "{name: local_sgd, every: 2, warmup_steps: 3}",
                         "{name: diloco, every: 2}",
                         "{name: easgd, every: 2}",
                         "{name: downpour, every: 2}",
                         "{name: dc_asgd, mean_square: 0.9}",
                         with_servers("sync_ps"),
                         with_servers("downpour"),
                         with_servers("downpour, every: 2"),
                         with_servers("ssp"),
                         levels("all_reduce", "all_reduce"),
                         levels("sharded", "gossip"),
                         levels("overlapped", "{local_sgd: {every: 2, warmup_steps: 3}}"),
                         levels("all_reduce", "{diloco: {every: 2}}"),
                         levels("sharded", "easgd"),
                         levels("all_reduce", "downpour"),
                         levels("sharded", "dc_asgd"),
                         levels("sharded", "{sync_ps: {server_optimizer: " + std::string(kSgd) + "}}"),
                         levels("all_reduce", "{ssp: {server_optimizer: " + std::string(kSgd) + "}}")});
  std::erase_if(all, [](const std::string& strategy) {
    const auto traits = testing::load_strategy(strategy).traits();
    return traits.one_rank || traits.frees_gradients;  // strategies that free gradients have a different step
  });
  return all;
}

/// One rank's replica of a model with three parameters: all ranks use `all` in every step, only rank 0 uses `first`,
/// and no rank uses `none`.
class Replica {
 public:
  Replica(const std::string& strategy, const CommunicatorPtr& group)
      : group_(group),
        flat_(NamedTensors{{"all", all}, {"first", first}, {"none", none}}, *group, 1 << 20),
        unused_({{group, group, flat_}}, [](const std::string&) { return false; }),
        strategy_(testing::make_strategy(strategy, group)) {
    auto* const servers = strategy_->extensions().updates_on_servers;
    optimizer_ = servers ? servers->make_optimizer() : testing::make_optimizer(kSgd);
    slices_ = strategy_->attach(flat_, optimizer_->cut());
    optimizer_->attach(slices_);
    strategy_->attach_state(optimizer_->state());
  }

  at::Tensor all = at::full({7}, kStart).requires_grad_(), first = at::full({30}, kStart).requires_grad_(),
             none = at::full({5}, kStart).requires_grad_();

  Strategy& strategy() { return *strategy_; }

  void step(std::int64_t step, const std::function<void(const std::function<void()>& update)>& around) {
    const at::Tensor loss = group_->rank() == 0 ? all.sum() + first.sum() : all.sum();
    loss.backward();
    strategy_->before_update(step);
    unused_.agree(strategy_->gradient_groups());
    optimizer_->exclude(unused_.names());
    around([this] { optimizer_->update(); });
    strategy_->after_update(step);
  }

  void step(std::int64_t number) {
    step(number, [](const auto& update) { update(); });
  }

  /// Returns a copy of this rank's optimizer state for a parameter, preceded by its values if `values` is true.
  at::Tensor kept_of(const std::string& parameter, bool values) {
    std::vector<std::vector<at::Tensor>> tensors;  // by slice
    for (const auto& slice : slices_) tensors.push_back(values ? std::vector{slice.values} : std::vector<at::Tensor>{});
    for (const auto& state : optimizer_->state()) tensors.at(state.slice).push_back(state.values);
    std::vector<at::Tensor> parts{at::full({0}, 0.0f)};
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      for (const auto& segment : slices_[i].segments) {
        if (segment.name != parameter) continue;
        for (const auto& tensor : tensors[i]) parts.push_back(tensor.detach().narrow(0, segment.begin, segment.count));
      }
    }
    return at::concat(parts);
  }

 private:
  CommunicatorPtr group_;
  FlatParameters flat_;
  UnusedParameters unused_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Slice> slices_;
};

class UnusedUnder : public ::testing::TestWithParam<std::string> {
 protected:
  static StrategyTraits traits() { return testing::load_strategy(GetParam()).traits(); }

  static void tensor(const std::function<void(Replica&, const CommunicatorPtr&)>& body) {
    testing::run_ranks("inproc", kUnusedRanks, [&](const CommunicatorPtr& group) {
      Replica replica(GetParam(), group);
      body(replica, group);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, UnusedUnder, ::testing::ValuesIn(strategies_with_unused()),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(UnusedUnder, AParameterThatNoRankUsesKeepsValuesAndStateExactly) {
  tensor([](Replica& replica, const CommunicatorPtr& group) {
    const auto untouched = [&] { return at::equal(replica.none, at::full_like(replica.none, kStart)); };
    for (int step = 0; step < kSteps; ++step) {
      replica.step(step);
      EXPECT_TRUE(untouched()) << "step " << step;
      const at::Tensor state = replica.kept_of("none", false);
      EXPECT_TRUE(at::equal(state, at::zeros_like(state))) << "step " << step;
    }
    for (const auto& one : replica.strategy().state()) {  // state of its elements on servers
      const bool of_servers = one.name.find("servers/") != std::string::npos && one.name.ends_with("/none");
      if (!of_servers || one.values.numel() == 1) continue;
      EXPECT_TRUE(at::equal(one.values, at::zeros_like(one.values))) << one.name;
    }
    group->barrier().wait();
    replica.strategy().finish();
    EXPECT_TRUE(untouched());
    EXPECT_FALSE(at::equal(replica.all, at::full_like(replica.all, kStart)));
    EXPECT_FALSE(at::equal(replica.first, at::full_like(replica.first, kStart))) << "one rank uses it";
  });
}

// An update skips exactly the parameters that no rank uses whose gradients it combines.
TEST_P(UnusedUnder, AParameterOfOneRankIsUpdatedWithItsGradientAlone) {
  if (traits().servers_update) return;  // ranks have no optimizer
  const bool values = !traits().concurrent_updates;
  tensor([values](Replica& replica, const CommunicatorPtr& group) {
    for (int step = 0; step < kSteps; ++step) {
      replica.step(step, [&](const auto& update) {
        const auto combined = replica.strategy().gradient_groups().at(0);
        const at::Tensor first_rank = at::full({1}, group->rank(), at::kLong);
        if (combined) combined->all_reduce(first_rank, Reduction::kMin).wait();
        const at::Tensor before = replica.kept_of("first", values);
        update();
        const at::Tensor after = replica.kept_of("first", values);
        const bool used = first_rank.item<std::int64_t>() == 0;
        EXPECT_EQ(at::equal(after, before), !used || before.numel() == 0) << "step " << step;
      });
    }
    group->barrier().wait();
    replica.strategy().finish();
  });
}

// Other ranks, whose updates meet the updates of rank 0 in the same place, must add nothing to them.
class UnusedInOnePlace : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, UnusedInOnePlace,
                         ::testing::Values("hogwild", "downpour", "ssp", "{name: downpour, every: 2}",
                                           with_servers("downpour, every: 1"), with_servers("ssp"),
                                           with_servers("sync_ps"), "all_reduce"),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(UnusedInOnePlace, AParameterThatOneRankUsesIsUpdatedAsThatRankWould) {
  const auto traits = testing::load_strategy(GetParam()).traits();
  const bool synchronous = traits.reduces_gradients || GetParam().starts_with("{name: sync_ps");
  const double gradient = synchronous ? 1.0 / kUnusedRanks : 1;
  double value = kStart, momentum = 0;
  for (int step = 0; step < kSteps; ++step) {
    momentum = kMomentum * momentum + gradient + kDecay * value;
    value -= testing::kRate * momentum;
  }
  testing::run_ranks("inproc", kUnusedRanks, [&](const CommunicatorPtr& group) {
    Replica replica(GetParam(), group);
    for (int step = 0; step < kSteps; ++step) replica.step(step);
    group->barrier().wait();
    replica.strategy().finish();
    const at::Tensor first = replica.first.detach();
    EXPECT_LT((first - value).abs().max().item<double>(), 1e-5) << first[0].item<double>() << " is not " << value;
  });
}

}  // namespace
}  // namespace phalanx
