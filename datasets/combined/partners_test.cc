// SPDX-License-Identifier: Apache-2.0
// Tests pairs and triplets with the dataset `flat` of mixing_test.cc, whose pixels all equal the number of the sample,
// of class i % 3.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <set>
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
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kMembers = 300;

// Returns the sample numbers of the members of each row.
at::Tensor members(const Batch& batch) { return batch.inputs[0].flatten(2).select(2, 0).to(at::kLong); }

class Partners : public ::testing::TestWithParam<std::string> {
 protected:
  Splits splits(const std::string& more = "") const {
    return testing::load_splits("{name: " + GetParam() + more + ", of: {name: flat}}");
  }
  std::int64_t count() const { return GetParam() == "pairs" ? 2 : 3; }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Partners, ::testing::Values("pairs", "triplets"));

TEST_P(Partners, AreSamplesWithTheirClasses) {
  const auto dataset = splits().train;
  EXPECT_EQ(dataset->size(), kMembers);
  EXPECT_EQ(dataset->spec().inputs[0].shape, (Indices{count(), 2, 8, 8}));
  EXPECT_EQ(dataset->spec().targets[0].shape, Indices{count()});
  EXPECT_EQ(dataset->spec().task, "metric_learning");
  const auto batch = testing::read_samples(*dataset, testing::first_samples(kMembers));
  const auto of = members(batch);
  EXPECT_TRUE(at::equal(batch.targets[0], of % 3));
  EXPECT_EQ(of.select(1, 0).sum().item<std::int64_t>(), kMembers * (kMembers - 1) / 2) << "each sample once, in order";
  EXPECT_TRUE((batch.inputs[0].flatten(2) == of.unsqueeze(2)).all().item<bool>()) << "all pixels of one sample";
  EXPECT_EQ(dataset->label(7), 1);
}

TEST_P(Partners, DifferBetweenEpochsButNotInTests) {
  const auto data = splits();
  const auto partner = [&](const Dataset& dataset, std::uint64_t seed) {
    return members(testing::read_samples(dataset, testing::first_samples(kMembers), seed)).select(1, 1);
  };
  EXPECT_FALSE(at::equal(partner(*data.train, 1), partner(*data.train, 2)));
  EXPECT_TRUE(at::equal(partner(*data.test, 1), partner(*data.test, 2)));
  EXPECT_FALSE(at::equal(partner(*data.test, 1), partner(*splits(", seed: 2").test, 1)));
  const auto unchanged = data.train->unchanged();
  EXPECT_TRUE(at::equal(partner(*unchanged, 1), partner(*unchanged, 2)));
  EXPECT_TRUE(data.train->samples_overlap()) << "so that no held-out sample is a partner of a training sample";
}

TEST_P(Partners, DoNotDependOnTheBatch) {
  const auto dataset = splits().train;
  const auto many = testing::read_samples(*dataset, {3, 7, 250}), one = testing::read_samples(*dataset, {7});
  EXPECT_TRUE(at::equal(many.inputs[0][1], one.inputs[0][0]));
  EXPECT_TRUE(at::equal(many.targets[0][1], one.targets[0][0]));
  EXPECT_THROW(testing::read_samples(*dataset, {kMembers}), c10::IndexError);
}

TEST(Pairs, HaveTheSameClassAsOftenAsConfigured) {
  const auto share = [](const std::string& same) {
    const auto dataset = testing::load_splits("{name: pairs, same: " + same + ", of: {name: flat}}").train;
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto batch = testing::read_samples(*dataset, testing::first_samples(kMembers), seed);
      const auto of = members(batch);
      EXPECT_FALSE(of.select(1, 0).eq(of.select(1, 1)).any().item<bool>()) << "no sample with itself";
      sum += batch.targets[0].select(1, 0).eq(batch.targets[0].select(1, 1)).to(at::kDouble).mean().item<double>();
    }
    return sum / 10;
  };
  EXPECT_EQ(share("0"), 0);
  EXPECT_EQ(share("1"), 1);
  EXPECT_NEAR(share("0.25"), 0.25, 0.03) << "of 3000: four standard deviations";
}

TEST(Triplets, AreOneOfTheClassAndOneOfAnother) {
  const auto dataset = testing::load_splits("{name: triplets, of: {name: flat}}").train;
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto batch = testing::read_samples(*dataset, testing::first_samples(kMembers), seed);
    const auto of = members(batch), classes = batch.targets[0];
    EXPECT_TRUE(classes.select(1, 0).eq(classes.select(1, 1)).all().item<bool>());
    EXPECT_FALSE(classes.select(1, 0).eq(classes.select(1, 2)).any().item<bool>());
    EXPECT_FALSE(of.select(1, 0).eq(of.select(1, 1)).any().item<bool>()) << "no sample with itself";
    for (std::int64_t i = 0; i < kMembers; ++i) seen.insert(of[i][1].item<std::int64_t>());
  }
  EXPECT_EQ(std::ssize(seen), kMembers) << "each sample is a partner";
}

TEST(PartnersOf, RefusesSamplesWithoutEnoughOfAClass) {
  EXPECT_THAT([] { testing::load_splits("{name: pairs, of: {name: random_tokens}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.of: pairs needs samples with one class each")));
  EXPECT_THAT([] { testing::load_splits("{name: triplets, of: {name: subset, train_samples: 3, of: {name: flat}}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.of: triplets needs at least two samples of each class")));
  EXPECT_THAT(
      [] { testing::load_splits("{name: pairs, same: 0, of: {name: subset, test_samples: 1, of: {name: flat}}}"); },
      ThrowsMessage<ConfigError>(HasSubstr("needs samples of at least two classes")));
  EXPECT_THAT([] { testing::load_splits("{name: pairs}"); },
              ThrowsMessage<ConfigError>(HasSubstr("a dataset is missing")));
}

}  // namespace
}  // namespace phalanx
