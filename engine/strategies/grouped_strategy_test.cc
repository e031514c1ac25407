// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/grouped_strategy.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/optimizer.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

using CallLog = std::vector<std::string>;

// Records its calls, each with the name of the strategy. It implements all optional interfaces or none.
class RecordedStrategy final : public Strategy,
                               private UpdatesOnServers,
                               private FreesGradients,
                               private ShardsParameters {
 public:
  RecordedStrategy(std::string name, bool extended, CallLog& calls)
      : name_(std::move(name)), extended_(extended), calls_(calls) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    std::vector<Slice> slices;
    for (const auto& bucket : parameters.buckets()) slices.push_back(whole(bucket));
    return slices;
  }
  void attach_state(const std::vector<StateTensor>& state) override {
    for (const auto& tensor : state) note("state of slice " + std::to_string(tensor.slice));
  }
  void reset() override { note("reset"); }
  void before_update(std::int64_t step) override { note("before_update " + std::to_string(step)); }
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }
  void after_update(std::int64_t step) override { note("after_update " + std::to_string(step)); }
  bool replicas_equal() const override { return extended_; }
  void sum_over_slices(at::Tensor& sums) override { sums.add_(name_ == "a" ? 10 : 20); }
  void gather_slices() override { note("gather_slices"); }
  StateDict state() override { return {{"counter", counter_}, {"centre/" + name_ + ".weight", counter_, true}}; }
  void finish() override { note("finish"); }
  Metrics metrics() const override { return {{name_, 1}}; }
  StrategyExtensions extensions() override {
    if (!extended_) return {};
    return {.updates_on_servers = this, .frees_gradients = this, .shards_parameters = this};
  }

 private:
  std::unique_ptr<Optimizer> make_optimizer() override { return testing::make_optimizer("{name: sgd, lr: 1}"); }
  void after_backward() override { note("after_backward"); }
  BlockRunner run_blocks(const std::vector<Block>&) override {
    return [this](const Block& block, const at::Tensor& input) {
      note("before " + block.name);
      at::Tensor output = block.forward(input);
      note("after " + block.name);
      return output;
    };
  }
  void with_full_parameters(const std::function<void()>& body) override {
    note("gather");
    body();
    note("release");
  }
  void unshard() override { note("unshard"); }

  void note(const std::string& what) { calls_.push_back(name_ + ": " + what); }

  std::string name_;
  bool extended_;
  CallLog& calls_;
  at::Tensor counter_ = at::zeros({1});
};

// Strategies a, for two buckets, and b, for one, as one strategy on one rank.
class GroupedStrategies : public ::testing::Test {
 protected:
  void run(bool a_extended, bool b_extended, const std::function<void(Strategy&)>& body) {
    testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& group) {
      const auto named = [](const std::string& name) { return std::pair(name, at::ones({4})); };
      const FlatParameters a({named("a.weight"), named("a.bias")}, *group, 16), b({named("b.weight")}, *group, 16);
      std::vector<GroupedStrategy::Member> members;
      members.push_back({{group, group, a}, std::make_unique<RecordedStrategy>("a", a_extended, calls_)});
      members.push_back({{group, group, b}, std::make_unique<RecordedStrategy>("b", b_extended, calls_)});
      GroupedStrategy strategy(std::move(members));
      buckets_ = a.buckets();
      buckets_.insert(buckets_.end(), b.buckets().begin(), b.buckets().end());
      slices_ = strategy.attach(a, Cut::kAnywhere);
      body(strategy);
      buckets_.clear(), slices_.clear();  // before the memory of the ranks is gone
    });
  }

  CallLog calls_;
  std::vector<Bucket> buckets_;  // of a and b
  std::vector<Slice> slices_;
};

TEST_F(GroupedStrategies, CallTheirMembersInOrder) {
  run(false, false, [this](Strategy& strategy) {
    strategy.reset();
    strategy.before_update(3);
    strategy.after_update(3);
    strategy.gather_slices();
    strategy.finish();
    EXPECT_THAT(calls_,
                ElementsAre("a: reset", "b: reset", "a: before_update 3", "b: before_update 3", "a: after_update 3",
                            "b: after_update 3", "a: gather_slices", "b: gather_slices", "a: finish", "b: finish"));
    EXPECT_EQ(strategy.gradient_groups().size(), 2u);
    EXPECT_EQ(strategy.metrics(), (Metrics{{"a", 1}}));
  });
}

TEST_F(GroupedStrategies, GiveEachMemberTheStateAndTheSumOfItsOwnSlices) {
  run(false, false, [this](Strategy& strategy) {
    ASSERT_EQ(slices_.size(), 3u);
    const at::Tensor values = at::zeros({4});
    strategy.attach_state({{"momentum", 1, values}, {"momentum", 2, values}});
    EXPECT_THAT(calls_, ElementsAre("a: state of slice 1", "b: state of slice 0"));
    at::Tensor sums = at::zeros({2}, at::kDouble);
    strategy.sum_over_slices(sums);
    EXPECT_EQ(sums[0].item<double>(), 10);
    EXPECT_EQ(sums[1].item<double>(), 20);
  });
}

TEST_F(GroupedStrategies, NumberStateThatBelongsToNoParameter) {
  run(false, false, [](Strategy& strategy) {
    std::vector<std::string> names;
    for (const auto& one : strategy.state()) names.push_back(one.name);
    EXPECT_THAT(names, ElementsAre("group0/counter", "centre/a.weight", "group1/counter", "centre/b.weight"));
  });
}

TEST_F(GroupedStrategies, AreEqualIfAllMembersAre) {
  run(true, true, [](Strategy& strategy) { EXPECT_TRUE(strategy.replicas_equal()); });
  run(true, false, [](Strategy& strategy) { EXPECT_FALSE(strategy.replicas_equal()); });
}

TEST_F(GroupedStrategies, ImplementOptionalInterfacesThatAllMembersImplement) {
  for (const bool extended : {false, true}) {
    run(true, extended, [extended](Strategy& strategy) {
      const auto extensions = strategy.extensions();
      EXPECT_EQ(extensions.updates_on_servers != nullptr, extended);
      EXPECT_EQ(extensions.frees_gradients != nullptr, extended);
      EXPECT_EQ(extensions.shards_parameters != nullptr, extended);
    });
  }
}

TEST_F(GroupedStrategies, GiveEachMembersOptimizerItsOwnSlices) {
  run(true, true, [this](Strategy& strategy) {
    const auto optimizer = strategy.extensions().updates_on_servers->make_optimizer();
    optimizer->attach(slices_);
    for (std::size_t i = 0; i < slices_.size(); ++i) slices_[i].gradients.fill_(static_cast<double>(i + 1));
    optimizer->update();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      EXPECT_EQ(buckets_[i].values[0].item<double>(), -static_cast<double>(i)) << "1 - 1 (" << i << " + 1)";
    }
  });
}

TEST_F(GroupedStrategies, NestTheirMembersAroundBlocksAndBodies) {
  run(true, true, [this](Strategy& strategy) {
    auto& sharded = *strategy.extensions().shards_parameters;
    const auto runner = sharded.run_blocks({});
    const Block block{
        .name = "block", .forward = [](const at::Tensor& x) { return x.add(1); }, .parameters = {}, .buffers = {}};
    EXPECT_EQ(runner(block, at::ones({1})).item<double>(), 2);
    EXPECT_THAT(calls_, ElementsAre("a: before block", "b: before block", "b: after block", "a: after block"));
    calls_.clear();
    with_full_parameters(strategy, [this] { calls_.push_back("body"); });
    EXPECT_THAT(calls_, ElementsAre("b: gather", "a: gather", "body", "a: release", "b: release"));
    calls_.clear();
    sharded.unshard();
    strategy.extensions().frees_gradients->after_backward();
    EXPECT_THAT(calls_, ElementsAre("a: unshard", "b: unshard", "a: after_backward", "b: after_backward"));
  });
}

TEST_F(GroupedStrategies, RunABodyAtOnceIfParametersHaveTheirValues) {
  run(false, false, [this](Strategy& strategy) {
    with_full_parameters(strategy, [this] { calls_.push_back("body"); });
    EXPECT_THAT(calls_, ElementsAre("body"));
  });
}

}  // namespace
}  // namespace phalanx
