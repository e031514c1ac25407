// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

Splits make(const std::string& fields = "") {
  return config::load_as<Datasets::Choice>("dataset", "{name: clicks" + fields + "}", "test.yaml").make();
}

Batch first(const Dataset& dataset, std::int64_t rows) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch;
  dataset.gather(indices, 0, batch);
  return batch;
}

// Returns the number of occurrences of each id of a feature in a batch.
std::map<std::int64_t, int> counts_of(const Batch& batch, std::int64_t feature) {
  const at::Tensor ids = batch.inputs.at(1).select(1, feature).contiguous();
  std::map<std::int64_t, int> counts;
  for (std::int64_t i = 0; i < ids.size(0); ++i) ++counts[ids.data_ptr<std::int64_t>()[i]];
  return counts;
}

TEST(Clicks, HasNumbersIdsAndClicks) {
  const auto splits = make(", train_samples: 50, test_samples: 20, features: 3, dense: 2, keys: 1000");
  EXPECT_EQ(splits.train->size(), 50);
  EXPECT_EQ(splits.test->size(), 20);
  const auto& spec = splits.train->spec();
  EXPECT_EQ(spec.task, "binary_classification");
  EXPECT_EQ(spec.inputs.at(1).classes, 1000);
  const Batch batch = first(*splits.train, 50);
  EXPECT_EQ(batch.inputs.at(0).sizes(), (at::IntArrayRef{50, 2}));
  EXPECT_EQ(batch.inputs.at(1).sizes(), (at::IntArrayRef{50, 3}));
  EXPECT_EQ(batch.targets.at(0).sizes(), (at::IntArrayRef{50}));
  EXPECT_GE(batch.inputs[1].min().item<std::int64_t>(), 0);
  EXPECT_LT(batch.inputs[1].max().item<std::int64_t>(), 1000);
}

TEST(Clicks, ASampleDependsOnlyOnItsIndex) {
  const auto train = make().train;
  const Batch all = first(*train, 10);
  Batch some;
  train->gather(std::array<std::int64_t, 2>{7, 2}, 99, some);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(some.inputs[i][0], all.inputs[i][7]));
    EXPECT_TRUE(at::equal(some.inputs[i][1], all.inputs[i][2]));
  }
  EXPECT_TRUE(at::equal(some.targets[0][0], all.targets[0][7]));
}

TEST(Clicks, SplitsAndSeedsDiffer) {
  const auto splits = make();
  const Batch train = first(*splits.train, 10);
  EXPECT_TRUE(at::equal(train.inputs[1], first(*make().train, 10).inputs[1]));
  EXPECT_FALSE(at::equal(train.inputs[1], first(*splits.test, 10).inputs[1]));
  EXPECT_FALSE(at::equal(train.inputs[1], first(*make(", seed: 2").train, 10).inputs[1]));
}

// With exponent 1.5 the first id has a share of 1 - 2^-0.5, the second one a share of 2^-0.5 - 3^-0.5.
TEST(Clicks, IdsAreAsPopularAsZipfSays) {
  const auto counts = counts_of(first(*make(", zipf: 1.5").train, 20'000), 0);
  std::vector<int> most;
  for (const auto& [id, count] : counts) most.push_back(count);
  std::ranges::sort(most, std::greater());
  EXPECT_NEAR(most.at(0) / 20'000.0, 0.2929, 0.02);
  EXPECT_NEAR(most.at(1) / 20'000.0, 0.1297, 0.02);
}

TEST(Clicks, FeaturesHaveOtherPopularIdsInALargeKeySpace) {
  const Batch batch = first(*make(", keys: 1000000000").train, 5000);
  std::set<std::int64_t> popular;
  for (std::int64_t feature = 0; feature < 8; ++feature) {
    const auto counts = counts_of(batch, feature);
    popular.insert(std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first);
  }
  EXPECT_EQ(popular.size(), 8u);
  EXPECT_GT(batch.inputs[1].max().item<std::int64_t>(), 500'000'000);
}

// A single id affects the click: the click rates of popular ids differ by more than chance explains.
TEST(Clicks, ClicksDependOnIds) {
  const Batch batch = first(*make().train, 20'000);
  const float mean = batch.targets[0].mean().item<float>();
  EXPECT_GT(mean, 0.15f);
  EXPECT_LT(mean, 0.85f);
  double squares = 0;
  int ids = 0;
  for (const auto& [id, count] : counts_of(batch, 0)) {
    if (count < 200) continue;
    const at::Tensor clicks = batch.targets[0].masked_select(batch.inputs[1].select(1, 0).eq(id));
    const double deviation = clicks.mean().item<double>() - mean;
    squares += deviation * deviation * count / (mean * (1 - mean));  // 1 if ids have no effect
    ++ids;
  }
  ASSERT_GT(ids, 5);
  EXPECT_GT(squares / ids, 4);
}

TEST(Clicks, RefusesSamplesAndFieldsOutOfRange) {
  const auto train = make().train;
  Batch batch;
  EXPECT_THROW(train->gather(std::array<std::int64_t, 1>{train->size()}, 0, batch), c10::IndexError);
  EXPECT_THROW(make(", features: 1"), ConfigError);
  EXPECT_THROW(make(", zipf: 1"), ConfigError);
}

}  // namespace
}  // namespace phalanx
