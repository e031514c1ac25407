// SPDX-License-Identifier: Apache-2.0
// Tests the moving average of the values.
#include "engine/optim/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/optim/loss_scale.h"
#include "engine/testing/decorator.h"
#include "engine/testing/optimizer.h"

namespace phalanx {
namespace {

using testing::Recorder;

TEST(Ema, FollowsItsRecurrence) {
  Ema ema(testing::make_optimizer("{name: adam, lr: 0.01}"), 0.7);
  auto network = testing::small_network(at::kDouble);
  ema.attach({whole(network)});
  at::Tensor average = network.values.clone();
  for (int t = 1; t <= 50; ++t) {
    testing::train(ema, {whole(network)}, t, t + 1);
    const double decay = std::min(0.7, (1.0 + t) / (10.0 + t));
    average = decay * average + (1 - decay) * network.values;
  }
  ASSERT_EQ(ema.state().back().kind, "ema");
  EXPECT_TRUE(at::allclose(ema.state().back().values, average, 1e-12, 1e-12));
}

// The first update has the weight 9 / 11, for any larger decay.
TEST(Ema, ForgetsTheInitialValuesQuickly) {
  Ema ema(std::make_unique<Recorder>(), 0.9999);
  const Slice slice{at::full({1}, 0.0), at::full({1}, -11.0)};
  ema.attach({slice});
  ema.update();
  EXPECT_NEAR(ema.state()[0].values.item<double>(), 9, 1e-5);
}

TEST(Ema, WithAveragesReplacesTheValuesTemporarily) {
  Ema ema(std::make_unique<Recorder>(), 0.5);
  const Slice first{at::ones({3}), at::ones({3})}, second{at::ones({2}), at::ones({2})};
  const auto parameter = first.values.narrow(0, 1, 2);  // a view, as modules have it
  ema.attach({first, second});
  ema.update();
  const auto average = ema.state()[0].values.clone(), trained = first.values.clone();
  EXPECT_FALSE(at::equal(average, trained));
  int bodies = 0;
  ema.with_averages([&] {
    ++bodies;
    EXPECT_TRUE(at::equal(first.values, average));
    EXPECT_TRUE(at::equal(parameter, average.narrow(0, 1, 2)));
    EXPECT_TRUE(at::equal(second.values, average.narrow(0, 0, 2)));
  });
  EXPECT_EQ(bodies, 1);
  EXPECT_TRUE(at::equal(first.values, trained));
  EXPECT_TRUE(at::equal(ema.state()[0].values, average));
}

// Tests a rank that updates the first half of the parameters. The other half belongs to another rank.
TEST(Ema, SharesTheAveragesAndThenTheTrainedValues) {
  const at::Tensor all = at::ones({4});
  const Slice own{all.narrow(0, 0, 2), at::ones({2})};
  std::vector<at::Tensor> shared;
  Ema ema(std::make_unique<Recorder>(), 0.5, [&] { shared.push_back(all.clone()); });
  ema.attach({own});
  ema.update();
  const at::Tensor trained = all.clone();
  ema.with_averages([&] { EXPECT_EQ(shared.size(), 1u) << "shared before the body runs"; });
  ASSERT_EQ(shared.size(), 3u);
  EXPECT_TRUE(at::equal(shared[0].narrow(0, 0, 2), ema.state()[0].values));
  EXPECT_TRUE(at::equal(shared[1], shared[0])) << "still shared until all ranks have left the body";
  EXPECT_TRUE(at::equal(shared[2], trained));
}

TEST(Ema, ContinuesFromItsState) {
  Ema first(testing::make_optimizer("{name: adam, lr: 0.01}"), 0.99),
      second(testing::make_optimizer("{name: adam, lr: 0.01}"), 0.99);
  auto network = testing::small_network(), copy = testing::small_network();
  first.attach({whole(network)});
  testing::train(first, {whole(network)}, 0, 5);
  copy.values.copy_(network.values);
  second.attach({whole(copy)});
  second.set_updates(first.updates());
  const auto from = first.state(), to = second.state();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].values.copy_(from[i].values);
  testing::train(first, {whole(network)}, 5, 9);
  testing::train(second, {whole(copy)}, 5, 9);
  EXPECT_TRUE(at::equal(first.state().back().values, second.state().back().values));
}

TEST(Ema, ASkippedUpdateChangesNoAverage) {
  Ema ema(std::make_unique<LossScale>(std::make_unique<Recorder>(), LossScaleConfig{}, testing::no_other_slices), 0.5);
  const Slice slice{at::full({1}, 1.0), at::full({1}, std::numeric_limits<double>::infinity())};
  ema.attach({slice});
  slice.values.fill_(2);
  ema.update();
  EXPECT_EQ(ema.updates(), 0);
  EXPECT_EQ(ema.state().back().values.item<double>(), 1);
}

TEST(Ema, PassesOtherCallsToItsOptimizer) {
  Ema ema(testing::make_optimizer("{name: lamb, lr: 0.25}"), 0.5);
  EXPECT_EQ(ema.cut(), Cut::kBetweenParameters);
  EXPECT_EQ(ema.learning_rate(), 0.25);
  ema.set_learning_rate(0.5);
  EXPECT_EQ(ema.learning_rate(), 0.5);
  EXPECT_THROW(Ema(std::make_unique<Recorder>(), 1), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
