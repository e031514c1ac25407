// SPDX-License-Identifier: Apache-2.0
// Tests Optimizer::exclude() for every optimizer.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/testing/optimizer.h"
#include "framework/testing/file_name.h"

namespace phalanx {
namespace {

class ExcludedParameters : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Optimizers, ExcludedParameters, ::testing::ValuesIn(Optimizers::global().names()),
                         [](const auto& info) { return testing::file_name(info.param); });

std::unique_ptr<Optimizer> make(const std::string& name) {
  return testing::make_optimizer("{name: " + name + ", lr: 0.1, weight_decay: 0.1" +
                                 (name == "sgd" ? ", momentum: 0.9}" : "}"));
}

// Returns copies of a parameter and of its optimizer state.
std::vector<at::Tensor> kept_of(Optimizer& optimizer, const Bucket& network, const Segment& segment) {
  std::vector<at::Tensor> all{testing::parameter_of(network.values, segment).clone()};
  for (const auto& state : optimizer.state()) {
    if (state.parameter.empty()) all.push_back(state.values.narrow(0, segment.begin, segment.count).clone());
    if (state.parameter == segment.name) all.push_back(state.values.clone());
  }
  return all;
}

TEST_P(ExcludedParameters, KeepTheirValuesAndStateWhileOthersAreUpdated) {
  const auto leaves = make(GetParam()), all = make(GetParam());
  const auto network = testing::small_network(), other = testing::small_network();
  leaves->attach({whole(network)});
  all->attach({whole(other)});
  const auto step = [&](std::int64_t number) {
    testing::train(*leaves, {whole(network)}, number, number + 1);
    testing::train(*all, {whole(other)}, number, number + 1);
  };
  step(1);
  const std::set<std::string> unused{network.segments[1].name, network.segments[2].name, "of another rank"};
  leaves->exclude(unused);
  std::vector<std::vector<at::Tensor>> before;
  for (const auto& segment : network.segments) before.push_back(kept_of(*leaves, network, segment));
  step(2);
  for (std::size_t i = 0; i < network.segments.size(); ++i) {
    const auto& segment = network.segments[i];
    const bool left = unused.contains(segment.name);
    const auto now = kept_of(*leaves, network, segment);
    const auto expected = left ? before[i] : kept_of(*all, other, segment);
    ASSERT_EQ(now.size(), expected.size());
    for (std::size_t j = 0; j < now.size(); ++j) EXPECT_TRUE(at::equal(now[j], expected[j])) << segment.name << j;
    EXPECT_EQ(at::equal(now[0], before[i][0]), left) << segment.name;
  }
  EXPECT_TRUE(at::equal(network.gradients, at::zeros_like(network.gradients)));
}

TEST_P(ExcludedParameters, AreUpdatedAgainOnceNoLongerExcluded) {
  const auto optimizer = make(GetParam());
  const auto network = testing::small_network();
  optimizer->attach({whole(network)});
  const auto& segment = network.segments[1];
  const auto values = [&] { return testing::parameter_of(network.values, segment); };
  const at::Tensor start = values().clone();
  optimizer->exclude({segment.name});
  testing::train(*optimizer, {whole(network)}, 1, 3);
  EXPECT_TRUE(at::equal(values(), start));
  optimizer->exclude({});
  testing::train(*optimizer, {whole(network)}, 3, 4);
  EXPECT_FALSE(at::equal(values(), start));
  optimizer->exclude({segment.name});
  optimizer->attach({whole(network)});
  const at::Tensor attached = values().clone();
  testing::train(*optimizer, {whole(network)}, 1, 2);
  EXPECT_FALSE(at::equal(values(), attached)) << "what is attached is updated";
}

// A gradient of NaN must have no effect.
TEST_P(ExcludedParameters, HaveGradientsThatAreNotRead) {
  const auto optimizer = make(GetParam());
  const auto network = testing::small_network();
  optimizer->attach({whole(network)});
  const auto& segment = network.segments[0];
  const at::Tensor start = testing::parameter_of(network.values, segment).clone();
  optimizer->exclude({segment.name});
  network.gradients.narrow(0, segment.begin, segment.count).fill_(std::numeric_limits<float>::quiet_NaN());
  optimizer->update();
  EXPECT_TRUE(at::equal(testing::parameter_of(network.values, segment), start));
  EXPECT_TRUE(at::equal(network.gradients, at::zeros_like(network.gradients)));
  EXPECT_TRUE(std::isfinite(network.values.sum().item<double>()));
}

}  // namespace
}  // namespace phalanx
