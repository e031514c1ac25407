// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(GraphCommunities, DependOnlyOnTheirIndex) {
  const auto splits = testing::load_splits("graph_communities");
  const auto many = testing::read_first(*splits.train, 5), test = testing::read_first(*splits.test, 5);
  Batch one;
  splits.train->gather(std::vector<std::int64_t>{3}, 7, one);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(many.inputs[i][3], one.inputs[i][0]));
  EXPECT_TRUE(at::equal(many.targets[0][3], one.targets[0][0]));
  EXPECT_FALSE(at::equal(many.inputs[1], test.inputs[1]));
  EXPECT_THROW(splits.train->gather(std::vector{splits.train->size()}, 0, one), c10::IndexError);
}

TEST(GraphCommunities, HaveEdgesWithTheirProbabilities) {
  const auto batch = testing::read_first(
      *testing::load_splits("{name: graph_communities, nodes: 40, least_nodes: 40, inside: 0.4, between: 0.1}").train,
      50);
  const auto& edges = batch.inputs[1];
  EXPECT_TRUE(at::equal(edges, edges.transpose(1, 2)));
  EXPECT_EQ(edges.diagonal(0, 1, 2).sum().item<double>(), 0);
  EXPECT_TRUE(edges.eq(0).logical_or(edges.eq(1)).all().item<bool>());
  const auto same = batch.targets[0].unsqueeze(1).eq(batch.targets[0].unsqueeze(2)).to(at::kFloat);
  const auto inside = (edges * same).sum().item<double>(), pairs = same.sum().item<double>() - 50 * 40;
  EXPECT_NEAR(inside / pairs, 0.4, 0.02);
  EXPECT_NEAR((edges * (1 - same)).sum().item<double>() / (1 - same).sum().item<double>(), 0.1, 0.01);
}

TEST(GraphCommunities, HaveFeaturesThatIdentifyTheCommunityUpToNoise) {
  const auto exact = testing::read_first(
      *testing::load_splits("{name: graph_communities, nodes: 30, least_nodes: 30, noise: 0}").train, 20);
  EXPECT_TRUE(at::equal(exact.inputs[0].argmax(2), exact.targets[0]));
  EXPECT_EQ(exact.inputs[0].sum().item<double>(), 20 * 30);
  const auto noisy = testing::read_first(
      *testing::load_splits("{name: graph_communities, nodes: 30, least_nodes: 30, noise: 0.5}").train, 20);
  EXPECT_TRUE(at::equal(noisy.targets[0], exact.targets[0]));
  EXPECT_NEAR((noisy.inputs[0] - exact.inputs[0]).square().mean().item<double>(), 0.25, 0.02);
}

TEST(GraphCommunities, ArePaddedWithNodesThatDoNotCount) {
  const auto splits = testing::load_splits("{name: graph_communities, nodes: 20, least_nodes: 5}");
  EXPECT_TRUE(splits.train->spec().targets[0].ignored);
  const auto batch = testing::read_first(*splits.train, 200);
  const auto padding = batch.targets[0].eq(kIgnored);
  const auto sizes = padding.logical_not().sum(1);
  EXPECT_EQ(sizes.min().item<std::int64_t>(), 5);
  EXPECT_EQ(sizes.max().item<std::int64_t>(), 20);
  EXPECT_EQ(batch.inputs[1].masked_select(padding.unsqueeze(1)).sum().item<double>(), 0);
  EXPECT_EQ(batch.inputs[0].masked_select(padding.unsqueeze(2)).abs().sum().item<double>(), 0);
  EXPECT_FALSE(
      testing::load_splits("{name: graph_communities, nodes: 20, least_nodes: 20}").train->spec().targets[0].ignored);
  EXPECT_THAT([] { testing::load_splits("{name: graph_communities, nodes: 8, least_nodes: 9}"); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.least_nodes: 9 is more than dataset.nodes: 8")));
}

}  // namespace
}  // namespace phalanx
