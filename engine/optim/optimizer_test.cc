// SPDX-License-Identifier: Apache-2.0
// Checks the requirements for all registered optimizers, with their defaults and with all kinds of state.
#include "engine/testing/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/file_name.h"

namespace phalanx::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Returns the fields of optimizers, without the braces.
std::vector<std::string> optimizers() {
  std::vector<std::string> all{"name: sgd, momentum: 0.9, nesterov: true",
                               "name: sgd, momentum: 0.9, dampening: 0.5",
                               "name: adam, amsgrad: true",
                               "name: adamw, amsgrad: true",
                               "name: adagrad, lr_decay: 0.1, initial_sum: 0.1",
                               "name: rmsprop, momentum: 0.9, centered: true",
                               "name: ftrl, l1: 0.01",
                               "name: lamb, adapt_vectors: true",
                               "name: lars, adapt_vectors: true",
                               "name: adafactor, relative_step: false",
                               "name: muon, nesterov: false"};
  for (const auto& name : Optimizers::global().names()) all.push_back("name: " + name);
  return all;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return testing::file_name(info.param.substr(6));
}

class EveryOptimizer : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Optimizer> make(const std::string& more = "", const ParameterGroups& groups = {}) {
    return make_optimizer("{" + GetParam() + more + "}", groups);
  }

  // Returns the network after 7 updates.
  static Bucket trained(Optimizer& optimizer, double rate) {
    auto network = small_network();
    optimizer.attach({whole(network)});
    optimizer.set_learning_rate(rate);
    train(optimizer, {whole(network)}, 0, 7);
    return network;
  }

  static bool same(const Bucket& a, const Bucket& b, bool biases) {
    return std::ranges::all_of(a.segments, [&](const Segment& segment) {
      return segment.name.ends_with("bias") != biases ||
             at::equal(parameter_of(a.values, segment), parameter_of(b.values, segment));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Optimizers, EveryOptimizer, ::testing::ValuesIn(optimizers()), test_name);

TEST_P(EveryOptimizer, UpdatesValuesAndZeroesGradients) {
  const auto optimizer = make();
  auto network = small_network();
  const at::Tensor before = network.values.clone();
  optimizer->attach({whole(network)});
  EXPECT_EQ(optimizer->updates(), 0);
  train(*optimizer, {whole(network)}, 0, 1);
  EXPECT_EQ(optimizer->updates(), 1);
  EXPECT_EQ(network.gradients.abs().max().item<float>(), 0);
  for (const auto& segment : network.segments) {
    EXPECT_FALSE(at::equal(parameter_of(network.values, segment), parameter_of(before, segment))) << segment.name;
  }
  EXPECT_TRUE(network.values.isfinite().all().item<bool>());
}

TEST_P(EveryOptimizer, ALearningRateOf0ChangesNothing) {
  const auto optimizer = make(", weight_decay: 0.1");
  EXPECT_TRUE(at::equal(trained(*optimizer, 0).values, small_network().values));
  EXPECT_EQ(optimizer->learning_rate(), 0);
}

TEST_P(EveryOptimizer, GradientsOf0ChangeNoValue) {
  const auto optimizer = make(", weight_decay: 0");
  auto network = small_network();
  optimizer->attach({whole(network)});
  for (int i = 0; i < 3; ++i) optimizer->update();
  EXPECT_TRUE(at::equal(network.values, small_network().values));
}

TEST_P(EveryOptimizer, GroupsHaveTheirOwnLearningRate) {
  const auto plain = make(), slower = make(), grouped = make("", {{"bias$", 0.25}, {"layer", 9}});
  const auto a = trained(*plain, 0.01), b = trained(*slower, 0.0025);
  auto grouped_network = trained(*grouped, 0.01);
  EXPECT_TRUE(same(grouped_network, b, true));
  EXPECT_FALSE(same(grouped_network, a, true));
  EXPECT_FALSE(same(grouped_network, a, false)) << "layer.weight has nine times the rate";
  const auto biases_alone = make("", {{"bias$", 0.25}});
  EXPECT_TRUE(same(trained(*biases_alone, 0.01), a, false));
}

TEST_P(EveryOptimizer, GroupsHaveTheirOwnWeightDecay) {
  const auto with = make(", weight_decay: 0.5"), without = make(", weight_decay: 0"),
             grouped = make(", weight_decay: 0.5", {{"bias$", 1, 0}});
  const auto a = trained(*with, 0.01), b = trained(*without, 0.01), c = trained(*grouped, 0.01);
  EXPECT_TRUE(same(c, a, false));
  EXPECT_TRUE(same(c, b, true));
  EXPECT_FALSE(same(a, b, false)) << "weight decay does something";
}

// The division of parameters into slices must not matter, neither to elementwise optimizers nor to those that need
// whole parameters.
TEST_P(EveryOptimizer, SeveralSlicesAreUpdatedAsOne) {
  const ParameterGroups groups{{"bias$", 0.5, 0}};
  const auto one = make("", groups), several = make("", groups);
  const auto network = trained(*one, 0.01), parts = small_network();
  std::vector<Slice> slices;
  for (const auto& [first, last] : {std::pair{0, 1}, std::pair{2, 2}, std::pair{3, 5}}) {
    const auto begin = parts.segments[first].begin;
    slices.push_back(part(whole(parts), begin, parts.segments[last].end() - begin));
  }
  several->attach(slices);
  several->set_learning_rate(0.01);
  train(*several, slices, 0, 7);
  EXPECT_TRUE(at::equal(parts.values, network.values));
}

// Sharding must not change any bit, wherever the borders are.
TEST_P(EveryOptimizer, AllowedCutsChangeNoBit) {
  const ParameterGroups groups{{"bias$", 0.5, 0}};
  const auto one = make("", groups), sharded = make("", groups);
  const auto parts = small_network();
  std::vector<Slice> slices;
  for (const auto& [begin, end] : {std::pair{0, 16}, std::pair{16, 400}, std::pair{400, 577}, std::pair{577, 1058}})
    slices.push_back(part(whole(parts), begin, end - begin));
  if (sharded->cut() == Cut::kBetweenParameters) {
    const std::string name = GetParam().substr(6, GetParam().find(',') - 6);
    EXPECT_THAT([&] { sharded->attach(slices); },
                ThrowsMessage<ConfigError>(HasSubstr("optimizer " + name +
                                                     " needs whole parameters, but a rank has "
                                                     "only 16 elements of conv.weight")));
    return;
  }
  const auto network = trained(*one, 0.01);
  sharded->attach(slices);
  sharded->set_learning_rate(0.01);
  train(*sharded, slices, 0, 7);
  EXPECT_TRUE(at::equal(parts.values, network.values));
}

// Shards that consist of rows of each parameter, in separate memory, must not change any bit either.
TEST_P(EveryOptimizer, AllowedRowShardsChangeNoBit) {
  if (make()->cut() != Cut::kAnywhere) return;  // the test above covers refusals
  constexpr int kRanks = 3;
  const ParameterGroups groups{{"bias$", 0.5, 0}};
  const auto network = trained(*make("", groups), 0.01), parts = small_network();
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto segments = row_shards(parts.segments, rank, kRanks);
    const Slice shard{at::full({segments.back().end()}, 0.0), at::full({segments.back().end()}, 0.0), segments};
    const auto exchange = [&](const at::Tensor& bucket, const at::Tensor& run, bool back) {
      for (const auto& segment : segments) {
        const auto& parameter = *std::ranges::find(parts.segments, segment.name, &Segment::name);
        const auto there = bucket.narrow(0, parameter.begin + segment.offset, segment.count);
        const auto here = run.narrow(0, segment.begin, segment.count);
        back ? there.copy_(here) : here.copy_(there);
      }
    };
    exchange(parts.values, shard.values, false);
    const auto optimizer = make("", groups);
    optimizer->attach({shard});
    optimizer->set_learning_rate(0.01);
    for (int update = 0; update < 7; ++update) {
      exchange(gradients_of(update, parts.values.numel()), shard.gradients, false);
      optimizer->update();
    }
    exchange(parts.values, shard.values, true);
  }
  EXPECT_TRUE(at::equal(parts.values, network.values));
}

// The number of threads that share many ranges must not matter either.
TEST_P(EveryOptimizer, ThreadsAndCutsOfManyElementsChangeNoBit) {
  const auto one = make(), sharded = make();
  if (one->cut() != Cut::kAnywhere) return;  // norms of whole parameters are sums, whose order may depend on threads
  const auto threads = at::get_num_threads();
  const at::Tensor values = gradients_of(-1, 100003), shared = values.clone();
  const Slice all{values, at::zeros_like(values)}, copy{shared, at::zeros_like(values)};
  at::set_num_threads(1);
  one->attach({all});
  train(*one, {all}, 0, 3);
  at::set_num_threads(4);
  const std::vector<Slice> slices{part(copy, 0, 41001), part(copy, 41001, 59002)};
  sharded->attach(slices);
  train(*sharded, slices, 0, 3);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(values, shared));
}

// A resumed run must be equal to an uninterrupted one.
TEST_P(EveryOptimizer, StateContinuesInAnotherOptimizerBitForBit) {
  const auto first = make(), second = make();
  auto network = trained(*first, 0.01), copy = small_network();
  copy.values.copy_(network.values);
  second->attach({whole(copy)});
  second->set_learning_rate(0.01);
  second->set_updates(first->updates());
  const auto from = first->state(), to = second->state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(std::tie(from[i].kind, from[i].slice, from[i].parameter),
              std::tie(to[i].kind, to[i].slice, to[i].parameter));
    to[i].values.copy_(from[i].values);
  }
  train(*first, {whole(network)}, 7, 14);
  train(*second, {whole(copy)}, 7, 14);
  EXPECT_EQ(second->updates(), 14);
  EXPECT_TRUE(at::equal(copy.values, network.values));
}

TEST_P(EveryOptimizer, StateHasUniqueNamesAndElementwiseStateIsFlat) {
  const auto optimizer = make();
  const auto network = trained(*optimizer, 0.01);
  std::set<std::tuple<std::string, std::size_t, std::string>> names;
  for (const auto& state : optimizer->state()) {
    EXPECT_TRUE(names.emplace(state.kind, state.slice, state.parameter).second) << state.kind << " twice";
    if (state.parameter.empty()) {
      EXPECT_TRUE(state.values.sizes().equals({network.values.numel()})) << state.kind;
    } else {
      EXPECT_EQ(std::ranges::count(network.segments, state.parameter, &Segment::name), 1) << state.parameter;
    }
  }
}

TEST_P(EveryOptimizer, AttachingAgainForgetsState) {
  const auto optimizer = make();
  const auto first = trained(*optimizer, 0.01), second = trained(*optimizer, 0.01);
  EXPECT_TRUE(at::equal(first.values, second.values));
  EXPECT_EQ(optimizer->updates(), 7);
}

TEST_P(EveryOptimizer, UpdatesValuesThatTrackGradients) {
  const auto plain = make(), tracked = make();
  auto network = small_network();
  network.values.requires_grad_();
  tracked->attach({whole(network)});
  tracked->set_learning_rate(0.01);
  train(*tracked, {whole(network)}, 0, 7);
  EXPECT_TRUE(network.values.is_leaf());
  EXPECT_TRUE(at::equal(network.values.detach(), trained(*plain, 0.01).values));
}

TEST_P(EveryOptimizer, AcceptsNoSlices) {
  const auto optimizer = make();
  optimizer->attach({});
  EXPECT_NO_THROW(optimizer->update());
  EXPECT_EQ(optimizer->updates(), 1);
}

TEST_P(EveryOptimizer, RefusesInvalidOptions) {
  EXPECT_THAT([] { make(", lr: -1"); }, ThrowsMessage<ConfigError>(HasSubstr("optimizer.lr")));
  EXPECT_THAT([] { make(", weight_decay: -1"); }, ThrowsMessage<ConfigError>(HasSubstr("optimizer.weight_decay")));
  EXPECT_THAT([] { make("", {{"("}}); }, ThrowsMessage<ConfigError>(HasSubstr("\"(\" is not a regular expression")));
}

TEST(Optimizers, RefuseDecayRatesOf1) {
  for (const auto* yaml : {"{name: adam, beta1: 1}", "{name: adamw, beta2: 1}", "{name: rmsprop, alpha: 1}",
                           "{name: lamb, beta1: 1}", "{name: muon, momentum: 1}"}) {
    EXPECT_THAT([&] { make_optimizer(yaml); }, ThrowsMessage<ConfigError>(HasSubstr("must be below 1"))) << yaml;
  }
}

TEST(Optimizers, SgdRefusesNesterovWithoutMomentumOrWithDampening) {
  const auto refused = ThrowsMessage<ConfigError>("nesterov needs a momentum above 0 and no dampening");
  EXPECT_THAT([] { make_optimizer("{name: sgd, nesterov: true}"); }, refused);
  EXPECT_THAT([] { make_optimizer("{name: sgd, nesterov: true, momentum: 0.9, dampening: 0.1}"); }, refused);
}

// Compression may leave values in the padding between parameters.
TEST(Optimizers, ZeroTheGradientsBetweenParametersToo) {
  for (const char* name : {"sgd", "lamb"}) {
    const Slice slice{at::full({8}, 1.0), at::full({8}, 1.0), {{"a", {3}, 0, 3, 0}, {"b", {2}, 4, 2, 0}}};
    const auto optimizer = make_optimizer(name);
    optimizer->attach({slice});
    optimizer->update();
    EXPECT_TRUE(at::equal(slice.gradients, at::full({8}, 0.0))) << name;
  }
}

// Elementwise optimizers need no names, but optimizers of whole parameters do.
TEST(Optimizers, LayerwiseOnesRefuseSlicesWithoutParameters) {
  const auto network = small_network();
  const Slice nameless{network.values, network.gradients};
  EXPECT_NO_THROW(make_optimizer("sgd")->attach({nameless}));
  EXPECT_THAT([&] { make_optimizer("lamb")->attach({nameless}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("slice 0 names no parameters")));
}

}  // namespace
}  // namespace phalanx::testing
