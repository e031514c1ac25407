// SPDX-License-Identifier: Apache-2.0
// Tests mixup and cutmix with images whose pixels all equal the number of the sample, of class i % 3.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kSamples = 300, kSide = 8;

class Flat final : public Dataset {
 public:
  std::int64_t size() const override { return kSamples; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input =
        ensure(batch.inputs, 0, std::array{rows, std::int64_t{2}, kSide, kSide}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      input = std::fill_n(input, 2 * kSide * kSide, static_cast<float>(index));
      *target++ = index % 3;
    }
  }

 private:
  SampleSpec spec_ = classification_samples({2, kSide, kSide}, 3);
};

const bool mixing_test_registered = Datasets::global().add<NoFields>("flat", "made for tests", [](const NoFields&) {
  return Splits{.train = std::make_shared<Flat>(), .test = std::make_shared<Flat>()};
});

class Mixing : public ::testing::TestWithParam<std::string> {
 protected:
  Splits splits(const std::string& more = "") const {
    return testing::load_splits("{name: " + GetParam() + more + ", of: {name: flat}}");
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Mixing, ::testing::Values("mixup", "cutmix"));

TEST_P(Mixing, GivesSharesOfClassesThatAddUpToOne) {
  const auto batch = testing::read_samples(*splits().train, testing::first_samples(kSamples));
  ASSERT_EQ(batch.targets[0].sizes(), (at::IntArrayRef{kSamples, 3}));
  EXPECT_LT((batch.targets[0].sum(1) - 1).abs().max().item<double>(), 1e-6);
  EXPECT_GE(batch.targets[0].min().item<double>(), 0);
  const auto mixed = (std::get<0>(batch.targets[0].max(1)) < 0.999).sum();
  EXPECT_GT(mixed.item<std::int64_t>(), kSamples / 3) << "two thirds have a partner of another class";
}

TEST_P(Mixing, SharesOfClassesMatchThePixels) {
  const auto batch = testing::read_samples(*splits().train, testing::first_samples(kSamples));
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const auto image = batch.inputs[0][i], target = batch.targets[0][i];
    const auto changed = (image - static_cast<double>(i)).abs() > 1e-4;
    if (changed.sum().item<std::int64_t>() == 0) continue;
    if (GetParam() == "cutmix") {
      const double kept = 1 - changed.to(at::kDouble).mean().item<double>();
      const auto other = static_cast<std::int64_t>(image.masked_select(changed)[0].item<float>());
      EXPECT_TRUE((image.masked_select(changed) == static_cast<double>(other)).all().item<bool>());
      EXPECT_TRUE(at::equal(changed[0], changed[1])) << "all channels are mixed in the same way";
      const double expected = other % 3 == i % 3 ? 1 : kept;
      EXPECT_NEAR(target[i % 3].item<double>(), expected, 1e-6);
    } else {
      EXPECT_LT((image - image[0][0][0]).abs().max().item<double>(), 1e-4);
    }
  }
}

TEST_P(Mixing, DoesNotDependOnTheBatchAndDiffersBetweenEpochs) {
  const auto dataset = splits().train;
  const auto many = testing::read_samples(*dataset, {3, 7, 250}), one = testing::read_samples(*dataset, {7}),
             later = testing::read_samples(*dataset, {7}, 2);
  EXPECT_TRUE(at::equal(many.inputs[0][1], one.inputs[0][0]));
  EXPECT_TRUE(at::equal(many.targets[0][1], one.targets[0][0]));
  EXPECT_FALSE(at::equal(later.inputs[0], one.inputs[0]));
}

TEST_P(Mixing, LeavesTestsAndUndrawnSamplesUnchanged) {
  const auto none = testing::read_samples(*splits(", probability: 0").train, testing::first_samples(kSamples));
  EXPECT_TRUE((std::get<0>(none.targets[0].max(1)) == 1).all().item<bool>());
  EXPECT_EQ(none.inputs[0][42].max().item<float>(), 42);
  EXPECT_EQ(splits().test->spec().targets.at(0).dtype, at::kLong);
  EXPECT_EQ(testing::read_samples(*splits().test, {1}).targets[0].scalar_type(), at::kLong)
      << "test samples are not mixed";
  EXPECT_EQ(testing::read_samples(*splits().train->unchanged(), {1}).targets[0].scalar_type(), at::kLong);
}

// Beta(a, a) has mean 1/2 and variance 1 / (8 a + 4).
TEST(Mixup, DrawsSharesFromABetaDistribution) {
  for (const double alpha : {0.2, 1.0, 3.0}) {
    const auto splits = testing::load_splits("{name: mixup, alpha: " + std::to_string(alpha) + ", of: {name: flat}}");
    double sum = 0, squares = 0, count = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto target = testing::read_samples(*splits.train, testing::first_samples(kSamples), seed).targets[0];
      for (std::int64_t i = 0; i < kSamples; ++i) {
        const double share = target[i][i % 3].item<double>();
        if (share == 1) continue;  // the partner has the same class
        sum += share;
        squares += share * share;
        ++count;
      }
    }
    EXPECT_NEAR(sum / count, 0.5, 0.03) << alpha;
    EXPECT_NEAR(squares / count - 0.25, 1 / (8 * alpha + 4), 0.02) << alpha;
  }
}

TEST(MixingOf, RefusesWhatCannotBeMixed) {
  EXPECT_THAT([] { testing::load_splits("{name: mixup, of: {name: random_tokens}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.of: mixup needs samples of numbers")));
  EXPECT_THAT([] { testing::load_splits("{name: mixup}"); },
              ThrowsMessage<ConfigError>(HasSubstr("a dataset is missing")));
}

}  // namespace
}  // namespace phalanx
